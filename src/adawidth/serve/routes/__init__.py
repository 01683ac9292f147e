"""One file per group of endpoints; each has a router. Schemas are in ../schemas.py, errors in ../problems.py."""
