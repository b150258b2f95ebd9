"""How ops and waits hang on API calls, a sentence each."""

from __future__ import annotations

import pytest

from account.small import Small, ns
from scopedown.account.calls import Calls
from scopedown.account.handover import find_handovers
from scopedown.trace.model import NONE, CopyKind, HostKind, MemKind, OpKind
from scopedown.trace.names import ApiMeaning


def call_at(c: Calls, start: float) -> int:
    return c.start.tolist().index(ns(start))


def waits_for(s: Small, start: float) -> int | None:
    """The op that the call at that time waited for; None where it is no wait."""
    c = s.timeline().calls
    row = call_at(c, start)
    return int(c.awaited[row]) if c.blocking[row] else None


def test_correlation_is_joined_per_process() -> None:
    s = Small((0, 1)).launch(0, 5, 1, thread=0).launch(10, 15, 1, thread=1)
    s.op(20, 30, 1, process=1).op(40, 50, 1, process=0)
    c = s.timeline().calls
    assert c.thread[c.of_op].tolist() == [1, 0]


def test_no_correlation_joins_nothing() -> None:
    assert Small().launch(0, 5, NONE).op(10, 20, NONE).timeline().calls.of_op.tolist() == [NONE]


def test_a_driver_call_inside_a_runtime_call_is_that_call() -> None:
    s = Small().call("cudaLaunchKernel", 0, 10).call("cuLaunchKernel", 2, 8, 5).op(12, 20, 5)
    c = s.timeline().calls
    assert (len(c), c.of_op.tolist()) == (1, [0])


def test_a_call_without_meaning_takes_it_from_its_launch() -> None:
    c = Small().call("someLaunchOfATool", 0, 5, 3).op(10, 20, 3).timeline().calls
    assert c.meaning.tolist() == [ApiMeaning.LAUNCH]


def test_a_wait_is_for_the_op_that_was_launched_last_before_it() -> None:
    s = Small().launch(0, 5, 1).op(10, 50, 1).call("cudaStreamSynchronize", 20, 52).launch(60, 65, 2).op(70, 90, 2)
    assert waits_for(s, 20) == 0


def test_a_wait_is_for_the_stream_that_its_record_names() -> None:
    s = Small().launch(0, 5, 1).launch(6, 9, 2).op(10, 50, 1, stream=7).op(12, 51, 2, stream=8)
    s.call("cudaStreamSynchronize", 20, 52, 9)
    assert waits_for(s, 20) == 1
    s.sync_record(9, stream=7)
    assert waits_for(s, 20) == 0


def test_a_wait_for_an_event_is_for_the_op_before_its_record() -> None:
    s = Small().launch(0, 5, 1).op(10, 50, 1).call("cudaEventRecord", 6, 7, 2).event_record(2, event=4, stream=7)
    s.launch(8, 9, 3).op(50, 52, 3).call("cudaEventSynchronize", 20, 53, 5).sync_record(5, event=4)
    assert waits_for(s, 20) == 0


def test_a_wait_for_all_streams_knows_the_others_too() -> None:
    s = Small().launch(0, 5, 1).launch(6, 9, 2).op(10, 50, 1, stream=7).op(12, 60, 2, stream=8)
    c = s.call("cudaDeviceSynchronize", 20, 62).timeline().calls
    row = call_at(c, 20)
    assert (c.awaited[row], c.awaited_too[row]) == (1, (0,))


def test_the_device_of_a_wait_is_that_of_its_context() -> None:
    """A process that sees one device of many calls it 0."""
    s = Small().launch(0, 5, 1).op(10, 50, 1, device=3).call("cudaStreamSynchronize", 20, 52, 9)
    assert waits_for(s.sync_record(9, stream=7, device=0, context=4), 20) == 0


def test_work_that_outlives_the_call_was_not_waited_for() -> None:
    s = Small().launch(0, 5, 1).op(10, 500, 1).call("cudaStreamSynchronize", 20, 30)
    assert waits_for(s, 20) is None


def test_a_free_waits_for_the_device_and_an_allocation_does_not() -> None:
    s = Small().launch(0, 5, 1).op(10, 50, 1).call("cudaMalloc", 12, 18).call("cudaFree", 20, 90)
    assert (waits_for(s, 12), waits_for(s, 20)) == (None, 0)


@pytest.mark.parametrize(
    ("name", "memory", "blocks"),
    [
        ("cudaMemcpy", MemKind.PINNED, True),
        ("cudaMemcpyAsync", MemKind.PAGEABLE, True),
        ("cudaMemcpyAsync", MemKind.PINNED, False),
    ],
)
def test_a_copy_blocks_where_its_call_returns_after_it(name: str, memory: MemKind, blocks: bool) -> None:
    s = Small().call(name, 0, 60, 1)
    s.op(10, 55, 1, kind=OpKind.COPY, name="HtoD", copy=CopyKind.HTOD, host_memory=memory)
    assert waits_for(s, 0) == (0 if blocks else None)


def test_a_full_command_buffer_is_let_go_by_the_device() -> None:
    s = Small().launch(0, 5, 1).op(10, 100, 1).launch(20, 105, 2).op(101, 120, 2)
    assert waits_for(s, 20) is None
    s.event(HostKind.OVERHEAD, "Command buffer full", 22, 102)
    assert waits_for(s, 20) == 0


def test_a_full_queue_shows_without_a_record() -> None:
    """The stream holds as many ops as it ever does, and the call returns as soon as one has ended."""
    s = Small()
    for n in range(8):
        s.launch(10 * n, 10 * n + 4, n)
    for n in range(8, 20):
        s.launch(100 * (n - 7) - 10, 100 * (n - 7) + 3, n)
    for n in range(20):
        s.op(2 if n == 0 else 100 * n, 100 * n + 99.5, n)
    c = s.timeline().calls
    assert c.blocking.tolist() == [False] * 8 + [True] * 12


def test_a_hand_over_is_a_wait_that_ended_soon_after_a_signal() -> None:
    s = Small((0, 0)).os("pthread_cond_wait", 0, 130, 0).os("pthread_cond_signal", 98, 100, 1)
    (h,) = find_handovers(s.trace())
    assert (h.thread, h.giver, h.signal, h.bound) == (0, 1, ns(100), True)


@pytest.mark.parametrize("other", [(0, 1), (0, 0)])
def test_a_signal_of_another_process_or_long_before_hands_nothing_over(other: tuple[int, int]) -> None:
    at = 98 if other == (0, 1) else 20
    s = Small(other).os("pthread_cond_wait", 0, 130, 0).os("pthread_cond_signal", at, at + 2, 1)
    assert find_handovers(s.trace()) == []


def test_a_wait_that_returned_at_once_had_its_signal() -> None:
    s = Small((0, 0)).os("pthread_cond_wait", 50, 51, 0).os("pthread_cond_signal", 8, 10, 1)
    (h,) = find_handovers(s.trace())
    assert (h.signal, h.bound) == (ns(10), False)
