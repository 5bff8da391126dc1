"""`bigdl.util`: the small things that programs import. Runs on the driver."""
