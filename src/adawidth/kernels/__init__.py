"""Every compiled loop, by numba and cached on disk. Arrays in, arrays out; no Python objects.
Row slices (`row = rows[i, a:b]`) vectorise, scalar access with run-time bounds does not: keep the slices."""

from .cache import prepare

prepare()
