"""The backward walk, a sentence each: the predecessor that finished last."""

from __future__ import annotations

from account.small import Small, labels, named, ns
from scopedown.account.path import CROSS_SLACK_NS, STREAM_SLACK_NS
from scopedown.account.timeline import Ending
from scopedown.terms import Category
from scopedown.trace.model import NONE, CopyKind, MemKind, OpKind

C = Category


def test_a_synchronising_wait_under_a_busy_device_is_device_time() -> None:
    s = Small().launch(0, 5, 1).op(10, 1000, 1).call("cudaStreamSynchronize", 6, 1003)
    assert s.path(0, 1010) == [
        (C.LAUNCH, 10),
        (C.DEVICE_KERNEL, 990),
        (C.HOST_SYNC, 3),
        (C.HOST_UNTRACED, 7),
    ]


def test_host_work_counts_while_the_device_is_still_busy_with_earlier_work() -> None:
    """Launch-bound code: the stream was empty when the last op was launched, so the path runs along the host."""
    s = Small().range("forward", 0, 100)
    for n in range(5):
        s.launch(20 * n, 20 * n + 4, n).op(20 * n + 6, 20 * n + 14, n)
    s.op(0, 80, NONE, stream=9)
    found = s.call("cudaStreamSynchronize", 86, 97, 50).sync_record(50, stream=7).path(0, 97)
    assert found[-3:] == [(C.LAUNCH, 6), (C.DEVICE_KERNEL, 8), (C.HOST_SYNC, 3)]
    assert found[:-3] == [(C.HOST_API, 4), (C.HOST_ANNOTATION, 16)] * 4


def test_an_op_follows_the_one_before_it_that_ended_after_the_launch_returned() -> None:
    s = Small().launch(0, 5, 1).op(10, 60, 1).launch(20, 25, 2).op(64, 90, 2).call("cudaStreamSynchronize", 30, 92)
    assert s.path(0, 92) == [
        (C.LAUNCH, 10),
        (C.DEVICE_KERNEL, 50),
        (C.LAUNCH, 4),
        (C.DEVICE_KERNEL, 26),
        (C.HOST_SYNC, 2),
    ]


def test_an_op_within_two_microseconds_of_the_one_before_had_waited_for_it() -> None:
    def path(gap: float) -> list[tuple[Category, float]]:
        s = Small().range("busy", 0, 60).launch(0, 5, 1).op(10, 60, 1).launch(58.5, 61.5, 2).op(60 + gap, 90, 2)
        return s.call("cudaStreamSynchronize", 70, 92).path(0, 92)

    near, far = STREAM_SLACK_NS / 1000, STREAM_SLACK_NS / 1000 + 0.5
    assert (C.DEVICE_KERNEL, 50) in path(near)
    assert (C.DEVICE_KERNEL, 50) not in path(far)
    assert (C.HOST_ANNOTATION, 53.5) in path(far)


def test_another_streams_op_within_three_microseconds_where_nothing_else_explains_the_start() -> None:
    def path(gap: float) -> list[tuple[Category, float]]:
        s = Small().launch(0, 5, 1).launch(6, 9, 2).op(10, 500, 1, stream=7).op(500 + gap, 600, 2, stream=8)
        return s.call("cudaDeviceSynchronize", 20, 602).path(0, 602)

    assert (C.DEVICE_KERNEL, 490) in path(CROSS_SLACK_NS / 1000)
    assert C.UNACCOUNTED in dict(path(CROSS_SLACK_NS / 1000 + 1))


def test_an_awaited_event_is_a_predecessor_wherever_its_stream_is() -> None:
    s = Small().launch(0, 5, 1).op(10, 400, 1, stream=7).call("cudaEventRecord", 6, 7, 2)
    s.event_record(2, event=1, stream=7).call("cudaStreamWaitEvent", 8, 9, 3).sync_record(3, stream=8, event=1)
    s.launch(10, 15, 4).op(405, 500, 4, stream=8).call("cudaStreamSynchronize", 20, 502, 5).sync_record(5, stream=8)
    assert s.path(0, 502) == [
        (C.LAUNCH, 10),
        (C.DEVICE_KERNEL, 390),
        (C.LAUNCH, 5),
        (C.DEVICE_KERNEL, 95),
        (C.HOST_SYNC, 2),
    ]


def test_streams_of_two_devices_with_one_number_are_two() -> None:
    s = Small().launch(0, 5, 1).op(10, 400, 1, device=0).call("cudaEventRecord", 6, 7, 2)
    s.event_record(2, event=1, stream=7, device=0)
    s.call("cudaStreamWaitEvent", 8, 9, 3).sync_record(3, stream=7, event=1, device=1)
    s.launch(10, 15, 4).op(405, 500, 4, device=1)
    assert s.timeline().graph.waited_event == {1: 0}


def test_after_a_wait_the_threads_own_time_is_on_the_path() -> None:
    """Synchronise, then decide, then launch."""
    s = Small().launch(0, 5, 1).op(10, 100, 1).call("cudaStreamSynchronize", 6, 103).range("decide", 103, 300)
    s.launch(300, 305, 2).op(310, 400, 2).call("cudaStreamSynchronize", 306, 403)
    assert (C.HOST_ANNOTATION, 197) in s.path(0, 403)


def test_the_path_goes_over_to_the_thread_that_gave_the_signal() -> None:
    s = (
        Small((0, 0))
        .os("pthread_cond_wait", 10, 230, 0)
        .range("work", 0, 200, 1)
        .os("pthread_cond_signal", 200, 202, 1)
    )
    s.range("before", 0, 10, 0).range("after", 230, 260, 0)
    assert s.path(0, 260) == [(C.HOST_ANNOTATION, 200), (C.HOST_OS_WAIT, 2 + 28), (C.HOST_ANNOTATION, 30)]


def test_a_collective_before_its_last_arrival_is_the_peers_time() -> None:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"
    s = Small((0, 0)).launch(0, 5, 1).op(10, 1000, 1, kind=OpKind.COLLECTIVE, name=name)
    s.range("late rank", 0, 700, 1).launch(700, 705, 2, 1)
    s.op(710, 1000, 2, kind=OpKind.COLLECTIVE, name=name, device=1)
    assert s.call("cudaStreamSynchronize", 20, 1003).path(0, 1003) == [
        (C.HOST_ANNOTATION, 700),
        (C.LAUNCH, 10),
        (C.DEVICE_COLLECTIVE, 290),
        (C.HOST_SYNC, 3),
    ]


def test_with_one_rank_a_wait_in_a_collective_cannot_be_split() -> None:
    s = Small().launch(0, 5, 1).op(10, 1000, 1, kind=OpKind.COLLECTIVE, name="ncclDevKernel_AllReduce()")
    assert (C.DEVICE_COLLECTIVE, 990) in s.call("cudaStreamSynchronize", 20, 1003).path(0, 1003)


def test_a_blocking_copy_behind_an_op_follows_that_op() -> None:
    s = Small().launch(0, 5, 1).op(10, 100, 1).call("cudaMemcpy", 20, 200, 2)
    s.op(102, 195, 2, kind=OpKind.COPY, name="DtoH", copy=CopyKind.DTOH, host_memory=MemKind.PAGEABLE)
    assert s.path(0, 200) == [
        (C.LAUNCH, 10),
        (C.DEVICE_KERNEL, 90),
        (C.LAUNCH, 2),
        (C.DEVICE_COPY, 93),
        (C.HOST_COPY, 5),
    ]


def test_a_launch_call_that_waited_for_a_full_queue_is_the_devices_time() -> None:
    s = Small().launch(0, 5, 1).op(10, 100, 1).launch(20, 102, 2).op(101, 120, 2)
    s.event(7, "Command buffer full", 22, 102)
    found = s.path(0, 110)
    assert (C.DEVICE_KERNEL, 90) in found


def test_where_no_launch_record_leads_on_the_device_account_speaks() -> None:
    s = Small().op(10, 100, NONE).op(150, 200, NONE)
    t = s.timeline()
    found = t.path(0, Ending(ns(200), NONE, 1))
    assert named(found) == [
        (C.NO_LAUNCH_RECORD, 10),
        (C.DEVICE_KERNEL, 90),
        (C.NO_LAUNCH_RECORD, 50),
        (C.DEVICE_KERNEL, 50),
    ]
    assert labels(t, found)[0] == "op without a launch record"


def test_without_device_rows_the_path_is_the_threads_innermost_events() -> None:
    assert Small().range("step", 0, 100).event(1, "aten::mm", 20, 60).path(0, 120) == [
        (C.HOST_ANNOTATION, 20),
        (C.HOST_FRAMEWORK, 40),
        (C.HOST_ANNOTATION, 40),
        (C.HOST_UNTRACED, 20),
    ]


def test_waits_are_named_by_the_api_call() -> None:
    s = Small().launch(0, 5, 1).op(10, 100, 1).call("cudaEventSynchronize", 6, 103, 9).sync_record(9)
    t = s.timeline()
    assert labels(t, t.path(0, Ending(ns(103), 0, NONE)))[-1] == "cudaEventSynchronize"


def test_an_axis_below_zero_keeps_the_predecessor_of_an_op_without_launch() -> None:
    s = Small().launch(-900, -895, 1).op(-890, -500, 1).op(-400, -300, NONE, stream=8)
    assert (C.DEVICE_KERNEL, 390) in named(s.timeline().path(ns(-900), Ending(ns(-300), NONE, 1)))
