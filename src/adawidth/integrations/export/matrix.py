"""The rotation as a plain array, and as a function of PostgreSQL."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...errors import OptionError
from ...formats.files import atomic_file, write_lines
from ...model import AdaWidth
from ...types import F32, StrPath
from .side import Side, refuse_existing

NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")  # what PostgreSQL takes without quotes
WIDEST = 16_000  # coordinates of a vector of pgvector


def export_npy(
    model: AdaWidth, path: StrPath, *, width: int | None = None, queries: bool = False, task: str | None = None, force: bool = False
) -> dict[str, Any]:
    """The matrix alone, (m, D), in an .npy: `vectors @ matrix.T`. A name that ends in .npz gets `matrix` and `bias`."""
    side, out = Side.of(model, width, queries=queries, task=task), refuse_existing(path, force)
    if out.suffix not in (".npy", ".npz"):
        raise OptionError(f"{out}: an array is written to .npy or .npz, this is {out.suffix or 'without a suffix'}")
    if out.suffix == ".npy" and side.bias is not None:
        raise OptionError(f"{out}: this query map has a bias beside its matrix: name the file .npz, which holds both")
    with atomic_file(out) as file:
        if out.suffix == ".npy":
            np.save(file, side.matrix, allow_pickle=False)
        else:
            np.savez(file, matrix=side.matrix, bias=np.zeros(side.width, np.float32) if side.bias is None else side.bias)
    return side.facts()


def export_sql(
    model: AdaWidth,
    path: StrPath,
    *,
    width: int | None = None,
    queries: bool = False,
    task: str | None = None,
    name: str = "adawidth_rotate",
    force: bool = False,
) -> dict[str, Any]:
    """A function of PostgreSQL with pgvector: vector(D) in, vector(m) out, both sides of unit length.

    The matrix is inside the function, which is immutable: generated columns and expression indexes take it, and a dump restores it.
    """
    if not NAME.fullmatch(name):
        raise OptionError(f"{name!r} can't name a function: use small letters, digits and _, at most 63 of them")
    side, out = Side.of(model, width, queries=queries, task=task), refuse_existing(path, force)
    if side.encoder_width > WIDEST:
        raise OptionError(f"the model is {side.encoder_width} wide, pgvector's vectors at most {WIDEST}")
    write_lines(out, _function(side, name).split("\n"))
    return {**side.facts(), "function": name}


def _function(side: Side, name: str) -> str:
    score = "inner_product(axis, l2_normalize(x))" + (" + bias" if side.bias is not None else "")
    axes = ",".join(f'"{_vector(axis)}"' for axis in side.matrix)
    columns = f"'{{{axes}}}'::vector[]"
    names = "axis, place"
    if side.bias is not None:
        columns += f", '{{{_numbers(side.bias)}}}'::float8[]"
        names = "axis, bias, place"
    return f"""-- Made by AdaWidth from the rotation {side.fingerprint}. Needs pgvector 0.7 or newer (CREATE EXTENSION vector).
CREATE OR REPLACE FUNCTION {name}(x vector) RETURNS vector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $adawidth$
BEGIN
  IF vector_dims(x) <> {side.encoder_width} THEN
    RAISE EXCEPTION 'the vector is % wide, the rotation {side.encoder_width}', vector_dims(x);
  END IF;
  RETURN (
    SELECT l2_normalize(array_agg({score} ORDER BY place)::vector({side.width}))
    FROM unnest({columns}) WITH ORDINALITY AS axes({names})
  );
END
$adawidth$;"""


def _vector(row: F32) -> str:
    return f"[{_numbers(row)}]"


def _numbers(row: F32) -> str:
    """As short as float32 can be read back from."""
    return ",".join(str(number) for number in row)
