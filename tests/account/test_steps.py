"""Steps: from annotations, else graph launches, else the period of the kernel sequence."""

from __future__ import annotations

from account.small import Small, ns
from scopedown.account.steps import How, Steps, find


def steps(s: Small, hi: float = 10_000) -> Steps | None:
    t = s.timeline()
    return find(t.trace, t.annotated, t.calls, t.streams, 0, ns(hi))


def graphs(s: Small, n: int = 5) -> Small:
    for k in range(n):
        s.call("cudaGraphLaunch", 100 * k, 100 * k + 5, k).op(100 * k + 8, 100 * k + 60, k, name=f"k{k}")
    return s


def test_annotations_that_differ_by_a_counter_are_steps() -> None:
    s = graphs(Small())
    for k in range(4):
        s.range(f"decode step {k}", 100 * k, 100 * k + 90).range("sample", 100 * k, 100 * k + 80)
    found = steps(s)
    assert (found.how, found.name, len(found)) == (How.ANNOTATION, "decode step #", 4)
    assert found.end.tolist() == [ns(100 * k + 90) for k in range(4)]


def test_ranges_that_overlap_or_name_requests_are_no_steps() -> None:
    s = Small()
    for k in range(4):
        s.range(f"request r-{k}", 100 * k, 100 * k + 90).range(f"batch {k}", 100 * k, 100 * k + 150)
    assert steps(s) is None


def test_ranges_of_two_threads_are_no_steps() -> None:
    s = Small((0, 0))
    for k in range(4):
        s.range(f"step {k}", 100 * k, 100 * k + 90, thread=k % 2)
    assert steps(s) is None


def test_two_ranges_are_no_repetition() -> None:
    assert steps(Small().range("step 0", 0, 90).range("step 1", 100, 190)) is None


def test_graph_launches_where_no_range_repeats() -> None:
    found = steps(graphs(Small()))
    assert (found.how, found.start.tolist()) == (How.GRAPH_LAUNCH, [ns(100 * k) for k in range(4)])


def test_the_period_of_the_kernel_sequence() -> None:
    s = Small()
    for k in range(8):
        for j, name in enumerate(("norm", "gemm", "gemm", "softmax")):
            s.op(100 * k + 10 * j, 100 * k + 10 * j + 8, name=name)
    found = steps(s)
    assert found.how is How.PERIOD
    assert set((found.end - found.start).tolist()) == {ns(100)}


def test_ops_that_do_not_repeat_are_no_steps() -> None:
    s = Small()
    for k in range(12):
        s.op(10 * k, 10 * k + 8, name=f"kernel_{'abcdefghijkl'[k]}")
    assert steps(s) is None
