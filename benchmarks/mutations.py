"""Does a damaged or crafted file ever crash, hang, exhaust memory or answer wrongly?

    python benchmarks/mutations.py                 (writes results/mutations.json)

10,000 copies of index folders, model folders and input files, each damaged in one way, and all crafted ones: see tests/faults/mutations.py.
Each must be refused with an AdaWidthError or answer rightly (well-formed, where contents were changed and every checksum made right),
within 10 s of CPU time and 1 GB beyond what the process has (tests/faults/watched.py).
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path[0] = str(TESTS)  # whose `faults` is meant

from faults import mutations  # noqa: E402
from faults.crafted import CRAFTED  # noqa: E402
from faults.watched import Case, watched  # noqa: E402

WORDS = ("right", "answered", "refused")


def run(cases: list[Case], home: Path) -> dict[str, Any]:
    """Counts outcomes by kind, and keeps what was none of those allowed."""
    mutations.prepare(home)
    counts: dict[str, Counter[str]] = {}
    problems: list[dict[str, Any]] = []
    for number, (case, said) in enumerate(watched(Path(mutations.__file__), [home], cases), 1):
        word = next((word for word in WORDS if said.startswith(word)), "problem")
        counts.setdefault(case.get("kind", "crafted"), Counter())[word] += 1
        if word == "problem":
            problems.append({**case, "said": said})
        if number % 500 == 0:
            print(f"{number} of {len(cases)}, {len(problems)} problems", file=sys.stderr)
    return {"outcomes": {kind: dict(sorted(found.items())) for kind, found in sorted(counts.items())}, "problems": problems}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--crafted", type=int, default=len(CRAFTED))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "mutations.json")
    options = parser.parse_args()
    cases = list(mutations.cases(options.mutations, options.seed))
    cases += [{"crafted": name} for name in list(CRAFTED)[: options.crafted]]
    with tempfile.TemporaryDirectory() as home:
        found = run(cases, Path(home))
    total = sum((Counter(counts) for counts in found["outcomes"].values()), Counter[str]())
    about = {"command": "python benchmarks/mutations.py", "seed": options.seed, "mutations": options.mutations, "crafted": options.crafted}
    options.out.write_text(json.dumps({**about, "all": dict(total), **found}, indent=1) + "\n")
    raise SystemExit(1 if found["problems"] else 0)


if __name__ == "__main__":
    main()
