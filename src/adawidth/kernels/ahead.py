"""Kernels that were compiled when the wheel was built, for levels of CPUs rather than for one (tools/build_kernels.py)."""

import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba import config
from numba.core.caching import FunctionCache, IndexDataCacheFile

HERE = Path(__file__).parent
COMPILED = HERE / "compiled"
SECOND = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
THIRD = f"{SECOND},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
FOURTH = f"{THIRD},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
LEVELS = {"x86-64-v4": FOURTH, "x86-64-v3": THIRD} if platform.machine() == "x86_64" else {}  # and what a CPU must have; best first


@cache
def sources() -> bytes:
    """A digest of all source files here."""
    digest = hashlib.sha256()
    for file in sorted(HERE.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.digest()


@cache
def levels() -> tuple[str, ...]:
    """The levels that kernels were compiled for and this CPU has, best first; none where the user says which CPU it is."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None or not COMPILED.is_dir():  # type: ignore[attr-defined]
        return ()
    has = {f"+{name}" for name, here in llvm.get_host_cpu_features().items() if here}
    return tuple(level for level, needed in LEVELS.items() if has.issuperset(needed.split(",")) and (COMPILED / level).is_dir())


class Ahead(FunctionCache):
    """numba's cache of compiled functions: what is not in it may have been compiled ahead."""

    def _load_overload(self, signature: Any, context: Any) -> Any:
        found = super()._load_overload(signature, context)  # type: ignore[no-untyped-call]
        if found is not None or Path(self._py_func.__code__.co_filename).parent != HERE:
            return found
        ours, (triple, *_), hashes = self._index_key(signature, context.codegen())  # type: ignore[no-untyped-call]
        for level in levels():
            file = IndexDataCacheFile(str(COMPILED / level), self._impl.filename_base, sources())  # type: ignore[no-untyped-call]
            data = file.load((ours, (triple, level, LEVELS[level]), hashes))  # type: ignore[no-untyped-call]
            if data is not None:
                return self._impl.rebuild(context, data)
        return None
