"""Output that many workers write: a part file for every shard, or fragments of a Lance data set that one commit makes visible."""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from ..errors import OptionError, need
from ..formats.parquet import pyarrow_modules
from .run import over
from .shards import Shard, filesystem, is_local, stamps

log = logging.getLogger("adawidth")

FORMAT, VERSION, MARK = "adawidth-parts", 1, "_adawidth.json"


class Kernel(Protocol):
    """From an Arrow batch to an Arrow batch."""

    def __call__(self, table: Any, place: str = ..., start: int = ...) -> Any: ...

    def facts(self) -> dict[str, Any]: ...


def write_parts(kernel: Kernel, shards: Sequence[Shard], out: str, *, on: str | None = None, force: bool = False) -> None:
    """A folder with one Parquet file for each shard, and a file that says what they are.

    Parts are written whole, in `out`.partial, which becomes `out` when all are there; on an object store, which can't rename a folder,
    in `out`, and the mark comes last. The same call goes on where an earlier one stopped; another call is refused.
    """
    system, path = filesystem(out.rstrip("/"))
    plan = _plan(kernel, shards)
    home = f"{path}.partial" if is_local(system) else path
    _check(system, path, home, out, plan, force)
    system.create_dir(home, recursive=True)
    _write(system, f"{home}/{_begun(MARK)}", json.dumps(plan).encode())
    there = _names(system, home)
    missing = [shard for shard in shards if _part(shard) not in there]
    if len(missing) < len(shards):
        log.info("%s: %d of %d parts are there already, going on", out, len(shards) - len(missing), len(shards))
    where = f"{out.rstrip('/')}.partial" if is_local(system) else out.rstrip("/")
    for _ in over(partial(_written, kernel=kernel, home=where), missing, on, "rotating"):
        pass
    _write(system, f"{home}/{MARK}", json.dumps(plan).encode())
    for name in _names(system, home):
        if name.startswith("."):
            system.delete_file(f"{home}/{name}")  # of workers that died, and what marked the folder as begun
    if home != path:
        if _names(system, path):
            system.delete_dir(path)
        system.move(home, path)


def write_lance(kernel: Kernel, shards: Sequence[Shard], out: str, *, on: str | None = None, force: bool = False) -> None:
    """A Lance data set: workers write fragments, and one commit makes all of them visible. A run that was cut off shows nothing."""
    need("lance")
    import lance

    system, path = filesystem(out.rstrip("/"))
    if f"{path}/_versions" in {one.path for one in _inside(system, path)} and not force:
        raise OptionError(f"{out} exists: choose another path (--out), or replace it with force (--force)")
    found = {shard.number: made for shard, made in over(partial(_fragments, kernel=kernel, out=out), shards, on, "rotating")}
    pieces = [lance.FragmentMetadata.from_json(text) for number in sorted(found) for text in found[number][1]]
    arrow, _ = pyarrow_modules()
    schema = arrow.ipc.read_schema(arrow.py_buffer(found[min(found)][0]))
    lance.LanceDataset.commit(out, lance.LanceOperation.Overwrite(schema, pieces))


def _fragments(shard: Shard, kernel: Kernel, out: str) -> tuple[bytes, list[str]]:
    """Writes a shard's fragments; its schema and what a commit needs to know of them."""
    from lance.fragment import write_fragments

    arrow, _ = pyarrow_modules()
    table = arrow.Table.from_batches(list(_batches(shard, kernel)))
    made = write_fragments(table, out, schema=table.schema)
    return table.schema.serialize().to_pybytes(), [json.dumps(one.to_json()) for one in made]


def _written(shard: Shard, kernel: Kernel, home: str) -> int:
    """Writes a shard's part under a name of its own, and then gives it its name: written twice, it is the same."""
    _, parquet = pyarrow_modules()
    system, path = filesystem(home)
    building = f"{path}/.{uuid.uuid4().hex}.tmp"
    batches = _batches(shard, kernel)
    first = next(batches)
    with system.open_output_stream(building) as stream, parquet.ParquetWriter(stream, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    system.move(building, f"{path}/{_part(shard)}")
    return shard.rows


def _batches(shard: Shard, kernel: Kernel) -> Any:
    start = shard.start
    for batch in shard.batches():
        yield kernel(batch, shard.place, start)
        start += len(batch)


def _plan(kernel: Kernel, shards: Sequence[Shard]) -> dict[str, Any]:
    """What makes two runs the same: the kernel, and the shards down to their row groups, in files that have not changed since."""
    digest = hashlib.sha256(repr([list(shards), stamps(shards)]).encode()).hexdigest()[:16]
    rows = sum(shard.rows for shard in shards)
    facts = {"source": shards[0].place, "rows": rows, "parts": len(shards), "shards": digest}
    return {"format": FORMAT, "version": VERSION, **facts, "made": kernel.facts()}


def _check(system: Any, path: str, home: str, out: str, plan: dict[str, Any], force: bool) -> None:
    """Refuses an output that is there, or begun by another call; with `force`, removes it if AdaWidth wrote it."""
    for folder, mark in ((path, MARK), (home, _begun(MARK))):
        names = _names(system, folder)
        if not names:
            continue
        found = _read(system, f"{folder}/{mark}") if mark in names else None
        if folder == home and found == plan and (folder != path or MARK not in names):
            continue  # goes on
        if folder == path and home == path and MARK not in names:
            continue  # begun, as is seen next
        ours = isinstance(found, dict) and found.get("format") == FORMAT
        if not force:
            raise OptionError(
                f"{out} {'exists' if folder == path else 'was begun by another call'}: choose another path (--out), "
                "or replace it with force (--force)"
            )
        if not ours:
            raise OptionError(f"{out}: not replaced, as it holds something that AdaWidth did not write: choose another path (--out)")
        if folder == home:
            system.delete_dir_contents(folder)


def _begun(mark: str) -> str:
    return f".begun{mark}"


def _part(shard: Shard) -> str:
    return f"part-{shard.number:06d}.parquet"


def _names(system: Any, folder: str) -> set[str]:
    return {one.base_name for one in _inside(system, folder)}


def _inside(system: Any, folder: str) -> list[Any]:
    from pyarrow import fs

    return list(system.get_file_info(fs.FileSelector(folder, allow_not_found=True)))


def _read(system: Any, path: str) -> Any:
    with system.open_input_stream(path) as stream:
        try:
            return json.loads(stream.read())
        except ValueError:
            return None


def _write(system: Any, path: str, content: bytes) -> None:
    building = f"{path}.{uuid.uuid4().hex}.tmp"
    with system.open_output_stream(building) as stream:
        stream.write(content)
    system.move(building, path)
