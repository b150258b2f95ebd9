"""The machine on programs that can be worked out by hand, and on random ones."""

from itertools import pairwise

import pytest

from scopedown.simulate import Program, random_program, run, without
from scopedown.simulate.as_trace import as_trace
from scopedown.simulate.machine import Deadlock
from scopedown.simulate.program import Host, Submit, Sync, Work
from scopedown.simulate.run import Run, by_category, by_tag
from scopedown.terms import Category
from scopedown.trace.model import OpKind

SEEDS = range(40)


def kernel(ns: int, *, group: str = "", tag: str = "k", device: int = 0) -> Submit:
    kind = OpKind.COLLECTIVE if group else OpKind.KERNEL
    return Submit("cudaLaunchKernel", (Work(kind, "k", ns, 1_000, tag, group=group),), 5_000, 2_000, device)


def sync(device: int = 0) -> Sync:
    return Sync("cudaStreamSynchronize", 4_000, 2_500, device, 7)


def program(*threads: list, devices: int = 1, depth: int = 1022) -> Program:
    made = Program(0, devices=("GPU",) * devices, queue_depth=depth, start_ns=0)
    for n, instructions in enumerate(threads):
        made.thread(f"t{n}").instructions = instructions
    return made


def path(r: Run, thread: int = 0, end: int | None = None) -> list[tuple[int, int, Category]]:
    end = r.recorded.pieces[thread][-1].end if end is None else end
    return [(s.start, s.end, s.category) for s in r.path(0, end, thread)]


def test_host_then_kernel_then_sync():
    r = run(program([Host(10_000, "h"), kernel(50_000), sync()]))
    # The call runs from 10 to 15 us, the kernel can start 2 us later, the wait returns 2.5 us after its end.
    assert path(r) == [
        (0, 10_000, Category.HOST_UNTRACED),
        (10_000, 17_000, Category.LAUNCH),
        (17_000, 67_000, Category.DEVICE_KERNEL),
        (67_000, 69_500, Category.HOST_SYNC),
    ]
    assert [(s.start, s.end, s.category) for s in r.device_account(0, 69_500, 0)] == [
        (0, 10_000, Category.HOST_UNTRACED),
        (10_000, 15_000, Category.LAUNCH),
        (15_000, 17_000, Category.LAUNCH),
        (17_000, 67_000, Category.DEVICE_KERNEL),
        (67_000, 69_500, Category.NO_LAUNCH_RECORD),
    ]


def test_a_wait_under_a_busy_device_is_device_time():
    r = run(program([kernel(80_000), kernel(80_000), sync()]))
    assert by_category(r.path(0, r.end_ns, 0)) == {
        Category.LAUNCH: 7_000 + 1_000,
        Category.DEVICE_KERNEL: 160_000,
        Category.HOST_SYNC: 2_500,
    }


def test_launch_bound_path_runs_along_the_host():
    r = run(program([x for _ in range(10) for x in (Host(8_000, "h"), kernel(1_000))]))
    end = r.recorded.ops[-1].end
    last = r.recorded.pieces[0][-1]
    assert by_category(r.path(0, last.end, 0)) == {Category.HOST_UNTRACED: 80_000, Category.HOST_API: 50_000}
    assert r.busy(0, end) == 10_000


def test_collective_path_goes_over_to_the_last_arrival():
    late = [Host(90_000, "late"), kernel(20_000, group="g", device=1), sync(1)]
    r = run(program([kernel(20_000, group="g"), sync()], late, devices=2))
    found = by_category(r.path(0, r.recorded.pieces[0][-1].end, 0))
    assert found == {
        Category.HOST_UNTRACED: 90_000,
        Category.LAUNCH: 7_000,
        Category.DEVICE_COLLECTIVE: 20_000,
        Category.HOST_SYNC: 2_500,
    }


def test_full_command_buffer_blocks_the_launch():
    r = run(program([kernel(100_000) for _ in range(6)], depth=2))
    ends = [o.end for o in r.recorded.ops]
    starts = [c.start for c in r.recorded.calls]
    assert starts[1] < ends[0]
    assert [c.end for c in r.recorded.calls][2] == ends[0] + 5_000
    assert all(b - a == 101_000 for a, b in pairwise(ends))


def test_waiting_for_nobody_is_an_error():
    made = program([])
    made.threads[0].wait_for("never")
    with pytest.raises(Deadlock, match="wait for each other"):
        run(made)


def test_without_takes_the_cause_and_leaves_its_calls():
    made = program([Host(10_000, "h"), kernel(50_000), sync()])
    other = run(without(made, "k"))
    assert other.end_ns == run(made).end_ns - 50_000
    assert len(other.recorded.calls) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_are_exact(seed: int):
    r = run(random_program(seed, queue_depth=(4, 16, 1022)[seed % 3]))
    begin, end = r.mark("begin"), r.mark("end")
    for low, high in ((begin, end), (begin + (end - begin) // 3, end - (end - begin) // 4)):
        for segments in (r.path(low, high, 0), *(r.device_account(low, high, d) for d in range(2))):
            assert (segments[0].start, segments[-1].end) == (low, high)
            assert all(a.end == b.start and a.ns > 0 for a, b in pairwise(segments))


@pytest.mark.parametrize("seed", SEEDS)
def test_order_on_threads_and_streams(seed: int):
    r = run(random_program(seed))
    for pieces in r.recorded.pieces:
        assert all(a.end == b.start and a.end >= a.start for a, b in pairwise(pieces))
    streams: dict[tuple[int, int], int] = {}
    for op in r.recorded.ops:
        assert op.call_start < op.start <= op.end
        assert op.start >= streams.get((op.device, op.stream), 0)
        streams[op.device, op.stream] = op.end


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cause_saves_no_more_than_its_time_on_the_path(seed: int):
    made = random_program(seed, queue_depth=(4, 16, 1022)[seed % 3])
    r = run(made)
    begin, end = r.mark("begin"), r.mark("end")
    on_path = by_tag(r.path(begin, end, 0))
    # Waking up costs a waiting thread time that a signal given before the wait does not: a cause that is gone may make
    # a thread wait that did not, or spare one its wait.
    wakes = sum(60_000 for s in made.threads for i in s.instructions if hasattr(i, "wake_ns"))
    for tag in made.tags():
        other = run(without(made, tag))
        saved = (end - begin) - (other.mark("end") - other.mark("begin"))
        if tag not in on_path:
            assert saved == 0, tag
        assert -wakes <= saved <= on_path.get(tag, 0) + wakes, tag


def test_same_seed_same_run():
    def rows(seed: int) -> list:
        return [(o.start, o.end) for o in run(random_program(seed)).recorded.ops]

    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_as_trace_has_every_row_in_order():
    r = run(random_program(5))
    trace = as_trace(r)
    assert len(trace.ops) == len(r.recorded.ops)
    assert (trace.ops.start[1:] >= trace.ops.start[:-1]).all()
    assert (trace.host.start[1:] >= trace.host.start[:-1]).all()
    joined = set(zip(trace.host.process.tolist(), trace.host.correlation.tolist(), strict=True))
    assert set(zip(trace.ops.process.tolist(), trace.ops.correlation.tolist(), strict=True)) <= joined
