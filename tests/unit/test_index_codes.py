"""Prefix codes against brute force: recall, filters, round trips through plain arrays, and arrays that are not what they should be."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from adawidth.data import unit
from adawidth.errors import AdaWidthError, ArtifactError, DataError, OptionError
from adawidth.index import codes
from adawidth.index.codes import Codes, build, flat

WAYS = {  # storage and bits a coordinate
    "flat": ("flat", 4),
    "int8": ("int8", 4),
    "pq4": ("pq4", 4),
    "ivf": ("ivf", 4),
    "pq4 of pairs": ("pq4", 2),
    "ivf of pairs": ("ivf", 2),
    "graph": ("graph", 4),
    "graph of pairs": ("graph", 2),
}
N, M = 6_000, 48


def block_of(seed: int, count: int, width: int = M) -> np.ndarray:
    """Clustered rows whose spread falls from coordinate to coordinate, as a rotation leaves them."""
    rng = np.random.default_rng(seed)
    spectrum = np.exp(-np.arange(width) / 16)
    centres = np.random.default_rng(99).standard_normal((40, width)) * spectrum
    return unit(centres[rng.integers(40, size=count)] + 0.7 * rng.standard_normal((count, width)) * spectrum)


@pytest.fixture(scope="module")
def block() -> np.ndarray:
    return block_of(0, N)


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return block_of(1, 60)


@pytest.fixture(scope="module")
def built(block: np.ndarray) -> dict[str, Codes]:
    return {way: build(block, storage, seed=0, bits=bits) for way, (storage, bits) in WAYS.items()}


def nearest(queries: np.ndarray, block: np.ndarray, k: int, allowed: np.ndarray | None = None) -> np.ndarray:
    scores = queries @ block.T
    if allowed is not None:
        scores[:, ~allowed] = -np.inf
    return np.argsort(-scores, axis=1)[:, :k]


def share(wanted: np.ndarray, found: np.ndarray) -> float:
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(wanted, found, strict=True)]))


@pytest.mark.parametrize("most", [0, flat.SCORES], ids=["row by row", "as a whole"])
@pytest.mark.parametrize("k", [1, 50, 100_000])
def test_flat_is_exact(
    built: dict[str, Codes], block: np.ndarray, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch, most: int, k: int
) -> None:
    monkeypatch.setattr(flat, "SCORES", most)
    k = min(k, len(block))
    np.testing.assert_array_equal(np.sort(built["flat"].search(queries, k)), np.sort(nearest(queries, block, k)))


@pytest.mark.parametrize(("way", "least"), [("int8", 1.0), ("pq4", 0.99), ("ivf", 0.99), ("pq4 of pairs", 0.99), ("ivf of pairs", 0.99)])
def test_a_shortlist_holds_the_nearest(built: dict[str, Codes], block: np.ndarray, queries: np.ndarray, way: str, least: float) -> None:
    assert share(nearest(queries, block, 10), built[way].search(queries, 200)) >= least


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_those_that_a_search_goes_by(built: dict[str, Codes], block: np.ndarray, queries: np.ndarray, way: str) -> None:
    """Near the inner products; a search takes the best by them, but for what the scan rounds off."""
    codes, every = built[way], np.broadcast_to(np.arange(N), (len(queries), N))
    scores = codes.scores(queries, every)
    np.testing.assert_allclose(scores, queries @ block.T, atol=1e-5 if way == "flat" else 0.02 if way == "int8" else 0.3)
    assert share(np.argsort(-scores, axis=1)[:, :50], codes.search(queries, 60)) >= 0.97
    rows = np.array([[5, -1, 7]] * len(queries))
    np.testing.assert_array_equal(codes.scores(queries, rows)[:, [0, 2]], scores[:, [5, 7]])
    assert (codes.scores(queries, rows)[:, 1] == -np.inf).all()


def test_four_bits_need_the_rotation(block: np.ndarray, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """The random rotation is what makes four bits do where the leading coordinates carry most."""
    steep = unit(block * np.exp(-np.arange(M) / 6))
    asked = unit(queries * np.exp(-np.arange(M) / 6))
    turned = build(steep, "pq4", seed=0)
    monkeypatch.setattr(np.linalg, "qr", lambda x: (np.eye(len(x)), None))
    plain = build(steep, "pq4", seed=0)
    wanted = nearest(asked, steep, 10)
    assert share(wanted, turned.search(asked, 20)) > share(wanted, plain.search(asked, 20)) + 0.05


@pytest.mark.parametrize("storage", ["pq4", "ivf"])
def test_pairs_see_twice_as_far_in_the_same_memory(storage: str) -> None:
    """Where what is wanted hangs on many coordinates, two bits each of twice as many find more of it than four bits each."""
    rng = np.random.default_rng(6)
    rows, asked = (unit(rng.standard_normal((count, 2 * M)).astype(np.float32)) for count in (N, 60))
    narrow = build(unit(rows[:, :M]), storage, seed=0)
    pairs = build(rows, storage, seed=0, bits=2)
    assert pairs.bytes_per_document == narrow.bytes_per_document
    wanted = nearest(asked, rows, 10)
    assert share(wanted, pairs.search(asked, 200)) > share(wanted, narrow.search(asked[:, :M], 200)) + 0.1


@pytest.mark.parametrize("levels", [np.zeros((M, 8), np.float32), np.zeros((M, 1), np.float32)])
def test_levels_of_another_number_are_refused(built: dict[str, Codes], levels: np.ndarray) -> None:
    with pytest.raises(ArtifactError, match=f"{levels.shape[1]} levels for each of 48 coordinates"):
        Codes.of("pq4", {**built["pq4"].arrays(), "levels": levels})


def test_pairs_of_an_odd_width_are_refused() -> None:
    arrays = build(block_of(0, 100, 47), "pq4", seed=0).arrays()
    with pytest.raises(ArtifactError, match="4 levels for each of 47 coordinates"):
        Codes.of("pq4", {**arrays, "levels": arrays["levels"][:, :4]})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", [0.9, 0.3, 0.06, 0.04, 0.01])
def test_a_filter_costs_no_recall(built: dict[str, Codes], block: np.ndarray, queries: np.ndarray, way: str, part: float) -> None:
    """By chance, and for rows that lie together far from most queries."""
    along = block[:, 0]
    filters = (np.random.default_rng(3).random(N) < part, along <= np.quantile(along, part))
    for allowed in filters:
        found = built[way].search(queries, 50, allowed)
        assert allowed[found[found >= 0]].all()
        assert (found >= 0).all(axis=1).all()
        wanted = nearest(queries, block, 10, allowed)
        unfiltered = share(nearest(queries, block, 10), built[way].search(queries, 50))
        assert share(wanted, found) >= (1.0 if way == "flat" else unfiltered - 0.01)


@pytest.mark.parametrize("way", WAYS)
def test_fewer_than_asked_for_are_padded(built: dict[str, Codes], queries: np.ndarray, way: str) -> None:
    allowed = np.zeros(N, np.bool_)
    assert (built[way].search(queries, 5, allowed) == -1).all()
    allowed[[7, 4000, 11]] = True
    found = built[way].search(queries, 5, allowed)
    assert (np.sort(found, axis=1) == [-1, -1, 7, 11, 4000]).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("count", "width"), [(1, 32), (5, 33), (100, 47), (700, 64)])
def test_small_blocks_of_any_width(way: str, count: int, width: int) -> None:
    storage, bits = WAYS[way]
    width += width % 2 if bits == 2 else 0  # pairs are of even widths: 34, 48
    rows = block_of(count, count, width)
    made = build(rows, storage, seed=1, bits=bits)
    assert (len(made), made.width, made.storage) == (count, width, storage)
    assert made.bytes_per_document > 0
    found = made.search(rows, count)
    assert (np.sort(found, axis=1) == np.arange(count)).all()
    assert (made.search(rows[:3], count + 2)[:, count:] == -1).all()
    assert share(np.arange(count)[:, None], made.search(rows, min(count, 20))) > 0.95  # a row finds itself


@pytest.mark.parametrize("way", WAYS)
def test_round_trip(built: dict[str, Codes], queries: np.ndarray, way: str) -> None:
    storage, _ = WAYS[way]
    again = Codes.of(storage, {name: array.copy() for name, array in built[way].arrays().items()})
    np.testing.assert_array_equal(again.search(queries, 100), built[way].search(queries, 100))
    allowed = np.arange(N) % 3 == 0
    np.testing.assert_array_equal(again.search(queries, 100, allowed), built[way].search(queries, 100, allowed))
    assert (len(again), again.width, again.storage) == (N, M, storage)


@pytest.mark.parametrize("way", WAYS)
def test_same_seed_same_codes(block: np.ndarray, built: dict[str, Codes], way: str) -> None:
    storage, bits = WAYS[way]
    for name, array in build(block, storage, seed=0, bits=bits).arrays().items():
        np.testing.assert_array_equal(array, built[way].arrays()[name])


@pytest.mark.parametrize("way", WAYS)
def test_bad_arrays_are_an_error_and_never_a_crash(built: dict[str, Codes], way: str) -> None:
    """Whatever is done to one array: refused, or searched without harm where the numbers alone are wrong."""
    storage, _ = WAYS[way]
    good = built[way].arrays()
    rng = np.random.default_rng(5)
    for name, array in good.items():
        noise = np.frombuffer(rng.bytes(array.nbytes), array.dtype).reshape(array.shape)
        for bad in (array[:0], array[1:], array[..., None], array.astype(np.float64), array.ravel()[:1], noise, np.full_like(array, 127)):
            try:
                made = Codes.of(storage, {**good, name: bad})
            except ArtifactError:
                continue
            assert made.search(np.ones((2, made.width), np.float32), 10).max() < max(len(made), 1)
        with pytest.raises(ArtifactError, match=f"no array '{name}'"):
            Codes.of(storage, {other: value for other, value in good.items() if other != name})
    for name in [name for name, array in good.items() if array.dtype.kind == "f"]:
        with pytest.raises(ArtifactError, match="NaN"):
            Codes.of(storage, {**good, name: np.full_like(good[name], np.nan)})


def test_centroids_beyond_all_rows_are_refused(built: dict[str, Codes]) -> None:
    stored = built["ivf"].arrays()
    with pytest.raises(ArtifactError, match="a centroid has a coordinate of"):
        Codes.of("ivf", {**stored, "centres": stored["centres"] * np.float32(1e30)})


def test_auto_goes_by_the_number_of_documents(block: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(block, "auto", 0).storage == "flat"
    monkeypatch.setattr(codes, "SMALL", 1_000)
    assert build(block, "auto", 0).storage == "pq4"
    monkeypatch.setattr(codes, "LARGE", 2_000)
    monkeypatch.setattr(codes, "SCANNED", 1.0)
    assert build(block, "auto", 0).storage == "ivf"
    monkeypatch.setattr(codes, "SCANNED", 0.0)  # lists that save nothing are not kept
    assert build(block, "auto", 0).storage == "pq4"


def test_lists_are_scanned_in_part(built: dict[str, Codes]) -> None:
    stored = built["ivf"].arrays()
    assert 1 <= stored["probes"][0] < len(stored["centres"])


@pytest.mark.parametrize("way", ["ivf", "ivf of pairs"])
@pytest.mark.parametrize("restricted", [False, True])
def test_lists_that_are_scanned_whole_give_the_best_by_the_codes(
    built: dict[str, Codes], queries: np.ndarray, way: str, restricted: bool
) -> None:
    """All lists against all scores: the tables of a query have seven bits, so rows near the last may differ."""
    whole = built[way].probing(1.0)
    allowed = np.arange(N) % 3 > 0 if restricted else np.ones(N, np.bool_)
    scores = np.where(allowed, whole.scores(queries, np.tile(np.arange(N), (len(queries), 1))), -np.inf)
    found = whole.search(queries, 100, allowed if restricted else None)
    assert share(np.argsort(-scores, axis=1)[:, :80], found) > 0.995
    assert all(len(set(rows)) == 100 and allowed[rows].all() for rows in found.tolist())


@pytest.mark.parametrize("way", WAYS)
def test_threads_change_nothing(built: dict[str, Codes], queries: np.ndarray, way: str) -> None:
    alone = built[way].search(queries, 50)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: built[way].search(queries, 50), range(8)):
            np.testing.assert_array_equal(found, alone)


def test_wrong_input_is_named(built: dict[str, Codes], block: np.ndarray, queries: np.ndarray) -> None:
    with pytest.raises(DataError, match="20 wide, the codes 48"):
        built["pq4"].search(queries[:, :20], 5)
    with pytest.raises(DataError, match="filter is for 3 rows, the codes are of 6000"):
        built["pq4"].search(queries, 5, np.ones(3, np.bool_))
    with pytest.raises(OptionError, match="'zip'"):
        build(block, "zip", 0)
    with pytest.raises(DataError, match="float64"):
        build(block.astype(np.float64), "flat", 0)
    assert issubclass(ArtifactError, AdaWidthError)
