"""Plans against real indexes: what is foretold of memory and disk is what an index takes; tables are checked before they are believed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, Vectors, plan
from adawidth.cli.app import app
from adawidth.data import unit
from adawidth.errors import ArtifactError, OptionError
from adawidth.index.codes import WALKED, chosen
from adawidth.planning import bench, memory
from adawidth.planning.memory import KEPT, STORAGES, SUMS, Shape
from adawidth.planning.table import SCANNED, STARTS, Scan, Table, load, store
from adawidth.sizes import in_bytes, in_words
from adawidth.types import BYTES

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
TABLE = Table(
    "a machine", "0.2.0", {(storage, start): Scan((1_000, 100_000), (1e-4, 1e-3)) for storage in SCANNED for start in STARTS},
    candidate=2e-8, coordinate=2e-10, product=6e-11, call=1e-4,
)  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return unit((np.random.default_rng(0).standard_normal((6_000, 192)) * np.exp(-np.arange(192) / 40)).astype(np.float32))


@pytest.fixture(scope="module")
def model(rows: np.ndarray) -> AdaWidth:
    return AdaWidth.fit(rows[:1_500], recipe="pca")


@pytest.mark.parametrize("keep", [None, 96])
@pytest.mark.parametrize("storage", STORAGES)
def test_memory_and_disk_are_those_of_a_real_index(
    storage: str, keep: int | None, model: AdaWidth, rows: np.ndarray, tmp_path: Path
) -> None:
    documents = Vectors.of(rows, [f"{row:08}" for row in range(len(rows))])
    with model.index(documents, tmp_path / "index", storage=storage, keep=keep) as index:
        codes = index.store.view.segments[0].codes
        option = next(one for one in plan(len(rows), model=model, keep=keep, table=TABLE).options if one.storage == storage)
        shape = Shape(storage, model.width, option.keep, option.start, option.target)
        assert shape.codes == codes.bytes_per_document
        assert shape.coded == codes.width
        ranks, lengths = index.store.view.documents.tie_rank, index.store.view.norms(option.target)
        assert ranks.itemsize + lengths.itemsize + index.store.view.alive.itemsize == KEPT
        written = [file for file in (tmp_path / "index").rglob("*") if file.is_file() and file.parent.name != "model"]
        constant = sum(a.nbytes for name, a in codes.arrays().items() if name in ("turn", "levels", "trained", "centres", "entries"))
        assert option.disk_bytes == pytest.approx(sum(file.stat().st_size for file in written) - constant, rel=0.05)


@pytest.mark.parametrize("storage", ["pq4", "ivf"])
def test_memory_is_what_a_process_was_found_to_hold(storage: str) -> None:
    measured = json.loads((RESULTS / "resident.json").read_text())["bytes_per_document"][storage]
    assert Shape(storage, 256, 256, 64, 256).codes == measured["codes"]
    assert Shape(storage, 256, 256, 64, 256).memory == pytest.approx(measured["resident"], rel=0.05)


def test_the_choice_is_that_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    for documents in (1, 20_000, 20_001, 199_999, 200_000):
        assert plan(documents, 384, table=TABLE).choice.storage == chosen("auto", documents).storage


@pytest.mark.parametrize("storage", ["pq4", "ivf", "graph"])
@pytest.mark.parametrize("size", BYTES)
def test_bytes_that_are_asked_for_are_planned(storage: str, size: int, model: AdaWidth, rows: np.ndarray, tmp_path: Path) -> None:
    with model.index(rows[:1_000], tmp_path / "index", storage=storage, bytes_per_document=size) as index:
        codes = index.store.view.segments[0].codes
    found = plan(1_000, model=model, bytes_per_document=size, table=TABLE)
    option = next(one for one in found.options if one.storage == storage)
    assert option.bytes_per_document == codes.bytes_per_document + KEPT + SUMS
    usual = next(one for one in plan(1_000, model=model, table=TABLE).options if one.storage == storage)
    if 2 * size != option.start:
        assert (option.milliseconds < usual.milliseconds) == (2 * size < option.start)
    with pytest.raises(OptionError, match="is none of 16, 24, 32, 48"):
        plan(1_000, model=model, bytes_per_document=17, table=TABLE)


def test_memory_that_is_told_of_may_hold_a_graph() -> None:
    graph = plan(2e5, 384, memory="1GB", table=TABLE)
    assert graph.choice.storage == "graph"
    assert "storage graph" in graph.sentence
    assert plan(1.9e5, 384, memory="100MB", table=TABLE).choice.storage == "pq4"
    assert plan(WALKED - 1, 384, memory="1GB", table=TABLE).choice.storage == "pq4"


def test_a_small_memory_takes_small_codes_and_none_at_all_says_how_many_fit() -> None:
    small = plan(10_000, 384, memory=5e5, table=TABLE)
    assert (small.choice.storage, small.choice.memory_bytes) == ("pq4", 470_000)
    none = plan(10e6, 384, memory=1e6, table=TABLE)
    assert none.choice is None
    assert "21,276 documents" in none.changes[0]
    assert "470 machines" in none.changes[0]
    assert none.sentence.startswith("Nothing fits 10,000,000 documents")


def test_a_short_time_is_told_as_far_as_it_goes() -> None:
    found = plan(10e6, 384, milliseconds=0.5, table=TABLE)
    assert found.choice is None
    assert "graph is the fastest" in found.changes[0]
    fast, little = plan(1e5, 384, table=TABLE).options[0], plan(1e5, 384, memory=1e9, milliseconds=100, table=TABLE)
    assert little.choice is not None
    assert fast.milliseconds == pytest.approx(1e3 * (1e-4 + 1e-3 + 6e-11 * 384 * 384 + 500 * (2e-8 + 80 * 2e-10)))


def test_a_model_brings_widths_and_quality(model: AdaWidth) -> None:
    found = plan(1e5, model=model, table=TABLE)
    assert found.options[0].target == model.policies.taper.target
    assert found.options[0].start <= found.options[0].mean_width <= found.options[0].target
    assert found.quality["kept"] == 0.99
    assert plan(1e5, 384, table=TABLE).quality is None
    json.loads(json.dumps(found.to_json(), allow_nan=False))


def test_a_scan_is_straight_between_and_beyond_its_sizes() -> None:
    scan = Scan((100, 200, 1_000), (1.0, 2.0, 2.0))
    assert [scan.at(n) for n in (100, 150, 200, 600, 5_000)] == [1.0, 1.5, 2.0, 2.0, 2.0]
    assert scan.at(0) == 0.0
    assert Scan((100, 200), (1.0, 2.0)).at(1_000) == 10.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"documents": 0, "dimensions": 384}, "0 documents are not between 1"),
        ({"documents": float("nan"), "dimensions": 384}, "nan documents"),
        ({"documents": 10}, "give the number of dimensions"),
        ({"documents": 10, "dimensions": 0}, "0 dimensions are not between 1"),
        ({"documents": 10, "dimensions": 384, "memory": -1}, "memory -1 is no size"),
        ({"documents": 10, "dimensions": 384, "milliseconds": 0}, "milliseconds 0 is not above 0"),
        ({"documents": 10, "dimensions": 384, "keep": 400}, "keep 400 is not between"),
    ],
)
def test_what_can_not_be_planned_is_told(options: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        plan(**options, table=TABLE)


def test_another_width_than_the_models_is_told(model: AdaWidth) -> None:
    with pytest.raises(OptionError, match="384 dimensions, but the model has 192"):
        plan(10, 384, model=model, table=TABLE)


def test_a_table_is_stored_and_read(tmp_path: Path) -> None:
    store(TABLE, tmp_path / "cache" / "bench.json")
    assert load(tmp_path / "cache" / "bench.json") == TABLE


def test_without_a_table_there_is_a_reference_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load().reference
    said = CliRunner().invoke(app, ["plan", "--documents", "1e5", "--dimensions", "384"])
    assert said.exit_code == 0
    assert "Times are those of another machine" in said.stdout
    store(TABLE, tmp_path / "adawidth" / "bench.json")
    assert load() == TABLE
    assert "another machine" not in CliRunner().invoke(app, ["plan", "--documents", "1e5", "--dimensions", "384"]).stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "cake"}, "no table"),
        ({"call": -1}, "no time"),
        ({"call": float("inf")}, "no time"),
        ({"call": None}, "no time"),
        ({"scans": []}, "no scan of flat at 32"),
        ({"scans": 3}, "missing or no number"),
        ({"product": True}, "no time"),
    ],
)
def test_a_table_that_can_not_be_is_refused(change: dict, words: str, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({**TABLE.to_json(), **change}))
    with pytest.raises(ArtifactError, match=words):
        load(file)


@pytest.mark.parametrize("change", [{"documents": [200, 100]}, {"documents": [100]}, {"seconds": [1e-3]}, {"documents": ["a", "b"]}])
def test_scans_that_can_not_be_are_refused(change: dict, tmp_path: Path) -> None:
    stored = TABLE.to_json()
    stored["scans"][0] |= change
    (tmp_path / "bench.json").write_text(json.dumps(stored))
    with pytest.raises(ArtifactError, match="run `adawidth bench` again"):
        load(tmp_path / "bench.json")


def test_a_cut_or_missing_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    with pytest.raises(ArtifactError, match="can't be read"):
        load(file)
    file.write_text(json.dumps(TABLE.to_json())[:100])
    with pytest.raises(ArtifactError, match="not a table"):
        load(file)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bench as it is, with few documents and few repetitions."""
    for name, value in {"SIZES": (300, 900), "ROWS": 2_000, "TIMES": 3}.items():
        monkeypatch.setattr(bench, name, value)


@pytest.mark.usefixtures("short")
def test_bench_then_plan(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    done = CliRunner().invoke(app, ["bench", "--out", str(file), "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["machine"] == load(file).machine == bench.machine()
    assert CliRunner().invoke(app, ["bench", "--out", str(file)]).exit_code == 0  # a table is replaced
    planned = CliRunner().invoke(
        app, ["plan", "--documents", "1e5", "--dimensions", "384", "--table", str(file), "--memory", "1GB", "--json"]
    )
    assert planned.exit_code == 0, planned.stderr
    result = json.loads(planned.stdout)
    assert result["table"]["reference"] is False
    assert {one["storage"] for one in result["options"]} == set(STORAGES)


@pytest.mark.usefixtures("short")
def test_an_interrupted_bench_keeps_the_earlier_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bench.json"
    store(TABLE, file)

    def interrupted(_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_rotation", interrupted)
    done = CliRunner().invoke(app, ["bench", "--out", str(file)])
    assert (done.exit_code, done.stdout) == (130, "")
    assert load(file) == TABLE
    assert list(tmp_path.iterdir()) == [file]


def test_bench_replaces_nothing_but_a_table(tmp_path: Path) -> None:
    file = tmp_path / "thesis.tex"
    file.write_text("precious")
    refused = CliRunner().invoke(app, ["bench", "--out", str(file)])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "not a table" in refused.stderr
    assert file.read_text() == "precious"


@pytest.mark.parametrize(("text", "size"), [("2GB", 2e9), ("500 MB", 5e8), ("1.5e9", 1.5e9), ("64k", 64e3), ("1TiB", 1e12), (2e16, 2e16)])
def test_sizes_are_read_as_people_write_them(text: str, size: float) -> None:
    assert in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "x", "2 XB", "-1GB", "1.2.3MB", "0", "9e30"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(OptionError, match="is no size"):
        in_bytes(text)


def test_sizes_are_told_in_the_unit_that_fits() -> None:
    assert [in_words(count) for count in (12, 1_500, 2e6, 3.21e9, 4e12)] == ["0.0 KB", "1.5 KB", "2.0 MB", "3.2 GB", "4.0 TB"]


def test_storages_are_those_of_the_index() -> None:
    assert {chosen(storage, 1).storage for storage in memory.STORAGES} == set(memory.STORAGES)
    assert replace(TABLE, reference=True).to_json() == TABLE.to_json()
