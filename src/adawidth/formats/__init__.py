"""Files in and out: vectors, ids, labels, runs, dataset folders; and writing that is whole or not at all."""

from .beir import load_dataset, load_texts
from .files import atomic_file, atomic_folder
from .trec import Run, read_qrels, read_run, write_qrels, write_run
from .vectors import read_ids, read_vectors, write_ids, write_vectors

__all__ = [
    "Run",
    "atomic_file",
    "atomic_folder",
    "load_dataset",
    "load_texts",
    "read_ids",
    "read_qrels",
    "read_run",
    "read_vectors",
    "write_ids",
    "write_qrels",
    "write_run",
    "write_vectors",
]
