"""AdaWidth in other people's tools: exports of a model, and adapters for LangChain, LlamaIndex, Haystack, MTEB and scikit-learn.
One file a library, imported by its name (`adawidth.integrations.langchain`), so that no other needs to be installed."""

from ..threads import settle
from .export import TARGETS, export

__all__ = ["TARGETS", "export"]

settle()  # exports and adapters load faiss and torch
