"""How functions are compiled. Where nothing was compiled before, the first search waits for all of it.

A function takes some hundredths of a second, and once more for each literal that it is called with: so NONE and ONE are no literals.
Much of NumPy and some builtins are functions that numba compiles too, again for each type and for each kind of caller: so kernels
write `a if a < b else b` for `min(a, b)`, fill arrays in loops, and make them in entries and their parts alone.
"""

import gc
from typing import Any

import numpy as np
from numba.core.event import Event, Listener

INNER: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by compiled code only
PART: dict[str, Any] = {**INNER, "inline": "always"}  # called in one place of an entry, and compiled as a part of it
ENTRY: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True, "cache": True}  # called from Python
NONE: Any = np.int64(0)
ONE: Any = np.int64(1)


class Undisturbed(Listener):
    """Stops the collection of garbage while a function of this package is compiled, which would take a tenth of the time.

    numba makes many objects and keeps most of them, so that all are looked at again and again. It compiles one function at a time.
    """

    def __init__(self) -> None:
        self._compiled: Any = None  # the function, which may have others compiled that it calls

    def on_start(self, event: Event) -> None:
        """Before a function is compiled."""
        function = event.data["dispatcher"]
        if self._compiled is None and function.__module__.startswith(__package__) and gc.isenabled():
            self._compiled = function
            gc.disable()

    def on_end(self, event: Event) -> None:
        """After it was compiled, or could not be."""
        if event.data["dispatcher"] is self._compiled:
            self._compiled = None
            gc.enable()
