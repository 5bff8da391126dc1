"""`bigdl.models`: models of BigDL's own."""
