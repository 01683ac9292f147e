"""Damaged, crafted and endless input files: each reader refuses with one line, or reads what can be used."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from adawidth.data import Vectors
from adawidth.errors import DataError
from adawidth.formats import files, load_dataset, read_ids, read_qrels, read_run, read_texts, read_vectors
from adawidth.formats.collections import Published, prepare_collection
from faults.reader_fuzz import FORMATS, ROWS, documents_in, mutated, packed, texts_in, vectors_in

MUTATIONS = 200


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_mutations_are_refused_or_read(name: str, tmp_path: Path) -> None:
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    make, read = FORMATS[name]
    data, file = make(), tmp_path / name
    file.write_bytes(data)
    read(file)
    refused: dict[int, str] = {}
    for seed in range(MUTATIONS):
        file.write_bytes(mutated(data, np.random.default_rng(seed)))
        try:
            read(file)
        except DataError as error:
            refused[seed] = str(error)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    assert len(refused) > MUTATIONS / 20
    assert not [(seed, said) for seed, said in refused.items() if name not in said or "\n" in said]


FOOTERS = """
import sys
from adawidth.errors import DataError
from adawidth.formats import read_vectors
from pathlib import Path

file = Path(sys.argv[1])
data = file.read_bytes()
refused = 0
for place in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data)):
    file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    try:
        read_vectors(file)
    except DataError:
        refused += 1
print(refused)
"""


def test_no_byte_of_a_parquet_footer_ends_the_process(tmp_path: Path) -> None:
    """pyarrow calls terminate() when asked for a column whose statistics contradict the schema."""
    pytest.importorskip("pyarrow")
    file = tmp_path / "x.parquet"
    file.write_bytes(FORMATS["x.parquet"][0]())
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FOOTERS, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100


def test_a_page_that_unpacks_to_more_than_the_footer_says_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "x.parquet"
    file.write_bytes(packed({"id": ["a"], "text": ["x" * 3_000_000]}, compression="zstd", use_dictionary=False, write_statistics=False))
    size = parquet.ParquetFile(file).metadata.row_group(0).column(1).total_uncompressed_size
    data, said, other = file.read_bytes(), varint(2 * size), varint(2 * 40, len(varint(2 * size)))
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert said in data[footer:]
    file.write_bytes(data[:footer] + data[footer:].replace(said, other))
    assert parquet.ParquetFile(file).metadata.row_group(0).column(1).total_uncompressed_size == 40
    monkeypatch.setattr("adawidth.formats.parquet.PLAUSIBLE", 2**20)
    with pytest.raises(DataError, match=r"x.parquet: \d+ bytes (say they hold|unpack to)"):
        texts_in(file)


def varint(number: int, length: int = 1) -> bytes:
    """A number as Thrift's compact protocol writes it, in so many bytes at least."""
    parts: list[int] = []
    while number or len(parts) < length:
        parts.append(number & 127)
        number >>= 7
    return bytes([*(part | 128 for part in parts[:-1]), parts[-1]])


def head(shape: str, descr: str = "'<f4'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "crafted",
    [
        head("(4611686018427387904, 4)"),  # 2**64 bytes: nothing, in 64 bits
        head("(-1, 32)"),
        head("(2305843009213693952, 32)") + b"\0" * 128,
        head("(1000000000000, 32)", "'V0'"),
        head("(2, 32)", "'|O'"),
        head("(1,)" * 900)[:2_000],
        head("((((((((((1, 2), 3)"),
        head("[2, 32]"),
        head("(2, 32)", "[('a', '<f4', (2,))]") + b"\0" * 512,
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY\x09\x00\x10\x00{'descr': '<f4'}",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_crafted_heads_of_arrays_are_refused(crafted: bytes, packed: bool, tmp_path: Path) -> None:
    file = tmp_path / ("x.npz" if packed else "x.npy")
    if packed:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("vectors.npy", crafted)
    else:
        file.write_bytes(crafted)
    with pytest.raises(DataError, match=file.name):
        read_vectors(file)


def test_a_packed_array_that_unpacks_to_far_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "x.npz", vectors=np.zeros((20_000, 256), np.float32))
    monkeypatch.setattr("adawidth.formats.vectors.PLAUSIBLE", 2**20)
    with pytest.raises(DataError, match=r"x.npz: 'vectors.npy' unpacks \d+ bytes to 20480128: these are no vectors"):
        read_vectors(tmp_path / "x.npz")


def test_packed_text_that_unpacks_to_far_too_much_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.ids.gz").write_bytes(gzip.compress(b"a\n" * 3_000_000))
    (tmp_path / "y.ids.gz").write_bytes(gzip.compress(b"a" * 3_000_000))
    monkeypatch.setattr(files, "PLAUSIBLE", 2**20)
    with pytest.raises(DataError, match=r"x.ids.gz:\d+: this line is \d+ bytes into \d+ packed ones"):
        read_ids(tmp_path / "x.ids.gz")
    monkeypatch.setattr(files, "LONGEST", 2**20)
    with pytest.raises(DataError, match=r"y.ids.gz:1: this line is over 1048576 bytes long"):
        read_ids(tmp_path / "y.ids.gz")


DEEP = "[" * 200_000 + "]" * 200_000


def test_deep_json_is_refused_wherever_json_is_read(dataset_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"_id": "a", "text": {DEEP}}}\n')
    with pytest.raises(DataError, match=r"x.jsonl:1: expected a JSON object"):
        list(read_texts(tmp_path / "x.jsonl"))
    np.save(tmp_path / "x.npy", ROWS[:1])
    (tmp_path / "x.ids").write_text("a\n")
    with pytest.raises(DataError, match=r"x.jsonl:1: expected"):
        documents_in(tmp_path / "x.npy")
    (tmp_path / "questions.json").write_text(DEEP)
    with pytest.raises(DataError, match=r"questions.json: this is no JSON: it is nested too deeply"):
        prepare_collection("aokvqa", Published(tmp_path, [tmp_path / "questions.json"], tmp_path), tmp_path / "out")
    for name in ("dataset.json", "embeddings/tiny/meta.json"):
        (dataset_folder / name).write_text(DEEP)
        with pytest.raises(DataError, match=f"{name}: not JSON"):
            load_dataset(dataset_folder)
        (dataset_folder / name).unlink()


def test_questions_whose_image_is_no_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text('[{"question_id": 1, "question": "what?", "image_id": "../../x"}]')
    with pytest.raises(DataError, match=r"question 0 has image_id '../../x', expected at most 12 digits"):
        prepare_collection("aokvqa", Published(tmp_path, [tmp_path / "questions.json"], tmp_path), tmp_path / "out")


def test_ids_that_are_not_utf8_are_refused_with_their_row(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"vectors": ROWS[:2], "ids": np.frombuffer(b"fine\n\xff\xfe", np.uint8)}, tmp_path / "x.safetensors")
    np.savez(tmp_path / "x.npz", vectors=ROWS[:2], ids=np.array([b"fine", b"\xff"]))
    np.savez(tmp_path / "y.npz", vectors=ROWS[:2], ids=np.array(["fine", "\ud800"]))
    for name in ("x.safetensors", "x.npz", "y.npz"):
        with pytest.raises(DataError, match=f"{name}: the id of row 1 is not UTF-8, found "):
            read_vectors(tmp_path / name)
    (tmp_path / "x.jsonl").write_text('{"_id": "\\ud800", "text": "half a character"}\n')
    with pytest.raises(DataError, match=r"x.jsonl:1: expected a JSON object"):
        list(read_texts(tmp_path / "x.jsonl"))


def test_ids_as_utf8_bytes_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", vectors=ROWS[:2], ids=np.array([b"fine", "zwölf".encode()]))
    assert list(read_vectors(tmp_path / "x.npz").ids) == ["fine", "zwölf"]


def test_a_row_without_an_id_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"id": ["a", None], "v": ROWS[:2].tolist()}), tmp_path / "x.parquet")
    for read in (vectors_in, documents_in):
        with pytest.raises(DataError, match=r"x.parquet: row 1 has no id"):
            read(tmp_path / "x.parquet")


def test_numbers_wider_than_double_are_read_as_double() -> None:
    assert Vectors.of(ROWS.astype(np.longdouble)).values.dtype == np.float64


def test_numbers_that_numpy_has_not_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    text = json.dumps({"vectors": {"dtype": "BF16", "shape": [2, 36], "data_offsets": [0, 144]}}).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(144))
    with pytest.raises(DataError, match=r"x.safetensors: .* not of float16, 32 or 64"):
        read_vectors(file)


@pytest.mark.parametrize("length", [1e-13, 1e-19, 1e-30])
def test_a_vector_of_almost_no_length_is_refused(length: float) -> None:
    rows = ROWS.copy()
    rows[7] *= length / np.linalg.norm(rows[7])
    with pytest.raises(DataError, match=r"row 7 \(id 7\) has (a length below 1e-12|only zeros)"):
        Vectors.of(rows)


@pytest.mark.parametrize("name", ["x.npy", "x.parquet", "x.jsonl", "x.ids", "x.ids.gz", "test.tsv", "x.run", "questions.json"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    os.mkfifo(file)
    readers = {"x.npy": read_vectors, "x.parquet": documents_in, "x.jsonl": texts_in, "test.tsv": read_qrels, "x.run": read_run}

    def ask(path: Path) -> None:
        prepare_collection("aokvqa", Published(tmp_path, [path], tmp_path), tmp_path / "out")

    with pytest.raises(DataError, match=name):
        (ask if name == "questions.json" else readers.get(name, read_ids))(file)
