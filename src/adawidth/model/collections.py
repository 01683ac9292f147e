"""Collections in engines as indexes: `connect` opens one, `push` makes or goes on with one. The model travels inside the engine."""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifact import CARD, CONFIG, SUMS, WEIGHTS
from ..engines import PRICES, Engine, EngineStore, Layout, engine_at, engine_name
from ..errors import ArtifactError, OptionError
from ..formats.documents import Source
from ..stages import Written
from ..stages.loop import SHORTLIST
from .adawidth import AdaWidth
from .index import Index

if TYPE_CHECKING:
    from ..encoders import Encoder

LARGEST = 4_000_000_000  # bytes of a packed model
SERVICES = dict.fromkeys(("http", "https"), "adawidth.serve.client:Client")  # scheme -> module:class
FILES = (CONFIG, WEIGHTS, CARD, SUMS)


def connect(
    url: str,
    collection: str = "adawidth",
    model: AdaWidth | None = None,
    *,
    encoder: str | Encoder | None = None,
    trust_encoder: bool = False,
) -> Index:
    """The documents of an engine's collection, with the verbs of any index; with the model that was pushed, or another of its rotation.

    `url` names the engine: postgresql://…, milvus+http://…, qdrant+http://…, lancedb:///folder (docs/engines.md has all forms);
    http://… is a service (`adawidth serve`), which has its own model and encoder.
    """
    if (scheme := url.partition("://")[0]) in SERVICES:
        if model is not None:
            raise OptionError("a service has its own model: leave out `model`, or start the service with that one")
        module, _, name = SERVICES[scheme].partition(":")
        found_there: Index = getattr(import_module(module), name)(url)
        return found_there
    engine = current(url, collection)
    packed = engine.open()
    found = unpacked(packed, engine.where) if model is None else model
    return Index(found, EngineStore(engine, found.rotation), encoder, trust_encoder=trust_encoder)


def push(
    model: AdaWidth,
    documents: Source,
    url: str,
    collection: str = "adawidth",
    *,
    layout: Layout | None = None,
    force: bool = False,
) -> Written:
    """Writes documents into an engine's collection, which is made if it is not there. Pushing again sends the same ids again: nothing is
    lost or doubled, so an interrupted push can be repeated. `force` empties a collection of another rotation or layout first."""
    engine = current(url, collection)
    try:
        layout = layout_of(model, url=url) if layout is None else layout
        ready(engine, model, layout, force=force)
        written = EngineStore(engine, model.rotation).write(documents, update=True)
        engine.finish()
        return written
    finally:
        engine.close()


def current(url: str, collection: str) -> Engine:
    """The engine of a collection, or of the one that it has moved to."""
    engine = engine_at(url, collection)
    while engine.exists() and (to := engine.settings().moved_to) is not None:
        engine.close()
        engine = engine_at(url, to)
    return engine


def ready(engine: Engine, model: AdaWidth, layout: Layout, *, force: bool = False) -> None:
    """Opens a collection to write to, or makes it. One of another rotation or layout is refused, or emptied with `force`."""
    if force and engine.exists():
        engine.drop()
    if not engine.exists():
        engine.create(layout, packed_model(model))
        return
    engine.open()
    if engine.layout != layout:
        raise OptionError(
            f"{engine.where} keeps widths {engine.layout.widths} of rotation {engine.layout.fingerprint[:12]}, "
            f"this would be {layout.widths} of {layout.fingerprint[:12]}: push to another collection, or empty this one (--force)"
        )


def statements(url: str, collection: str, layout: Layout) -> str:
    """What an engine that speaks SQL is sent, to be read before anything is."""
    from ..engines.pgvector import statements

    if engine_name(url) != "pgvector":
        raise OptionError(f"{engine_name(url)} is not spoken to in SQL: --sql goes with pgvector")
    return statements(collection, layout)


def layout_of(
    model: AdaWidth, keep: int | None = None, widths: Sequence[int] | None = None, shortlist: int = SHORTLIST, *, url: str | None = None
) -> Layout:
    """The start width of the default policy, the target width and all that is kept; and a step between where, at the prices of the engine
    that `url` names, dropping candidates there can pay for its trip."""
    keep = model.width if keep is None else keep
    if not 1 <= keep <= model.width:
        raise OptionError(f"keep {keep} is not between 1 and the encoder width {model.width}")
    taper = model.policies.cut(keep).taper
    if widths is None:
        start = taper.policy().start
        ladder = taper.policy().calibration.ladder
        between = [width for width in ladder if 2 * start <= width <= taper.target // 2 and _pays(url, shortlist, taper.target - width)]
        widths = (start, *between[:1], taper.target)
    if any(not 1 <= width <= keep for width in widths):
        raise OptionError(f"widths {tuple(widths)} are not all between 1 and the {keep} coordinates kept")
    if shortlist < 1:
        raise OptionError(f"shortlist {shortlist} is not at least 1")
    return Layout(model.rotation.fingerprint, tuple(sorted({*widths, keep})), shortlist)


def _pays(url: str | None, candidates: int, more: int) -> bool:
    return url is None or PRICES[engine_name(url)].dropping_pays(candidates, more)


def packed_model(model: AdaWidth) -> bytes:
    """The model folder as one zip file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in FILES:
                archive.writestr(zipfile.ZipInfo(name), (path / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unpacked(packed: bytes, where: str) -> AdaWidth:
    """The model in a zip file that may come from anywhere: only the files of a model folder, bounded, and checked as a folder is."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive, tempfile.TemporaryDirectory() as folder:
            entries = {entry.filename: entry for entry in archive.infolist()}
            if set(entries) != set(FILES) or sum(entry.file_size for entry in entries.values()) > LARGEST:
                raise ArtifactError(f"{where}: what is stored beside the documents is no model: push it again")
            for name in FILES:
                (Path(folder) / name).write_bytes(archive.read(name))
            return AdaWidth.load(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ArtifactError(f"{where}: the model stored beside the documents is damaged ({error}): push it again") from None
