"""Files in and out: vectors, ids, texts, labels, runs, dataset folders, documents; writing is whole or not at all.
A new format is a new file here; nothing here knows of models or indexes."""

from ..data import Document
from .beir import encoders_in, load_dataset, load_texts
from .files import atomic_file, atomic_folder
from .texts import Columns, Text, read_texts, write_texts
from .trec import Run, read_qrels, read_run, write_qrels, write_run
from .vectors import read_ids, read_vectors, write_ids, write_vectors

__all__ = [
    "Columns",
    "Document",
    "Run",
    "Text",
    "atomic_file",
    "atomic_folder",
    "encoders_in",
    "load_dataset",
    "load_texts",
    "read_ids",
    "read_qrels",
    "read_run",
    "read_texts",
    "read_vectors",
    "write_ids",
    "write_qrels",
    "write_run",
    "write_texts",
    "write_vectors",
]
