"""Where a command finds documents: an index folder, or a collection in an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError

if TYPE_CHECKING:
    from ..model import AdaWidth, Index


def index_at(
    path: Path | None,
    engine: str | None,
    collection: str,
    model: AdaWidth | None = None,
    *,
    encoder: str | None = None,
    trust_encoder: bool = False,
) -> Index:
    """The index in a folder, or in the engine at this address: exactly one must be given."""
    if (path is None) == (engine is None):
        raise OptionError("give either an index folder or an engine's address (--engine)")
    if engine is not None:
        from ..model.collections import connect

        return connect(engine, collection, model, encoder=encoder, trust_encoder=trust_encoder)
    from ..model import open_index

    assert path is not None
    return open_index(path, model, encoder=encoder, trust_encoder=trust_encoder)
