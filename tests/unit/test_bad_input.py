"""Every kind of bad data gets one error that names the file, the row or id, both numbers that disagree, and the way out."""

import gzip
import pickle
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from adawidth.data import Dataset, Qrels, Vectors
from adawidth.errors import AdaWidthError, DataError
from adawidth.formats import load_dataset, read_ids, read_qrels, read_run, read_vectors, write_vectors
from adawidth.formats.documents import of_dataset


def refused(message: str, call: Callable[[], object], kind: type[AdaWidthError] = DataError) -> None:
    """The call raises one line with these words in this order ("…" stands for anything)."""
    pattern = ".*".join(re.escape(part) for part in message.split("…"))
    with pytest.raises(kind, match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None or caught.value.__cause__


GOOD = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)


# Values


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(bad: float) -> None:
    values = GOOD.copy()
    values[4, 7] = bad
    refused(
        "corpus.npy: row 4 (id 'e') has NaN or infinite values; 1 of rows 0 to 5 have: drop or re-encode",
        lambda: Vectors.of(values, list("abcdef"), name="corpus.npy"),
    )


def test_too_large_for_32_bits() -> None:
    refused("row 1 (id 1) has NaN or infinite", lambda: Vectors.of(np.array([[1.0] * 32, [1e300] * 32])))


def test_zero_vector() -> None:
    values = GOOD.copy()
    values[[2, 5]] = 0
    refused("x.npy: row 2 (id 2) has only zeros; 2 of rows 0 to 5 have", lambda: Vectors.of(values, name="x.npy"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (GOOD[None], "v: expected one vector per row (2 dimensions), found 3"),
        (np.ones((2, 40), np.int64), "v: expected floating-point numbers, found int64: convert to float32 or float16"),
        (GOOD[:, :0], "v: there are no vectors, 6 rows of width 0"),
        (GOOD[:0], "v: there are no vectors, 0 rows of width 40"),
        ([["a"] * 40], "v: expected one vector of numbers per row, all of one width"),
        ([[1.0, 2.0], [1.0]], "v: expected one vector of numbers per row, all of one width"),
        (7, "v: expected one vector of numbers per row"),
    ],
)
def test_not_vectors(values: object, message: str) -> None:
    refused(message, lambda: Vectors.of(values, name="v"))


def test_queries_of_another_width() -> None:
    documents, queries = Vectors.of(GOOD, name="corpus.npy"), Vectors.of(GOOD[:, :36], name="queries.npy")
    refused(
        "queries.npy: queries are 36 wide, documents (corpus.npy) 40: encode both with one encoder", lambda: Dataset(documents, queries)
    )


# Ids


def test_ids_twice() -> None:
    refused("v: id 'b' stands in rows 1 and 4: ids must be unique", lambda: Vectors.of(GOOD, list("abcdbf"), name="v"))


def test_ids_too_few() -> None:
    refused("v: 6 vectors but 5 ids: give one per row", lambda: Vectors.of(GOOD, list("abcde"), name="v"))


def test_ids_of_the_folder_too_many(dataset_folder: Path) -> None:
    ids = dataset_folder / "embeddings" / "tiny" / "corpus.ids"
    ids.write_text(ids.read_text() + "one-more\n")
    refused("corpus.npy: 480 vectors but 481 ids", lambda: load_dataset(dataset_folder))


def test_an_empty_line_among_ids(tmp_path: Path) -> None:
    (tmp_path / "x.ids").write_text("a\n\nb\n")
    refused("x.ids:2: expected an id, found an empty line", lambda: read_ids(tmp_path / "x.ids"))


def test_no_ids_anywhere(dataset_folder: Path) -> None:
    (dataset_folder / "embeddings" / "tiny" / "queries.ids").unlink()
    refused(
        "queries.npy: there are no ids: add …tiny/queries.ids with one id per line, or …queries.jsonl", lambda: load_dataset(dataset_folder)
    )


def test_texts_and_vectors_disagree(dataset_folder: Path) -> None:
    (dataset_folder / "embeddings" / "tiny" / "corpus.ids").unlink()
    (dataset_folder / "corpus.jsonl").write_text('{"_id": "d0", "text": "…"}\n')
    refused("corpus.npy: 480 vectors but 1 texts in …corpus.jsonl: encode again", lambda: load_dataset(dataset_folder))


# Labels and runs


def test_labels_of_unknown_documents(dataset_folder: Path) -> None:
    file = dataset_folder / "qrels" / "test.tsv"
    query = file.read_text().split("\n")[1].split("\t")[0]
    file.write_text(file.read_text() + f"{query}\tlost\t1\n")
    refused(
        f"test.tsv: query '{query}' names document 'lost', which has no vector; 1 of 121 judgements "
        "name documents that are not in …corpus.npy: encode them, or leave them out with skip_unknown (--skip-unknown)",
        lambda: load_dataset(dataset_folder),
    )


def test_labels_of_unknown_queries(dataset_folder: Path) -> None:
    file = dataset_folder / "qrels" / "dev.tsv"
    file.write_text(file.read_text() + "stranger\td0\t1\n")
    refused(
        "dev.tsv: query 'stranger' has no vector; 1 of 41 queries have none in …queries.npy: "
        "encode them, or leave them out with skip_unknown (--skip-unknown)",
        lambda: load_dataset(dataset_folder),
    )


def test_labels_that_name_rows_as_strings() -> None:
    """Ids are quoted as they are, so that their types can be seen."""
    documents, queries = Vectors.of(GOOD, name="corpus"), Vectors.of(GOOD, name="queries")
    refused("qrels: query '0' has no vector; 1 of 1 queries have none in queries", lambda: Qrels({"0": {0: 1.0}}).known(queries, documents))


def test_labels_of_another_dataset(dataset_folder: Path) -> None:
    (dataset_folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nx\ty\t1\n")
    refused("dev.tsv: none of its judgements has both vectors", lambda: load_dataset(dataset_folder, skip_unknown=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q\td\t1\n", "x.tsv:1: expected the header query-id corpus-id score (with tabs), found 'q\\\\td\\\\t1'"),
        (
            "query-id\tcorpus-id\tscore\nq\td\t1\nq\td\n",
            "x.tsv:3: expected 3 columns with tabs (query-id corpus-id score), found 2: 'q\\\\td'",
        ),
        ("query-id\tcorpus-id\tscore\nq\t\t1\n", "x.tsv:2: expected 3 columns"),
        ("query-id\tcorpus-id\tscore\n\n", "x.tsv:2: expected 3 columns with tabs (query-id corpus-id score), found an empty line"),
        ("query-id\tcorpus-id\tscore\nq\td\tgood\n", "x.tsv:2: expected a grade, a number, found 'good'"),
        ("query-id\tcorpus-id\tscore\nq\td\tnan\n", "x.tsv:2: expected a grade, a number, found 'nan'"),
        ("query-id\tcorpus-id\tscore\n", "x.tsv: there are no judgements in it: add some, or remove the file"),
        ("", "x.tsv: there are no judgements in it"),
    ],
)
def test_malformed_tsv(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text(text)
    refused(message.replace("\\\\", "\\"), lambda: read_qrels(tmp_path / "x.tsv"))


def test_malformed_trec_lines(tmp_path: Path) -> None:
    qrels, run = tmp_path / "x.qrels.gz", tmp_path / "x.trec"
    qrels.write_bytes(gzip.compress(b"q 0 d 1\nq d 1\n"))
    refused("x.qrels.gz:2: expected 4 columns (query 0 document grade), found 3: 'q d 1'", lambda: read_qrels(qrels))
    run.write_text("q Q0 d 1 0.5\n")
    refused("x.trec:1: expected 6 columns (query Q0 document rank score tag), found 5", lambda: read_run(run))
    run.write_text("q Q0 d 1 0.5 t\nq Q0 d 2 0.4 t\n")
    refused("x.trec:2: document 'd' stands twice in the results of query 'q'", lambda: read_run(run))
    run.write_text("q Q0 d 1 high t\n")
    refused("x.trec:1: expected a score, a number, found 'high'", lambda: read_run(run))


@pytest.mark.parametrize("line", ["no JSON", '["_id"]', '{"id": "d0"}', '{"_id": null}', "7", ""])
def test_malformed_texts(line: str, dataset_folder: Path) -> None:
    (dataset_folder / "corpus.jsonl").write_text('{"_id": "d0", "text": "…"}\n' + line + "\n")
    refused(f'corpus.jsonl:2: expected {{"_id": …, "text": …}}, found {line!r}', lambda: list(of_dataset(dataset_folder).batches()))


@pytest.mark.parametrize("text", ["{", "[]", '{"queries_are_documents": "yes"}'])
def test_malformed_dataset_json(text: str, dataset_folder: Path) -> None:
    (dataset_folder / "dataset.json").write_text(text)
    refused("dataset.json: ", lambda: load_dataset(dataset_folder))


# Folders


def test_no_such_folder(tmp_path: Path) -> None:
    refused("nowhere: there is no such folder: give a dataset folder", lambda: load_dataset(tmp_path / "nowhere"))
    refused("embeddings: there are no vectors: expected …embeddings/<encoder>/corpus.npy", lambda: load_dataset(tmp_path))


def test_which_encoder(dataset_folder: Path) -> None:
    (dataset_folder / "embeddings" / "other").mkdir()
    refused("there are 2 encoders, other, tiny: choose one (--encoder)", lambda: load_dataset(dataset_folder))
    refused("there is no encoder 'large', found other, tiny: choose one", lambda: load_dataset(dataset_folder, encoder="large"))
    refused("other: expected one file corpus with .npy, .npz, …, found 0 (nothing)", lambda: load_dataset(dataset_folder, encoder="other"))


def test_two_files_of_vectors(dataset_folder: Path) -> None:
    home = dataset_folder / "embeddings" / "tiny"
    write_vectors(home / "corpus.npz", read_vectors(home / "corpus.npy"))
    refused(
        "expected one file corpus with …, found 2 (corpus.ids, corpus.npy, corpus.npz, queries.ids, queries.npy)",
        lambda: load_dataset(dataset_folder),
    )


# Damaged files


def test_files_that_are_not_there_or_of_no_known_kind(tmp_path: Path) -> None:
    refused("x.npy: there is no such file", lambda: read_vectors(tmp_path / "x.npy"))
    refused("x.qrels: there is no such file", lambda: read_qrels(tmp_path / "x.qrels"))
    refused("x.pkl: vectors are read from .npy, .npz, .safetensors, .parquet files, this is .pkl", lambda: read_vectors(tmp_path / "x.pkl"))
    refused("x.csv: vectors are written to .npy, …, this is .csv", lambda: write_vectors(tmp_path / "x.csv", Vectors.of(GOOD)))


class Trap:
    """Unpickling this fails the test."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("something was unpickled",))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    trap = np.array([[Trap()] * 40], dtype=object)
    np.save(tmp_path / "x.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "x.npz", vectors=trap)
    refused(
        "x.npy: this .npy holds pickled Python objects, which are never loaded: save it as a float32",
        lambda: read_vectors(tmp_path / "x.npy"),
    )
    refused("x.npz: this holds pickled Python objects, which are never loaded", lambda: read_vectors(tmp_path / "x.npz"))
    for suffix in (".npy", ".npz", ".safetensors", ".parquet"):
        (tmp_path / f"y{suffix}").write_bytes(pickle.dumps(Trap()))
        refused(f"y{suffix}: ", partial(read_vectors, tmp_path / f"y{suffix}"))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
def test_truncated_at_every_place(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"x{suffix}"
    write_vectors(file, Vectors.of(GOOD))
    whole = file.read_bytes()
    for size in [*range(0, len(whole), 41), len(whole) - 1]:
        file.write_bytes(whole[:size])
        refused(f"{file}: ", lambda: read_vectors(file))


def test_truncated_files_tell_both_sizes(tmp_path: Path) -> None:
    for suffix in (".npy", ".safetensors"):
        file = tmp_path / f"x{suffix}"
        write_vectors(file, Vectors.of(GOOD))
        whole = file.read_bytes()
        file.write_bytes(whole[:-100])
        refused(f"{file}: expected {len(whole)} bytes, found {len(whole) - 100}: the file is cut off", partial(read_vectors, file))
        file.write_bytes(whole + b"more")
        refused(f"{file}: expected {len(whole)} bytes, found {len(whole) + 4}", partial(read_vectors, file))


def test_damaged_archives(tmp_path: Path) -> None:
    for suffix in (".npz", ".parquet"):
        file = tmp_path / f"x{suffix}"
        write_vectors(file, Vectors.of(GOOD))
        damaged = bytearray(file.read_bytes())
        damaged[len(damaged) // 3 : len(damaged) // 3 + 8] = b"\xff" * 8
        file.write_bytes(damaged if suffix == ".npz" else damaged[:-4] + b"????")
        refused(f"{file}: this {suffix} file is damaged or cut off ({len(damaged)} bytes)", partial(read_vectors, file))


def test_archives_without_vectors(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=GOOD, b=GOOD)
    refused(
        "x.npz: expected an array called 'vectors' or only one with 2 dimensions, found a (6, 40), b (6, 40)",
        lambda: read_vectors(tmp_path / "x.npz"),
    )
    safetensors.numpy.save_file({"bias": GOOD[0]}, tmp_path / "x.safetensors")
    refused("x.safetensors: expected an array called 'vectors' …, found bias (40,)", lambda: read_vectors(tmp_path / "x.safetensors"))


def test_parquet_that_is_no_table_of_vectors(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "x.parquet"
    rows = GOOD.astype(float).tolist()

    def write(**columns: object) -> None:
        parquet.write_table(pyarrow.table(columns), file)

    write(id=["a"] * 6)
    refused("x.parquet: expected one column of lists of floats, found 0 among id (string)", lambda: read_vectors(file))
    write(a=rows, b=rows)
    refused("x.parquet: expected one column of lists of floats, found 2 among a (list", lambda: read_vectors(file))
    write(a=[*rows[:3], rows[3][:33], *rows[4:]])
    refused("x.parquet: row 3 is 33 wide, row 0 40: all vectors need one width", lambda: read_vectors(file))
    write(a=[*rows[:2], None, *rows[3:]])
    refused("x.parquet: row 2 has no vector, 1 rows have none: drop or re-encode", lambda: read_vectors(file))
    write(a=[*rows[:4], [*rows[4][:39], None], rows[5]])
    refused("x.parquet: row 4 (id 4) has NaN", lambda: read_vectors(file))
    write(a=pyarrow.array([], pyarrow.list_(pyarrow.float32())))
    refused("x.parquet: there are no vectors, 0 rows of width 0", lambda: read_vectors(file))


def test_text_that_is_cut_off_or_no_utf8(tmp_path: Path) -> None:
    file = tmp_path / "x.ids.gz"
    whole = gzip.compress("".join(f"{i}\n" for i in np.random.default_rng(0).integers(10**9, size=2000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    refused(f"x.ids.gz: damaged or cut off behind line …({len(whole) // 2} bytes", lambda: read_ids(file))
    file.write_bytes(b"no gzip")
    refused("x.ids.gz: damaged or cut off behind line 0 (7 bytes", lambda: read_ids(file))
    (tmp_path / "x.ids").write_bytes("gut\nübel\n".encode("latin-1"))
    refused("x.ids:2: expected UTF-8, found byte 0xfc: convert the file to UTF-8", lambda: read_ids(tmp_path / "x.ids"))


# Writing


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
def test_a_disk_that_takes_no_more(suffix: str, tmp_path: Path) -> None:
    """A process that may write 4,096 bytes a file: one line, nothing left behind, the old file as it was."""
    file = tmp_path / f"x{suffix}"
    file.write_bytes(b"old")
    script = (
        "import sys, numpy as np; from adawidth.data import Vectors, unit; from adawidth.formats import write_vectors; "
        "from adawidth.errors import DataError\n"
        "vectors = Vectors.of(unit(np.random.default_rng(0).random((100, 64))))\n"
        "try: write_vectors(sys.argv[1], vectors)\n"
        "except DataError as error: sys.exit(str(error))"
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    command = [sys.executable, "-B", "-c", script, str(file)]
    done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(rf"{re.escape(str(file))}: not written, .*choose another path \(--out\)\n", done.stderr)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
