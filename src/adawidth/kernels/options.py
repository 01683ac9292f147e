"""How functions are compiled. Where nothing was compiled before, the first search waits for all of it: each function costs some tenths
of a second, and numba compiles one again for each literal that it is called with, so these are no literals: NONE and ONE."""

import numpy as np

ENTRY = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}  # called from Python
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by compiled code only, and cached with what calls them
NONE, ONE = np.int64(0), np.int64(1)
