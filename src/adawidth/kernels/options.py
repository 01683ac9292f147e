"""How functions are compiled. Where nothing was compiled before, the first search waits for all of it: each function takes some tenths
of a second, and once more for each literal that it is called with. So NONE and ONE are no literals."""

from typing import Any

import numpy as np

INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by compiled code only
ENTRY: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True, "cache": True}  # called from Python
NONE: Any = np.int64(0)
ONE: Any = np.int64(1)
