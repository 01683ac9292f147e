"""The paper's collections from files in the formats they are published in."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from adawidth.errors import DataError, OptionError
from adawidth.formats import Columns, Text, read_qrels, read_texts, write_texts
from adawidth.formats.collections import Published, gather_texts, prepare_collection


def unpack(folder: Path, corpus: list[str], queries: list[str], **qrels: list[tuple[str, str, int]]) -> Path:
    """A BEIR folder as its zip unpacks: metadata in every line, a header and tabs in the labels."""
    (folder / "qrels").mkdir(parents=True)
    entries = [{"_id": name, "title": f"T {name}", "text": f"text of {name}", "metadata": {}} for name in corpus]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    asked = [{"_id": name, "text": f"query {name}", "metadata": {"url": "x"}} for name in queries]
    (folder / "queries.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in asked))
    for split, pairs in qrels.items():
        lines = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t{grade}" for q, d, grade in pairs)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


def ids(path: Path) -> list[str]:
    return [text.id for text in read_texts(path)]


def labels(folder: Path) -> dict[str, set]:
    return {file.stem: set(read_qrels(file).grades) for file in (folder / "qrels").iterdir()}


@pytest.fixture
def arguana(tmp_path: Path) -> Path:
    """40 debates of 3 to 8 arguments; every argument is a query and a document, its counter a document."""
    points = [f"{part}-debate{n}-{side}0{i}" for n in range(40) for part in (("test", "training")[n % 2],)
              for i in range(3 + n % 6) for side in ("pro" if i % 2 else "con",)]  # fmt: skip
    queries = [f"{point}a" for point in points]
    pairs = [(query, f"{query[:-1]}b", 1) for query in queries]
    return unpack(tmp_path / "arguana", [*queries, *(document for _, document, _ in pairs)], queries, test=pairs)


def test_arguana_is_halved_by_debates(arguana: Path, tmp_path: Path) -> None:
    prepare_collection("arguana", Published(arguana), tmp_path / "out")
    splits = labels(tmp_path / "out")
    assert len(splits["test"]) == 108  # of 216
    assert len(splits["train"]) + len(splits["dev"]) == 108
    assert abs(len(splits["dev"]) - 0.15 * 108) < 2
    debates = {split: {query.rpartition("-")[0] for query in queries} for split, queries in splits.items()}
    assert not debates["test"] & (debates["train"] | debates["dev"])
    assert not debates["train"] & debates["dev"]
    assert json.loads((tmp_path / "out" / "dataset.json").read_text()) == {"queries_are_documents": True}
    assert ids(tmp_path / "out" / "corpus.jsonl") == ids(arguana / "corpus.jsonl")


def test_arguana_has_a_split_for_every_seed(arguana: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        prepare_collection("arguana", Published(arguana, seed=seed), tmp_path / f"out{seed}")
    prepare_collection("arguana", Published(arguana), tmp_path / "again")
    assert labels(tmp_path / "out0") == labels(tmp_path / "again")
    assert labels(tmp_path / "out0") != labels(tmp_path / "out1")


def test_quora_trains_on_dev(tmp_path: Path) -> None:
    names = [str(n) for n in range(12)]
    source = unpack(tmp_path / "quora", names, names, dev=[("1", "2", 1), ("3", "4", 1)], test=[("5", "6", 1)])
    prepare_collection("quora", Published(source), tmp_path / "out")
    assert labels(tmp_path / "out") == {"train": {"1", "3"}, "test": {"5"}}


@pytest.fixture
def msmarco(tmp_path: Path) -> Path:
    corpus = [str(n) for n in range(400)]
    train = [(f"t{n}", str(n), 1) for n in range(0, 400, 2)]
    dev = [(f"d{n}", str(n), 1) for n in range(1, 60, 3)] + [("d1", "399", 0)]
    queries = [*(q for q, _, _ in train), *(f"d{n}" for n in range(1, 60, 3)), "stray"]
    return unpack(tmp_path / "msmarco", corpus, queries, train=train, dev=dev, test=[("stray", "7", 3)])


def test_msmarco_keeps_what_is_evaluated_and_a_uniform_sample(msmarco: Path, tmp_path: Path) -> None:
    prepare_collection("msmarco", Published(msmarco, documents=100), tmp_path / "out")
    kept = ids(tmp_path / "out" / "corpus.jsonl")
    relevant = {str(n) for n in range(1, 60, 3)}
    assert len(kept) == 100
    assert relevant <= set(kept)
    assert kept == sorted(kept, key=int)  # in the order of the file
    others = [int(name) for name in kept if name not in relevant]
    assert 120 < sum(others) / len(others) < 280  # from everywhere
    splits = labels(tmp_path / "out")
    assert splits["test"] == {f"d{n}" for n in range(1, 60, 3)}
    assert splits["train"] == {f"t{name}" for name in kept if int(name) % 2 == 0}
    assert set(ids(tmp_path / "out" / "queries.jsonl")) == splits["train"] | splits["test"]
    prepare_collection("msmarco", Published(msmarco, documents=100), tmp_path / "again")
    prepare_collection("msmarco", Published(msmarco, documents=100, seed=1), tmp_path / "other")
    assert ids(tmp_path / "again" / "corpus.jsonl") == kept
    assert ids(tmp_path / "other" / "corpus.jsonl") != kept


@pytest.mark.parametrize(("name", "splits"), [("scifact", "train test"), ("nfcorpus", "train dev test"), ("fiqa", "train dev test")])
def test_what_is_published_whole_stays_as_it_is(tmp_path: Path, name: str, splits: str) -> None:
    qrels = {split: [(split, "1", 2 if split == "test" else 1)] for split in splits.split()}
    source = unpack(tmp_path / name, ["1", "2"], splits.split(), **qrels)
    prepare_collection(name, Published(source), tmp_path / "out")
    assert labels(tmp_path / "out") == {split: {split} for split in splits.split()}
    assert read_qrels(tmp_path / "out" / "qrels" / "test.tsv").grades == {"test": {"1": 2.0}}
    assert list(read_texts(tmp_path / "out" / "corpus.jsonl")) == [Text("1", "text of 1", "T 1"), Text("2", "text of 2", "T 2")]


def okvqa_file(path: Path) -> Path:
    question = {"image_id": 297147, "question": "What game is played with this?", "question_id": 2971475}
    head = {"info": {"version": "1.0"}, "task_type": "Open-Ended", "data_type": "mscoco", "license": {}, "data_subtype": "val2014"}
    path.write_text(json.dumps({**head, "questions": [question, {**question, "image_id": 339761, "question_id": 3397615}]}))
    return path


def aokvqa_file(path: Path) -> Path:
    answers = {"choices": ["red", "blue", "green", "grey"], "correct_choice_idx": 3, "direct_answers": ["grey"] * 10}
    further = {"difficult_direct_answer": False, "rationales": ["It is overcast."]}
    asked = {"split": "val", "image_id": 461751, "question_id": "22jbM6gDxdaMaunuzgrsBB", "question": "What colour is the sky?"}
    path.write_text(json.dumps([{**asked, **answers, **further}]))
    return path


@pytest.mark.parametrize(
    ("name", "write", "images", "first"),
    [
        ("okvqa", okvqa_file, ["val2014/COCO_val2014_000000297147.jpg", "val2014/COCO_val2014_000000339761.jpg"], "2971475"),
        ("aokvqa", aokvqa_file, ["000000461751.jpg"], "22jbM6gDxdaMaunuzgrsBB"),
    ],
)
def test_visual_questions(tmp_path: Path, name: str, write: Callable[[Path], Path], images: list[str], first: str) -> None:
    source = unpack(tmp_path / "mine", ["s1", "s2"], [], test=[(first, "s1", 1)])
    questions = write(tmp_path / "questions.json")
    for image in images[:1]:
        (tmp_path / "coco" / image).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "coco" / image).write_bytes(b"jpg")
    published = Published(source, [questions], tmp_path / "coco")
    if len(images) > 1:
        with pytest.raises(DataError, match=r"COCO_val2014_000000339761\.jpg is not there; 1 of 2 questions have none"):
            prepare_collection(name, published, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        (tmp_path / "coco" / images[1]).write_bytes(b"jpg")
    prepare_collection(name, published, tmp_path / "out")
    asked = list(read_texts(tmp_path / "out" / "queries.jsonl"))
    assert asked[0].id == first
    assert asked[0].text.startswith("What ")
    assert [Path(text.image) for text in asked] == [tmp_path / "coco" / image for image in images]
    assert labels(tmp_path / "out") == {"test": {first}}
    assert ids(tmp_path / "out" / "corpus.jsonl") == ["s1", "s2"]


def test_what_is_wrong_is_said(tmp_path: Path, arguana: Path) -> None:
    with pytest.raises(OptionError, match="there is no collection 'hotpot'; there are scifact, nfcorpus"):
        prepare_collection("hotpot", Published(arguana), tmp_path / "out")
    with pytest.raises(OptionError, match="--questions FILE --images FOLDER"):
        prepare_collection("okvqa", Published(arguana), tmp_path / "out")
    with pytest.raises(DataError, match=r"qrels/dev\.tsv: there is no such file"):
        prepare_collection("quora", Published(arguana), tmp_path / "out")
    with pytest.raises(DataError, match=r"there is no corpus\.jsonl in it"):
        prepare_collection("scifact", Published(tmp_path), tmp_path / "out")
    (tmp_path / "images").mkdir()
    published = Published(arguana, [aokvqa_file(tmp_path / "q.json")], tmp_path / "images")
    with pytest.raises(DataError, match="expected a JSON dict, found a list: is it another collection's file"):
        prepare_collection("okvqa", published, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_gathering_again_keeps_vectors_and_refuses_other_texts(tmp_path: Path) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "data"
    table.write_text("sku,blurb\n1,bright lamp\n2,oak table\n")
    gather_texts(out, table, columns=Columns(text="blurb", id="sku"))
    assert list(read_texts(out / "corpus.jsonl")) == [Text("1", "bright lamp"), Text("2", "oak table")]
    (out / "embeddings").mkdir()
    gather_texts(out, table, columns=Columns(text="blurb", id="sku"))
    assert (out / "embeddings").exists()
    table.write_text("sku,blurb\n1,dim lamp\n")
    with pytest.raises(OptionError, match="holds something else: choose another --out or add --force"):
        gather_texts(out, table, columns=Columns(text="blurb", id="sku"))
    write_texts(tmp_path / "q.jsonl", [Text("q", "lamp?")])
    gather_texts(out, table, tmp_path / "q.jsonl", Columns(text="blurb", id="sku"), force=True)
    assert not (out / "embeddings").exists()
    assert ids(out / "queries.jsonl") == ["q"]
