"""Learning: rotations (torch), the taper's calibration (NumPy) and the router (LightGBM).
Nothing here is needed to search, and test queries never come here."""

from ..threads import settle

settle()
