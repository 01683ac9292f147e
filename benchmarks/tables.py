"""The tables of benchmarks/README.md, written from results/*.json.

python benchmarks/tables.py
"""

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

HERE = Path(__file__).parent
METHODS = {
    "truncation": "truncation",
    "pca": "PCA",
    "kyfan": "Ky Fan",
    "adawidth-no-labels": "AdaWidth, no labels",
    "paper": "paper's recipe",
    "adawidth": "AdaWidth",
}


def result(name: str) -> Any:
    """What a benchmark wrote, or nothing where it has not run."""
    file = HERE / "results" / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Markdown."""
    head = list(head)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def number(values: list[float]) -> str:
    """Mean over seeds, with its spread where there are several."""
    text = f"{mean(values):.3f}".lstrip("0")
    return f"{text} ± {stdev(values):.3f}".replace("± 0.", "± .") if len(values) > 1 else text


def rotations() -> str:
    cells = result("rotations")["cells"]
    parts = ["## Rotations", "", "Test nDCG@10, every document ranked, mean ± sd over seeds. Choices were made on dev inside `fit`.", ""]
    parts += ["`python benchmarks/rotations.py ../shared/datasets`. With labels, the rows of wordllama and docstrings are from when `fit`"]
    parts += ["learned from train queries alone; it now learns once more from train and dev queries together, as in the other rows.", ""]
    for place in dict.fromkeys(name.rsplit("/", 2)[0] for name in cells):
        widths = list(next(cell["all"] for name, cell in cells.items() if name.startswith(f"{place}/")))
        rows = []
        for method, label in METHODS.items():
            runs = [cell for name, cell in cells.items() if name.startswith(f"{place}/{method}/")]
            if not runs:
                continue
            partly = runs[0]["unseen"] and runs[0]["unseen"] != runs[0]["all"]
            rows.append([label, len(runs), *(number([run["all"][m] for run in runs]) for m in widths)])
            if partly:
                rows.append([f"{label}, unseen", len(runs), *(number([run["unseen"][m] for run in runs]) for m in widths)])
        parts += [f"### {place}", "", table(["", "seeds", *widths], rows), ""]
    return "\n".join(parts)


def tapers() -> str:
    rows = result("taper")
    parts = ["## Policies", "", "Test nDCG@10 at the realised mean width; the share is of the frozen full width.", ""]
    parts += ["`python benchmarks/taper.py ../shared/datasets --rotations pca,learned`", ""]
    for rotation in dict.fromkeys(row["rotation"] for row in rows):
        shown = []
        for row in rows:
            if row["rotation"] != rotation or row["shortlist"] != 500:
                continue
            if row["policy"] == "exhaustive" and row["start"] not in (32, 64, 256, 384):
                continue
            knob = f"budget {row['budget']}" if "budget" in row else f"quality {row['quality']}" if "quality" in row else ""
            if row["policy"] == "taper" and row.get("budget") not in (40, 42, 56, 80, 96):
                continue
            unseen = f"{row['unseen']['nDCG@10']:.3f}".lstrip("0") if row.get("unseen") else ""
            shown.append(
                [row["collection"], row["encoder"], row["policy"], row["start"], knob, row["mean_width"], f"{row['nDCG@10']:.4f}",
                 f"{row['share']:.3f}", unseen, f"{row['multiply_adds'] / 1e6:.2f} M"]
            )  # fmt: skip
        head = ["collection", "encoder", "policy", "start", "", "mean width", "nDCG@10", "share", "unseen", "multiply-adds"]
        parts += [f"### {'PCA, no labels' if rotation == 'pca' else 'learned rotation'}", "", table(head, shown), ""]
    return "\n".join(parts)


def router() -> str:
    parts = ["## Router", "", "Credit: routed nDCG@10 less that of the fixed width of the same mean, over the same shortlist.", ""]
    learned = "--rotations learned --encoders minilm --seed 2 --out benchmarks/results/router_learned.json"
    for name, options in {"router": "--rotations pca,identity", "router_learned": learned}.items():
        if found := result(name):
            parts += [f"`python benchmarks/router.py ../shared/datasets {options}`", "", routed(found)]
    return "\n".join(parts)


def routed(found: Any) -> str:
    parts = []
    rows = []
    for name, summary in found["summary"].items():
        interval = f"{summary['low']:+.4f} to {summary['high']:+.4f}" if "low" in summary else ""
        rows.append([name, summary["cells"], f"{summary['credit']:+.4f}", interval, summary["ahead"], summary["interval_above_zero"],
                     summary["interval_below_zero"], f"{summary['captured']:.3f}"])  # fmt: skip
    parts += [table(["", "cells", "credit", "95 %", "ahead", "interval above 0", "below 0", "share of the oracle's"], rows), ""]
    rows = []
    for part in found["collections"]:
        for row in part["results"]:
            if row["policy"] in ("router", "paper"):
                place = [part["collection"], part["encoder"], part["rotation"], row["policy"], row["budget"], f"{row['mean_width']:.1f}"]
                interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
                figures = [f"{row['routed']:.4f}", f"{row['fixed']:.4f}", f"{row['credit']:+.4f}", interval, f"{row['oracle_credit']:+.4f}"]
                rows.append([*place, *figures])
    head = ["collection", "encoder", "rotation", "router", "budget", "mean width", "routed", "fixed", "credit", "95 %", "oracle's credit"]
    return "\n".join([*parts, table(head, rows), ""])


def query_maps() -> str:
    cells = result("query_map")
    parts = ["## Query maps", "", "Test nDCG@10 with documents under a rotation that no label touched; mean ± sd over seeds.", ""]
    parts += ["`python benchmarks/query_map.py ../shared/datasets`", "", mapped(cells), ""]
    if curves := {name: cell for name, cell in cells.items() if name.startswith("curve/")}:
        parts += ["With the labels of few train queries, PCA below, by the taper: the gain over the frozen full width, ± one"]
        parts += ["standard error of the paired difference. The dev queries come out of those counted.", "", few_labels(curves), ""]
    if cost := cells.get("cost"):
        rows = [[width, row["rotated"], row["mapped"], row["ratio"]] for width, row in cost.items()]
        parts += ["One query, in turns, microseconds:", "", table(["D", "rotated", "rotated and mapped", "ratio"], rows), ""]
    return "\n".join(parts)


def mapped(cells: Any) -> str:
    """One row a place and rotation."""
    figures = {name: cell for name, cell in cells.items() if name.startswith("figures/")}
    rows = []
    for place in dict.fromkeys(name.rsplit("/", 1)[0] for name in figures):
        runs = [cell for name, cell in figures.items() if name.startswith(f"{place}/")]
        budgets = [name for name, point in runs[0].items() if isinstance(point, dict) and "start" in point]
        partly = runs[0]["full"].get("unseen_queries", 0) and runs[0]["full"]["unseen"] != runs[0]["full"]["nDCG@10"]
        shown = [f"{number([run[b]['nDCG@10'] for run in runs])} at {mean(run[b]['mean_width'] for run in runs):.0f}" for b in budgets]
        rows.append([*place.split("/")[1:], len(runs), *_pair(runs, "nDCG@10"), "; ".join(shown)])
        if partly:
            unseen = [f"{number([run[b]['unseen'] for run in runs])} at {mean(run[b]['mean_width'] for run in runs):.0f}" for b in budgets]
            rows.append([*place.split("/")[1:3], "unseen", len(runs), *_pair(runs, "unseen"), "; ".join(unseen)])
    return table(["rotation", "collection", "encoder", "seeds", "frozen", "map, full width", "map and taper, at a mean width"], rows)


def _pair(runs: list[Any], measure: str) -> list[str]:
    return [number([run["frozen"][measure] for run in runs][:1]), number([run["full"][measure] for run in runs])]


def few_labels(cells: Any) -> str:
    """Labels across, collections down."""
    counts = sorted({int(name.rsplit("/", 1)[1]) for name in cells})
    rows = []
    for place in dict.fromkeys(name.rsplit("/", 1)[0] for name in cells):
        here = {count: cells.get(f"{place}/{count}") for count in counts}
        shown = [f"{cell['auto']['gain']:+.3f} ± {cell['auto']['error']:.3f}" if cell else "" for cell in here.values()]
        rows.append([place.removeprefix("curve/"), *shown])
    return table(["", *map(str, counts)], rows)


def paper() -> str:
    folder = HERE / "results" / "paper"
    parts = ["## The paper's tables", ""]
    parts += ["`adawidth reproduce all ../shared/datasets/* --encoder minilm,wordllama --out benchmarks/results/paper`", ""]
    for file in sorted(folder.glob("*.json")):
        found = json.loads(file.read_text())
        parts += [f"- [{found['experiment']}](results/paper/{file.stem}.md): {found['verdict']}"]
    return "\n".join([*parts, ""])


def speed() -> str:
    parts = ["## Speed and memory", ""]
    if rotate := result("rotate"):
        size = f"{rotate['rows']:,} rows of {rotate['width']:,}"
        parts += [f"`{rotate['command']}`: rotating {size} takes {rotate['ratio']} × numpy's `X @ R.T`.", ""]
    if memory := result("fit_memory"):
        keys = ("rows", "width", "file_mb", "grown_mb", "bound_mb", "fit_seconds", "chosen")
        rows = [["" if row[key] is None else row[key] for key in keys] for row in memory["results"]]
        parts += [f"`{memory['command']}`", "", table(["rows", "width", "file MB", "grown MB", "bound MB", "seconds", "chosen"], rows), ""]
    if fits := result("fit_time"):
        before, now = (fits["nDCG@10 at 64"][side] for side in ("before", "now"))
        parts += [
            f"`{fits['command']}`: a fit takes {fits['ratio']} of the time that it took in 0.1.0; nDCG@10 at 64 is {now}, it was {before}.",
            "",
        ]
    if widths := result("fit_width"):
        told = ", ".join(f"{times} at {int(width):,}" for width, times in sorted(widths["times_384"].items(), key=lambda one: int(one[0])))
        parts += [f"`{widths['command']}`: a fit's time by encoder width, in times that of 384: {told}.", ""]
    if routing := result("routing"):
        parts += ["`python benchmarks/routing.py`: features and trees for one query, 500 candidates, medians of interleaved runs.", ""]
        keys = list(routing["results"][0])
        parts += [table(keys, [[row[key] for key in keys] for row in routing["results"]]), ""]
    return "\n".join(parts)


def searching() -> str:
    parts = ["## Searching", "", "One thread; microseconds of processor time a query: medians over turns, as are the ratios."]
    parts += ["Vectors as benchmarks/synthetic.py makes them, with the spectrum and the neighbourhoods of real ones.", ""]
    if rescoring := result("rescoring"):
        head = {
            "width": "D", "mean_width": "mean width", "recall_of_widened": "recall@10", "taper_us": "taper",
            "numpy_half_us": "NumPy, the same rows", "numpy_half_over_taper": "ratio",
            "numpy_us": "NumPy, float32 rows", "numpy_over_taper": "ratio",
            "router_us": "router", "numpy_sklearn_us": "NumPy, scikit-learn", "numpy_sklearn_over_router": "ratio",
        }  # fmt: skip
        parts += ["`python benchmarks/rescoring.py`: 500 given candidates to the best 10.", ""]
        parts += [table(head.values(), [[row[key] for key in head] for row in rescoring["results"]]), ""]
    if overhead := result("overhead"):
        spent, size = overhead["microseconds"], f"{overhead['documents']:,} vectors of {overhead['width']}"
        told = ", ".join(f"{name} {spent[name]}" for name in ("rotation", "scan", "rescoring", "python"))
        parts += [f"`{overhead['command']}`: {spent['search']} µs for a query over {size}: {told}.", ""]
    if latency := result("latency"):
        head = ["documents", "spectrum drawn out", "codes", "lists scanned", "candidates", "recall@10", "mean width"]
        head += ["one query", "faiss", "ratio", "in a batch", "faiss", "ratio", "bytes in memory", "on disk"]
        keys = ("ours_us", "faiss_us", "faiss_over_ours")
        rows = [
            [f"{row['documents']:,}", row["stretch"], row["storage"], f"{row['scanned']:.0%}", row["candidates"], row["recall"],
             row["mean_width"], *(row["single"][key] for key in keys), *(row["batch"][key] for key in keys),
             round(row["bytes_per_document"]), row["disk_bytes_per_document"]]
            for row in latency["cells"].values()
        ]  # fmt: skip
        parts += [f"`python benchmarks/latency.py`: width {latency['width']:,}, all of `index.search` on an index folder against faiss'"]
        parts += [f"exact `IndexFlatIP` at full width; recall is of its answer, batches are of {latency['batch']}, bytes are of a document"]
        parts += ["(in memory: its codes).", "", table(head, rows), ""]
    if codes := result("codes"):
        ways = list(next(iter(codes["cells"].values()))["80"])
        lists = list(next(iter(codes["cells"].values()))["80"][ways[0]])
        parts += [f"`{codes['command']}`: share of the exact top 10 at a target width that is among the best 100, 200 and 500 by codes"]
        parts += ["of 32 bytes; PCA, test queries, mean of the collections and encoders that are so wide.", ""]
        targets = sorted({int(target) for cell in codes["cells"].values() for target in cell})
        rows = []
        for target in targets:
            held = [cell[str(target)] for cell in codes["cells"].values() if str(target) in cell]
            rows.append([target, *(f"{mean(row[way][n] for row in held):.4f}" for way in ways for n in lists)])
        parts += [table(["target", *(f"{way}, {n}" for way in ways for n in lists)], rows), ""]
        if sized := codes.get("bytes"):
            parts += ["The same at full width by `bytes_per_document`: the way that was chosen, what 100 and 500 candidates hold of the"]
            parts += [
                "exact top 10, and nDCG@10 of a `pq4` index, searched with the defaults, less that of the exact ranking.",
                "",
            ]
            rows = []
            for name, cell in sized.items():
                for size, one in ((size, one) for size, one in cell.items() if size != "exact"):
                    held = one["shapes"][one["chosen"]]
                    lost = one["nDCG@10"] - cell["exact"]
                    rows.append([name, size, one["chosen"], f"{held['100']:.4f}", f"{held['500']:.4f}", f"{lost:+.4f}"])
            parts += [table(["", "bytes", "coded", "of 100", "of 500", "nDCG@10"], rows), ""]
    if storages := result("storages"):
        parts += [f"`{storages['command']}`: nDCG@10 of every document ranked at full width, and of an index on disk by its storage,"]
        parts += ["searched by the taper at quality .99; PCA, test queries.", ""]
        ways = list(next(iter(storages["cells"].values())))
        parts += [table(["", *ways], [[name, *(f"{row[way]:.4f}" for way in ways)] for name, row in storages["cells"].items()]), ""]
    if gaps := result("gaps"):
        parts += [f"`{gaps['command']}`: the default search, and one without a gap, which reads all of its shortlist. Coordinates"]
        parts += ["read are a share of that one's, and so is what is the same in the top 10.", ""]
        ways = list(next(iter(gaps["cells"].values())))
        parts += [table(["", *ways], [[name, *row.values()] for name, row in gaps["cells"].items()]), ""]
    if resident := result("resident"):
        sizes = " and ".join(f"{size:,}" for size in resident["documents"])
        parts += [f"`{resident['command']}`: bytes of memory a document takes in a process that searches, from the difference of {sizes}"]
        parts += [f"documents of width {resident['width']}; pages of files are not counted, 8 bytes to order equal scores by id are.", ""]
        rows = [[storage, row["codes"], row["resident"]] for storage, row in resident["bytes_per_document"].items()]
        parts += [table(["codes", "their bytes", "all that is held"], rows), ""]
    if rivals := result("rivals"):
        parts += [f"`python benchmarks/rivals.py`: {rivals['width']} coordinates; every way with its knobs at the least that kept a recall"]
        parts += ["wanted on other queries, or at their most where none did.", ""]
        rows = [
            [f"{cell['documents']:,}", way, cell["knob"][way], cell["wanted"], cell["recall"][way], cell["single"][f"{way}_us"],
             cell["single"].get(f"{way}_over_{cell['ours']}", ""), cell["build_and_choose_processor_seconds"][way]]
            for cell in rivals["cells"].values() for way in cell["recall"]
        ]  # fmt: skip
        head = ["documents", "way", "knob", "wanted", "recall@10", "one query", "times our faster one", "CPU s to build and choose"]
        notes = [f"{name}: {cell['note']}." for name, cell in rivals["cells"].items() if "note" in cell]
        parts += [table(head, rows), "", *notes, ""]
    if growth := result("growth"):
        head = ["documents", "pq4", "p99", "recall", "ivf", "p99", "recall", "lists scanned", "pq4, queries a second in batches", "ivf"]
        rows = [
            [f"{cell['documents']:,}", cell["single"]["pq4_us"], cell["p99_us"]["pq4"], cell["pq4_recall"], cell["single"]["ivf_us"],
             cell["p99_us"]["ivf"], cell["ivf_recall"], f"{cell['share_scanned']:.0%}", *cell["queries_per_second"].values()]
            for cell in growth["cells"].values()
        ]  # fmt: skip
        parts += [f"`python benchmarks/growth.py`: the {growth['candidates']} best by four-bit codes of {growth['width']} coordinates."]
        notes = [f"{cell['documents']:,}: {cell['note']}." for cell in growth["cells"].values() if "note" in cell]
        parts += ["p99 is of means of four queries in a row.", "", table(head, rows), "", *notes, ""]
        parts += ["![How the scan grows](../docs/figures/growth.svg)", ""]
    if large := result("large"):
        size = f"{large['documents']:,} documents of width {large['width']} in `ivf`, recall@10 of {large['wanted']} on other queries"
        parts += [f"`{large['command']}`: {size}, in turns with commit {large['before_commit']}.", ""]
        sides = [(side, large[side]) for side in ("before", "now")]
        rows = [[side, at["recall"], at["candidates"], f"{at['scanned']:.0%}", at["microseconds"]] for side, at in sides]
        parts += [table(["", "recall@10", "candidates", "lists scanned", "one query"], rows), ""]
    return "\n".join(parts)


def real() -> str:
    """Real vectors, against rivals."""
    if not (found := result("real")):
        return ""
    parts = [f"## Real vectors\n\n`{found['command']}`: all of `index.search` on an index folder, one thread, against"]
    parts += ["rivals over the same whole vectors. Each way has the quickest settings that kept the recall on other queries; µs a query."]
    head = ("vectors", "wanted", "way", "recall@10", "one query", "times ours", "in batches of 256", "times ours", "bytes a document")
    rows = []
    for name, cell in found["cells"].items():
        for wanted, at in cell["recalls"].items():
            for way, kept in at["recall"].items():
                times = [x for kind in ("single", "batch") for x in (at[kind][f"{way}_us"], at[kind].get(f"{way}_over_{at['ours']}", ""))]
                rows.append(
                    (f"{name}, {cell['documents']:,} × {cell['width']}", wanted, way, kept, *times, cell["bytes_per_document"][way] or "")
                )
    notes = [f"{name}: {cell['note']}." for name, cell in found["cells"].items() if "note" in cell]
    parts += ["", table(head, rows), "", *notes]
    for shortlist in (100, 500):
        if turns := result(f"single_query_{shortlist}"):
            parts += ["", f"`{turns['command']}`: {turns['ratio']} of the time that it took with faiss' scan."]
    return "\n".join(parts) + "\n"


def encoding() -> str:
    found = result("encode")
    if found is None:
        return ""
    scifact, keys = found["scifact"], ("collection", "texts", "mean_characters", "turns", "ratio")
    parts = ["## Encoding", "", f"`{found['command']}`", ""]
    parts += [f"SciFact from text with all-MiniLM-L6-v2: nDCG@10 {scifact['nDCG@10']:.4f}, published {scifact['published']:.4f}.", ""]
    parts += ["Speed of `adawidth encode` as a share of one call of sentence-transformers' `encode`, in turns, by processor time:", ""]
    rows = [[row[key] for key in keys] for row in found["throughput"]]
    return "\n".join([*parts, table(["collection", "texts", "characters a text", "turns", "share"], rows), ""])


def durability() -> str:
    parts = ["## The index on disk", ""]
    if crash := result("crash"):
        verbs = ("add", "update", "remove", "compact", "words")
        keys = {"cut short": "calls_under_way_when_killed", "there whole": "of_these_there_whole", "not there": "of_these_not_there_at_all"}
        parts += [f"`{crash['command']}`: {crash['kills']} writers killed with SIGKILL at random moments, in {crash['folders']} folders,"]
        calls, problems = crash["acknowledged_calls"], len(crash["problems"])
        parts += [f"{calls} calls acknowledged; problems found: {problems}. Of the calls cut short (words: `compact(hybrid=True)`):", ""]
        parts += [table(["", *verbs], [[name, *(crash[key].get(verb, "") for verb in verbs)] for name, key in keys.items()]), ""]
    if faults := result("faults"):
        said, (errors, words) = faults["what_the_writer_said"], (("EIO", "ENOSPC", "KILL"), ("ok", "refused", "unknown", "killed"))
        parts += [f"`{faults['command']}`: one system call of a verb fails or kills, with readers open and writers after it;"]
        parts += [
            f"{faults['cases']:,} of all {faults['all_cases']:,} cases, problems found: {len(faults['problems'])}. What the writer said:",
            "",
        ]
        parts += [table(["", *errors], [[word, *(said[error].get(word, "") for error in errors)] for word in words]), ""]
    if mutations := result("mutations"):
        every, words = mutations["all"], ("refused", "right", "answered")
        count = f"{mutations['cases']:,} of {mutations['mutations']:,} damaged and {mutations['crafted']:,} crafted folders and files"
        parts += [f"`{mutations['command']}`: {count} of {len(mutations['outcomes']) - 1} kinds,"]
        parts += [
            f"problems found: {len(mutations['problems'])}. {every['refused']:,} were refused, {every['right']:,} answered rightly, and"
        ]
        parts += [f"{every['answered']:,}, whose contents were changed and checksums made right, gave a well-formed answer.", ""]
    if added := result("index_add"):
        bulk, stream = added["bulk"], added["stream"]
        parts += [f"`{added['command']}`: width {added['width']}, every commit on the disk before it is acknowledged.", ""]
        rows = [
            [f"{part['documents']:,}", part["commits"], f"{part['vectors_per_second']:,}", f"{part['vectors_per_processor_second']:,}"]
            for part in (bulk, stream)
        ]
        parts += [table(["documents", "commits", "vectors a second", "a second of the processor"], rows), ""]
        keys = ("storage", "memory_grown_mb", "bytes", "open_seconds", "first_search_seconds", "first_filter_seconds", "compact_seconds")
        parts += [table([key.replace("_", " ") for key in keys], [[bulk[key] for key in keys]]), ""]
    if faster := result("add_time"):
        what = f"{faster['documents']:,} documents of width {faster['width']}"
        parts += [f"`{faster['command']}`: against commit {faster['before']}, {what} in turns.", ""]
        rows = [
            [what, *(f"{rate:,}" for rate in adds["rows_per_processor_second"].values()), f"{adds['times_the_rate']} times the rate"]
            for what, adds in faster["adds"].items()
        ]
        parts += [table(["", "before: rows a second of the processor", "now", ""], rows), ""]
        parts += [f"Building the lists of `ivf` alone takes {faster['lists']['share_of_the_time']} of the time.", ""]
    if first := result("first_query"):
        parts += [f"`{first['command']}`: seconds a new process waits, {first['documents']:,} documents of width {first['width']}."]
        parts += ["Former: commit f57e5f8. Compiled ahead: in the wheel that `pip install` makes or downloads. All in the same run.", ""]
        parts += [table(["", "import", "open", "first query", "second"], _versions(first, "seconds")), ""]
    if threads := result("threads"):
        size = f"{threads['documents']:,} documents of width {threads['width']}"
        parts += [f"`{threads['command']}`: batches of {threads['batch']:,} queries on the clock, {size}.", ""]
        head = ["", "one thread, ms", f"{threads['threads']} threads, ms", "times as fast", "least", "most"]
        parts += [table(head, [[name, *cell.values()] for name, cell in threads["cells"].items()]), ""]
    if cold := result("cold"):
        size = f"{cold['documents']:,} documents of width {cold['width']}"
        parts += [f"`{cold['command']}`: milliseconds to open an index and of its first queries, {size}."]
        parts += ["Cold: its files were not in memory. Former: with a checksum for 64 rows instead of 8, in the same run.", ""]
        parts += [table(["", "open", "first query", "second to 20th", "steady"], _versions(cold, "milliseconds")), ""]
    return "\n".join(parts)


def _versions(found: Any, unit: str) -> list[list[Any]]:
    """A row for each state of each version, on the clock and of the processor."""
    return [
        [f"{version}, {state.replace('_', ' ')}, {name}", *steps.values()]
        for version in ("now", "former")
        if version in found
        for name, clock in (("clock", unit), ("processor", f"processor_{unit}"))
        for state, steps in found[version][clock].items()
    ]


def busy() -> str:
    found = result("busy")
    if found is None:
        return ""
    parts = ["## Busy neighbours", "", f"`{found['command']}`: CPU seconds of a small comparison, all its threads together, without and"]
    parts += [f"with {found['neighbours_per_core']} busy processes a core; > where it was cut off after {found['limit_seconds']} s."]
    parts += ["Where the load before is above 0 the machine had other work too, and the run without neighbours was not a quiet one.", ""]

    def shown(run: Any) -> str:
        return f"{'' if run['finished'] else '> '}{run['seconds']}"

    versions = [(name, found[key]) for name, key in (("now", "now"), ("0.1.0", "before")) if found.get(key)]
    rows = [[name, one["load_before"], shown(one["quiet"]), shown(one["busy"]), one["ratio"] or ""] for name, one in versions]
    return "\n".join([*parts, table(["", "load before", "without", "with neighbours", "ratio"], rows), ""])


def main() -> None:
    head = "# Benchmarks\n\nOne script a question, results in results/*.json, tables by `python benchmarks/tables.py`, pictures by\n"
    head += "`python benchmarks/figures.py`. The machine has two cores and is shared: read ratios, not seconds.\n"
    parts = [rotations(), tapers(), router(), query_maps(), paper(), encoding(), durability(), searching(), real(), speed(), busy()]
    (HERE / "README.md").write_text("\n".join([head, *parts]).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
