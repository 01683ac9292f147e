"""Requests and answers, as OpenAPI has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr

from .problems import Problem


def _whole(value: Any) -> Any:
    """3.0 as 3, as JSON Schema has it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(value: Any) -> Any:
    """Refuses 3.0 as an id: no address would find the document by that name."""
    if isinstance(value, float) and value.is_integer():
        raise Problem("invalid_data", f"the id {value!r} is a whole number: write it without a decimal point")
    return value


Whole = Annotated[StrictInt, BeforeValidator(_whole)]
FromZero = Annotated[StrictInt, Field(ge=0), BeforeValidator(_whole)]
FromOne = Annotated[StrictInt, Field(ge=1), BeforeValidator(_whole)]
DocumentId = StrictStr | Annotated[StrictInt, Field(ge=0, le=2**53 - 1), BeforeValidator(_plain)]
Vector = Annotated[list[float], Field(min_length=1, max_length=65_536)]
Text = Annotated[StrictStr, Field(min_length=1)]
Base64 = Annotated[StrictStr, Field(min_length=4, pattern=r"^[A-Za-z0-9+/]+={0,2}$", json_schema_extra={"contentEncoding": "base64"})]


class Asked(BaseModel):
    """A request: unknown fields are refused, so that a typing error is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchRequest(Asked):
    """Queries, as text or as vectors of the index's encoder, and how to answer them."""

    text: Text | Annotated[list[Text], Field(min_length=1)] | None = Field(None, examples=["how do I count elements"])
    vector: Vector | Annotated[list[Vector], Field(min_length=1)] | Base64 | None = Field(
        None, description="A vector, a list of vectors, or the base64 of them as little-endian float32, one after the other."
    )
    k: FromOne = Field(10, description="Documents to find for each query.")
    policy: Literal["taper", "router", "paper-router", "fixed", "certify"] | None = None
    budget: float | None = Field(None, gt=0, description="Largest mean width.")
    quality: float | None = Field(None, gt=0, le=1, description="Share of the target width's quality to keep; .99 without any.")
    width: FromOne | Literal["full"] | None = Field(None, description="One width for all queries.")
    start: FromOne | None = Field(None, description="Start width.")
    shortlist: FromOne = 500
    nprobe: FromOne | None = Field(None, description="Lists of an `ivf` index to scan; as many as the query needs, without any.")
    task: Text | None = None
    filter: StrictStr | dict[str, Any] | None = Field(None, examples=["lang = 'en' AND year >= 2020"])
    offset: FromZero = 0
    min_score: float | None = None
    fields: tuple[Literal["title", "text", "metadata"], ...] = Field(
        ("title", "text", "metadata"), description="What to tell of each document besides id and score."
    )
    hybrid: bool = Field(False, description="Fuse the answer with that of BM25 over titles and texts; needs text.")
    explain: bool = Field(False, description="Tell how each query was answered; slower.")


class FoundHit(BaseModel):
    """One document of an answer."""

    id: str | int
    score: float
    title: str = ""
    text: str = ""
    metadata: dict[str, Any] = {}


class Step(BaseModel):
    """One width of a query's way."""

    width: int
    candidates: int = Field(description="Read at this width.")
    survivors: int = Field(description="That the policy keeps after it.")
    coordinates: int = Field(description="Read so far, over all candidates.")
    bytes: int = Field(description="Read so far, the scan included.")


class Explanation(BaseModel):
    """How a query was answered."""

    policy: str
    documents: int = Field(description="Scanned at the start width.")
    start_width: int
    full_width: int
    full_bytes: int = Field(description="That a scan of every document at full width would read.")
    curve: list[float] = Field(description="Scores of the shortlist at the start width, best first, at most 500.")
    steps: list[Step]
    end_width: int = Field(description="The widest that was read.")
    settled_width: int = Field(description="After which no more candidates were left than asked for.")
    mean_width: float
    bytes: int
    seconds: dict[str, float] = Field(description="encode, scan, rescoring; of the whole request.")


class Answered(BaseModel):
    """One query's answer, best first."""

    query: str | int = Field(description="The text, or the number of the vector in the request.")
    mean_width: float = Field(description="Coordinates read per candidate.")
    hits: list[FoundHit]
    explain: Explanation | None = None


class SearchResponse(BaseModel):
    """One answer per query, in their order."""

    results: list[Answered]
    seconds: dict[str, float] = Field(description="encode, wait, search.")


class GivenDocument(Asked):
    """A document: a vector of the index's encoder, or a text for it."""

    id: DocumentId | None = Field(None, description="May be left out where the documents of the index are numbered.", examples=["d7"])
    title: StrictStr = ""
    text: StrictStr = ""
    vector: Vector | Base64 | None = Field(None, description="A vector, or the base64 of it as little-endian float32.")
    metadata: dict[str, Any] = {}


class DocumentsRequest(Asked):
    """Documents to write, all or none, in one commit."""

    documents: list[GivenDocument] = Field(min_length=1)
    mode: Literal["update", "add"] = Field("update", description="update replaces documents of the same ids; add refuses them.")


class FetchRequest(Asked):
    """Documents by their ids."""

    ids: list[DocumentId] = Field(min_length=1)
    vectors: bool = Field(False, description="Their stored vectors too: rotated and cut.")


class IdsRequest(Asked):
    """Documents by their ids."""

    ids: list[DocumentId] = Field(min_length=1)


class KnownResponse(BaseModel):
    """For each id, whether there is such a document."""

    known: list[bool]


class WrittenResponse(BaseModel):
    """What a write did; it is durable."""

    added: int
    replaced: int
    documents: int


class RemovedResponse(BaseModel):
    """How many documents were removed; it is durable."""

    removed: int
    documents: int


class StoredDocument(BaseModel):
    """What is known of a document."""

    id: str | int
    title: str = ""
    text: str = ""
    metadata: dict[str, Any] = {}
    vector: list[float] | None = None


class DocumentsResponse(BaseModel):
    """Documents, in the order asked for."""

    documents: list[StoredDocument]
    total: int


class FeedbackRequest(Asked):
    """A label: how well a document answers a query."""

    query: Text | Vector = Field(description="The text or the vector that was searched for.")
    document: DocumentId
    grade: float = Field(1.0, ge=-10, le=10, description="Above 0: relevant; 0 or below: not.")


class FeedbackResponse(BaseModel):
    """How many labels were taken since the service started."""

    recorded: int


class IndexResponse(BaseModel):
    """What is served."""

    name: str
    version: str
    documents: int
    encoder: str
    encoder_width: int
    width: int
    start_width: int
    target_width: int
    storage: str
    commit: int | None
    numbered: bool = Field(description="Whether documents have numbers for ids, and new ones may be sent without.")
    text: bool = Field(description="Whether queries and documents may be texts.")
    hybrid: bool = Field(description="Whether words are indexed, for hybrid search.")
    fields: list[str] = Field(description="Metadata of documents, for filters, as the first hundred have them.")
    writable: bool
    policies: list[str]
    tasks: list[str]
    fitted_documents: int
    limits: dict[str, float]


class Recipe(BaseModel):
    """A rotation that was tried, with its quality on dev queries at each width."""

    recipe: str
    steps: int
    mean: float
    widths: dict[int, float]


class TaperPoint(BaseModel):
    """What the taper costs and keeps on dev."""

    mean_width: float
    quality: float


class TaperCurve(BaseModel):
    """The taper from one start width, for one k."""

    start_width: int
    k: int
    points: list[TaperPoint]


class CardResponse(BaseModel):
    """The model card in figures."""

    dataset: str
    encoder: str
    labels: bool
    documents: int
    train_queries: int
    dev_queries: int
    measure: str
    chosen: str
    reason: str
    target_width: int
    recipes: list[Recipe]
    fixed: dict[int, float] = Field(description="Quality of each fixed width, as a share of the target width's.")
    taper: list[TaperCurve]
    card: str = Field(description="The card as Markdown.")


class Example(BaseModel):
    """A query to try."""

    text: str
    document: str | int = Field(description="The document it was taken from.")


class ExamplesResponse(BaseModel):
    """Queries to try, from titles and texts of the index."""

    examples: list[Example]


class WidthResponse(BaseModel):
    """The width that is enough at a corpus size, or why the data can't say."""

    documents: int
    k: int
    quantile: float
    width: int | None
    interval: Annotated[list[int], Field(min_length=2, max_length=2)] | None
    extrapolated: bool
    reason: str | None
    bytes_per_document: int | None
    memory_bytes: int | None
    full_width: int
    law: dict[str, float] | None
    measured: dict[str, int]


class QueryStats(BaseModel):
    """A recent query."""

    time: float
    policy: str
    k: int
    mean_width: float
    end_width: int | None = Field(description="Known of explained queries and fixed widths.")
    settled_width: int | None = Field(description="Known of explained queries.")
    bytes: int
    seconds: dict[str, float]


class StatsResponse(BaseModel):
    """Recent queries of this worker, oldest first, and totals since it started."""

    uptime: float
    queries: int
    batches: int
    mean_width: float | None
    recent: list[QueryStats]


class EmbeddingsRequest(BaseModel):
    """As OpenAI's API has it."""

    model_config = ConfigDict(strict=True)

    input: Text | Annotated[list[Text], Field(min_length=1)] | list[Whole] | list[list[Whole]] = Field(
        description="Texts. Tokens are refused: encoders have their own.", examples=["how do I count elements"]
    )
    model: Text = Field(description="The encoder's name, or adawidth; with :query after it for queries.", examples=["adawidth"])
    dimensions: FromOne | None = Field(None, description="Coordinates to keep; all of them without any.")
    encoding_format: Literal["float", "base64"] = "float"
    user: StrictStr | None = None


class Embedding(BaseModel):
    """One text's vector."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """Tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsResponse(BaseModel):
    """One vector per text, in their order."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class HealthResponse(BaseModel):
    """How the service is."""

    status: str
