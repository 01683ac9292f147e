"""The demo as a service: the bundled docstrings behind the page, to search by text."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import need
from .output import say

if TYPE_CHECKING:
    from ..data import Dataset


def serve_docstrings(path: Path, port: int, *, force: bool = False) -> None:
    """Indexes the docstrings, unless that was done before, and serves them with a key that is made for this run."""
    need("fastapi", "uvicorn", "httptools", "prometheus_client")
    from ..model import open_index
    from ..serve.run import Place, serve
    from ..serve.settings import Settings, read_key

    if force or not path.exists():
        index_docstrings(path, force=force)
    open_index(path).close()  # before anything is promised
    key = read_key(None) or secrets.token_urlsafe(24)
    say(f"Open http://127.0.0.1:{port}/#key={key} (Ctrl-C stops it)")
    serve(Place(str(path)), Settings(port=port, key=key))


def index_docstrings(path: Path, *, force: bool = False) -> None:
    """An index of the docstrings, with titles and texts as this Python has them."""
    from .. import bundled
    from ..encoders.load import comes_packaged
    from ..formats import load_dataset
    from ..model import AdaWidth
    from ..progress import progress

    data = load_dataset(bundled.path())
    if not comes_packaged(str(data.encoding.get("encoder", ""))):
        data = _encoded()
    say(f"Indexing {len(data.documents):,} docstrings of Python and NumPy, encoded by {data.encoder}.")
    model = AdaWidth.fit(data, recipe="pca")
    names = [str(name) for name in data.documents.ids]
    with progress("reading docstrings", len(names)) as advance:
        texts = []
        for name in names:
            texts.append(_text(name))
            advance()
    known: dict[str, Any] = {"titles": names, "texts": texts, "metadata": [_metadata(name) for name in names]}
    model.index(data.documents, path, **known, hybrid=True, force=force).close()


def _text(name: str) -> str:
    """First sentence and the rest, empty where this Python has no such object."""
    from .. import bundled

    rest = (bundled.text_of(name) or "").removeprefix(name).strip()
    return f"{bundled.query_text_of(bundled.QUERY_PREFIX + name) or ''}\n{rest}".strip()


def _metadata(name: str) -> dict[str, str]:
    return {"module": name.partition(".")[0], "kind": "module" if "." not in name else "member"}


def _encoded() -> Dataset:
    """The same docstrings, encoded anew by an encoder that is installed."""
    from ..data import Dataset, Vectors
    from ..encoders import load_encoder
    from ..encoders.encode import encode_sorted
    from .demo_text import docstring_texts

    encoder = load_encoder("wordllama")
    asked, docstrings = docstring_texts()
    documents = Vectors.of(encode_sorted(encoder, docstrings, "document"), [text.id for text in docstrings], name="docstrings")
    queries = Vectors.of(encode_sorted(encoder, asked[::10], "query"), [text.id for text in asked[::10]], name="queries")
    encoding = {"encoder": encoder.name, "fingerprint": encoder.fingerprint}
    return Dataset(documents, queries, name="docstrings", encoder=encoder.name, encoding=encoding)
