"""Files in and out: vectors, ids, texts, labels, runs, dataset folders, documents; writing is whole or not at all.
A new format is a new file here; nothing here knows of models or indexes."""

from ..data import Document
from .beir import encoders_in, load_dataset
from .files import atomic_file
from .folders import Kind, atomic_folder, refuse_out
from .passages import Cut
from .texts import Columns, Text, read_texts, write_texts
from .trec import Run, read_qrels, read_run, run_of, write_qrels, write_run
from .vectors import read_ids, read_vectors, write_ids, write_vectors

__all__ = [
    "Columns",
    "Cut",
    "Document",
    "Kind",
    "Run",
    "Text",
    "atomic_file",
    "atomic_folder",
    "encoders_in",
    "load_dataset",
    "read_ids",
    "read_qrels",
    "read_run",
    "read_texts",
    "read_vectors",
    "refuse_out",
    "run_of",
    "write_ids",
    "write_qrels",
    "write_run",
    "write_texts",
    "write_vectors",
]
