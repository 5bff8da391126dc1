"""From Arrow record batches to the arrays a model takes."""
