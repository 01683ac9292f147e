"""Threads: as many as the process has CPUs, decided before faiss and torch are loaded, and what the user has set is kept."""

import os
import re
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

import adawidth
from adawidth.threads import KEPT, quota

SOURCE = Path(adawidth.__file__).parent
SET_BY_US = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
WATCH = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("faiss", "torch"):
            print(name, os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"))
sys.meta_path.insert(0, Watch())
"""


def printed(code: str, **environment: str) -> list[str]:
    """What a fresh Python prints, in which only these variables on threads are set."""
    inherited = {name: value for name, value in os.environ.items() if name not in SET_BY_US}
    inherited["PYTHONPATH"] = os.pathsep.join([str(SOURCE.parent), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env=inherited | environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b\n", {"a/cpu.max": "50000 100000", "a/b/cpu.max": "max 100000"}, 0.5),
        ("0::/not/mounted/here\n", {"cpu.max": "300000 100000"}, 3.0),
        ("0::/\n", {"cpu.max": "max 100000"}, inf),
        ("0::/\n", {"cpu.max": "nonsense"}, inf),
        ("1:cpu:/x\n0::/\n", {"cpu/x/cpu.cfs_quota_us": "200000", "cpu/x/cpu.cfs_period_us": "100000"}, 2.0),
        ("1:cpu,cpuacct:/x\n", {"cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/cpu.cfs_period_us": "50000\n"}, 4.0),
        ("1:cpu:/x\n", {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"}, inf),
        ("2:cpuset:/x\n", {"cpu/x/cpu.cfs_quota_us": "100000", "cpu/x/cpu.cfs_period_us": "100000"}, inf),
        ("", {}, inf),
    ],
)
def test_a_quota_is_the_least_of_all_groups_above(tmp_path: Path, groups: str, files: dict[str, str], expected: float) -> None:
    (tmp_path / "groups").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert quota(tmp_path / "groups", tmp_path / "root") == expected


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert quota(tmp_path / "missing", tmp_path) == inf


def test_cpus_follow_the_affinity_and_the_user() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nfrom adawidth.threads import cpus\nprint(cpus())"
    assert printed(code) == ["1"]
    assert printed(code, OMP_NUM_THREADS="7") == ["7"]
    assert printed(code, OMP_NUM_THREADS="5,2") == ["5"]
    assert printed(code, OMP_NUM_THREADS="nonsense") == ["1"]


def test_importing_changes_nothing() -> None:
    assert printed("import os; before = dict(os.environ)\nimport adawidth.threads\nprint(dict(os.environ) == before)") == ["True"]


@pytest.mark.parametrize("module", ["index.codes.ivf", "training.householder", "baselines.quantised", "baselines.dense"])
def test_waiting_threads_are_told_to_sleep_before_faiss_and_torch_are_loaded(module: str) -> None:
    if "dense" in module or "training" in module:
        pytest.importorskip("torch")
    seen = printed(f"{WATCH}\nimport adawidth.{module}")
    assert seen
    assert {line.partition(" ")[2] for line in seen} == {"PASSIVE 0"}


def test_what_the_user_has_set_is_kept() -> None:
    code = f"import os\nfrom adawidth.threads import settle\nsettle()\nprint(*(os.environ.get(name) for name in {SET_BY_US!r}))"
    assert printed(code, OMP_NUM_THREADS="3") == ["3 None PASSIVE 0 0"]
    assert printed(
        code, OMP_NUM_THREADS="3", OPENBLAS_NUM_THREADS="2", OMP_WAIT_POLICY="ACTIVE", GOMP_SPINCOUNT="9", KMP_BLOCKTIME="8"
    ) == ["3 2 ACTIVE 9 8"]


def test_a_blas_that_is_loaded_already_gets_one_thread() -> None:
    pytest.importorskip("threadpoolctl")
    code = """
import numpy
from threadpoolctl import threadpool_info
from adawidth import AdaWidth
print(*(found["num_threads"] for found in threadpool_info() if found["internal_api"] == "openblas"))
"""
    assert printed(code, OPENBLAS_NUM_THREADS="2") == ["2"]
    assert printed(code) == ["1"]


def test_torch_that_is_loaded_already_gets_no_more_threads_than_cpus() -> None:
    pytest.importorskip("torch")
    pin = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    code = f"import torch\ntorch.set_num_threads(4)\n{pin}\nfrom adawidth.threads import settle\nsettle()\nprint(torch.get_num_threads())"
    assert printed(code) == ["1"]


def test_a_search_starts_no_openmp_threads_and_leaves_the_users_number() -> None:
    code = """
import os, faiss, numpy as np
from adawidth.index.codes import build
codes = build(np.eye(64, dtype=np.float32).repeat(100, axis=0), "pq4", 0)
faiss.omp_set_num_threads(4)
before = len(os.listdir("/proc/self/task"))
codes.search(np.eye(64, dtype=np.float32), 10)
codes.search(np.eye(64, dtype=np.float32), 10, np.arange(6400) % 2 == 0)
print(len(os.listdir("/proc/self/task")) - before, faiss.omp_get_max_threads())
"""
    assert printed(code, OMP_NUM_THREADS="1") == ["0 4"]


def test_threads_of_a_batch_are_kept_for_the_next() -> None:
    code = """
import os, numpy as np
from adawidth import AdaWidth
rows = np.random.default_rng(0).standard_normal((600, 64)).astype(np.float32)
index = AdaWidth.fit(rows, recipe="identity").index(rows)
one = index.search(rows)
before = len(os.listdir("/proc/self/task"))
counts = []
for _ in range(3):
    assert (index.search(rows, threads=3).rows == one.rows).all()
    counts.append(len(os.listdir("/proc/self/task")) - before)
assert (index.search(rows, threads=10**6).rows == one.rows).all()
print(*counts, len(os.listdir("/proc/self/task")) - before)
"""
    *counts, most = map(int, printed(code, OMP_NUM_THREADS="1")[0].split())
    assert counts == [3, 3, 3]
    assert 3 < most <= 3 + KEPT


def test_every_package_that_loads_openmp_settles_threads_first() -> None:
    heavy = re.compile(r"^\s*(?:import|from) (?:faiss|torch|sentence_transformers|lightgbm)\b", re.MULTILINE)
    users = [path for path in SOURCE.rglob("*.py") if heavy.search(path.read_text(encoding="utf-8"))]
    assert len(users) > 10
    settled = {
        path.parent for path in SOURCE.rglob("__init__.py") if re.search(r"^settle\(\)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    unsettled = [str(path) for path in users if not settled & set(path.parents)]
    assert unsettled == []


def test_no_compiled_loop_has_threads_of_its_own() -> None:
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    assert not any("prange" in text or "parallel=True" in text for text in texts)
