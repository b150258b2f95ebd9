"""Every public Nsight Systems file gets an answer, and the answers are those of the committed table.

After a change that is meant to move answers: ``PYTHONPATH=tests python -m real.answers_of > tests/real/answers.tsv``,
and read the difference.
"""

import json

import jsonschema
import pytest

from real.answers_of import answer, by_category, files, report, row, table
from scopedown import InputError, Report
from scopedown.tell.json import encode
from scopedown.tell.schema import schema
from scopedown.terms import Category, Kind, Scope
from shared_data import needs_shared

pytestmark = needs_shared

RAW = "a raw report that only nsys can open"
#: Files without an answer, and what the index of the files says of each.
REFUSED = {
    "gb200_cudagraph_pdl.nsys-rep": RAW,
    "gb200_pdl.nsys-rep": RAW,
    "gh200_jacobi.nsys-rep": RAW,
    "jacobi_single_gpu.qdrep": RAW,
    "lfs_pointer_baseline.qdrep": "a Git LFS pointer",
    "julia_a100_nvtx_cpu_2026.2.sqlite": "not captured: no CUDA tables, host samples only",
    "nogpu_nocuda_2023.4.sqlite": "empty: no event table of any kind",
    "osrt_only_a5000_2025.3.sqlite": "not captured: it ended before CUDA was started",
    "rtx4060laptop_nvtx_2025.1.sqlite": "not captured: calls, but no device rows at all",
    "tiny_t4_2025.3.sqlite": "empty: ran 0.18 s, nothing captured",
    "made_here/toy_ranges_lost_2023.4.sqlite": "not captured: every range was lost",
}
#: May fall, and may not grow.
MOST_REFUSED = 11


def test_every_file_is_in_the_table():
    assert sorted(table()) == files()


@pytest.mark.parametrize("name", files())
def test_answer(name: str):
    assert row(name) == table()[name]


def test_refusals(capsys: pytest.CaptureFixture[str]):
    refused = {n for n in files() if row(n)[1] in ("refused", str(Kind.RECAPTURE))}
    with capsys.disabled():
        print(f"\n{len(refused)} of {len(files())} files refused")
    assert refused == set(REFUSED)
    assert len(refused) <= MOST_REFUSED


@pytest.mark.parametrize("name", [n for n in files() if n.endswith((".sqlite", ".gz"))])
def test_report_is_exact_and_valid(name: str):
    r = report(name)
    assert (
        sum(line.ns for line in r.ledger.lines)
        == r.ledger.total_ns
        == r.ledger.interval_ns[1] - r.ledger.interval_ns[0]
    )
    for d in r.devices:
        assert sum(line.ns for line in d.lines) == d.total_ns
        assert 0 <= d.busy_ns <= d.total_ns
        busy = sum(line.ns for line in d.lines if line.category.startswith("device."))
        assert busy == d.busy_ns
    assert r.symptom is None
    assert r.decision.kind is not Kind.ENOUGH
    jsonschema.validate(json.loads(encode(r)), schema())


@pytest.mark.parametrize("name", [n for n in files() if not n.endswith((".sqlite", ".gz"))])
def test_a_file_that_cannot_be_read_says_what_to_do(name: str):
    found = answer(name)
    assert isinstance(found, InputError)
    text = str(found)
    assert "\n" not in text
    assert ("git lfs pull" if "lfs" in name else "nsys export") in text


@pytest.mark.parametrize("name", [n for n in REFUSED if n.endswith(".sqlite")])
def test_a_refusal_says_why_and_how_to_capture_again(name: str):
    r = report(name)
    assert r.decision.scope is Scope.TIMELINE
    assert r.decision.why
    assert r.decision.command is not None
    assert "nsys profile" in r.decision.command.steps[0].shell


#: Where start-up or tear-down fills the window, the answer is about that, and the warning has the flags that leave it
#: out. What the answer then is: file -> kind, scope.
OF_DEVICE_WORK = {
    "gh200_jacobi_2023.4": (Kind.MEASURE, Scope.KERNEL),
    "rtx3090_torch_nvtx_2023.1": (Kind.MEASURE, Scope.KERNEL),
    "t4_sparse_solve_optimised_2023.3": (Kind.MEASURE, Scope.KERNEL),
    "t4_200kernels_2022.4": (Kind.CHANGE, Scope.TIMELINE),
    "mini_rtx3080_2026.1": (Kind.CHANGE, Scope.TIMELINE),
    "a100_uvm_2022.2": (Kind.MEASURE, Scope.FRAMEWORK),
    "fuser_h200_run_a_2024.6": (Kind.MEASURE, Scope.FRAMEWORK),
    "fuser_h200_run_b_2024.6": (Kind.MEASURE, Scope.FRAMEWORK),
    "h200_nvtx_python_2025.1": (Kind.MEASURE, Scope.FRAMEWORK),
}


def flags(r: Report) -> tuple[int, int]:
    text = next(w for w in r.warnings if w.startswith("the window contains"))
    words = text.split()
    return int(words[words.index("--from") + 1]), int(words[words.index("--to") + 1])


@pytest.mark.parametrize("name", OF_DEVICE_WORK)
def test_without_start_up_and_tear_down(name: str):
    r = report(name)
    begin, end = flags(r)
    inner = report(name, begin, end)
    assert inner.ledger.interval_ns == (begin, end)
    assert sum(line.ns for line in inner.ledger.lines) == end - begin
    assert (inner.decision.kind, inner.decision.scope) == OF_DEVICE_WORK[name]
    assert not any(w.startswith("the window contains") for w in inner.warnings)


def test_runs_of_one_program_get_one_answer():
    a, b = row("fuser_h200_run_a_2024.6.sqlite"), row("fuser_h200_run_b_2024.6.sqlite")
    assert (a[1:3], a[4]) == (b[1:3], b[4])
    assert int(a[3]) == pytest.approx(int(b[3]), rel=0.01)


def test_waiting_for_a_key_is_named():
    r = report("quadro_old_osrt_callchains")
    assert r.ledger.lines[0].label == "getc"
    assert r.statements[0].subject.startswith("getc")
    assert by_category(r)[Category.HOST_OS_WAIT] > 0.9 * r.ledger.total_ns


def test_a_saturated_copy_engine_is_no_launch_latency():
    """Four streams that copy and compute: copies to the device follow each other on one engine."""
    name = "t4_200kernels_2022.4"
    sums = by_category(report(name, *flags(report(name))))
    total = sum(sums.values())
    assert sums[Category.DEVICE_COPY] > 0.8 * total
    assert sums[Category.LAUNCH] < 0.1 * total


def test_device_unknown_is_said():
    for name in ("nvtx_only_titanrtx_2022.4", "nokernels_rtx4090_2023.2", "made_here/toy_nvtx_osrt_2022.4"):
        r = report(name)
        assert r.devices == []
        assert not any(line.category.startswith("device.") for line in r.ledger.lines)
        assert any("no device rows" in u for u in r.unknown)
