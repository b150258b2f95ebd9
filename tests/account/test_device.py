"""What a device waited for, a sentence each."""

from __future__ import annotations

from account.small import Small, labels, ns, totals
from scopedown.account.device import LAUNCH_DEFAULT_NS
from scopedown.account.host import UNNAMED
from scopedown.terms import Category
from scopedown.trace.model import NONE, CopyKind, HostKind, MemKind, OpKind

C = Category
PLAUSIBLE = LAUNCH_DEFAULT_NS / 1000


def test_where_ops_overlap_the_order_of_classes_names_the_time() -> None:
    s = Small().op(0, 60, kind=OpKind.COPY, name="HtoD", copy=CopyKind.HTOD, stream=8).op(10, 20)
    s.op(15, 40, kind=OpKind.COLLECTIVE, name="ncclDevKernel_AllReduce()", stream=9)
    s.op(50, 80, kind=OpKind.MEMSET, name="memset", stream=10).op(80, 90, kind=OpKind.GRAPH, name="graph")
    assert s.device(0, 90) == [
        (C.DEVICE_COPY, 10),
        (C.DEVICE_KERNEL, 10),
        (C.DEVICE_COLLECTIVE, 20),
        (C.DEVICE_COPY, 20),
        (C.DEVICE_MEMSET, 20),
        (C.DEVICE_OPAQUE_GRAPH, 10),
    ]


def test_a_gap_is_host_late_then_the_call_then_launch_latency() -> None:
    s = Small().launch(0, 5, 1).op(10, 20, 1).range("sampling", 30, 80).launch(90, 95, 2).op(98, 120, 2)
    assert s.device(0, 120) == [
        (C.LAUNCH, 10),
        (C.DEVICE_KERNEL, 10),
        (C.HOST_UNTRACED, 10),
        (C.HOST_ANNOTATION, 50),
        (C.HOST_UNTRACED, 10),
        (C.LAUNCH, 8),
        (C.DEVICE_KERNEL, 22),
    ]


def test_host_late_is_what_the_launching_thread_did_innermost() -> None:
    s = Small((0, 0)).launch(0, 5, 1).op(10, 20, 1)
    s.range("busy elsewhere", 20, 200, thread=0).range("step", 20, 100, thread=1)
    s.event(HostKind.OP, "aten::mm", 40, 70, thread=1).call("cudaMalloc", 50, 60, thread=1)
    s.launch(100, 105, 2, thread=1).op(107, 120, 2)
    assert s.device(20, 107)[:-1] == [
        (C.HOST_ANNOTATION, 20),
        (C.HOST_FRAMEWORK, 10),
        (C.HOST_ALLOC, 10),
        (C.HOST_FRAMEWORK, 10),
        (C.HOST_ANNOTATION, 30),
    ]


def test_a_synchronising_call_under_which_the_device_is_busy_is_not_host_late() -> None:
    s = Small().launch(0, 5, 1).op(10, 1000, 1).call("cudaStreamSynchronize", 6, 1003)
    s.launch(1010, 1015, 2).op(1018, 1100, 2)
    found = totals(s.device(10, 1100))
    assert found[C.HOST_SYNC] == 3
    assert found[C.DEVICE_KERNEL] > 900


def test_a_long_launch_call_hides_something_and_is_never_called_launch() -> None:
    s = Small().launch(0, 5, 1).op(10, 20, 1).launch(30, 5030, 2).op(5040, 5050, 2)
    t = s.timeline()
    segs = t.devices.account(0, ns(20), ns(5040)).segments
    assert s.device(20, 5040) == [(C.HOST_UNTRACED, 10), (C.HOST_API, 5000), (C.LAUNCH, 10)]
    assert labels(t, segs)[1] == "cudaLaunchKernel" + UNNAMED


def test_an_overhead_record_inside_a_long_call_names_it() -> None:
    s = Small().launch(0, 5, 1).op(10, 20, 1).launch(30, 5030, 2).op(5040, 5050, 2)
    s.event(HostKind.OVERHEAD, "module loading", 40, 5000)
    assert totals(s.device(20, 5040))[C.HOST_MODULE] == 4960


def test_launch_latency_beyond_the_plausible_is_unaccounted() -> None:
    s = Small().launch(0, 5, 1).op(5 + PLAUSIBLE + 300, 1000, 1)
    assert s.device(0, 5 + PLAUSIBLE + 300) == [(C.LAUNCH, 5 + PLAUSIBLE), (C.UNACCOUNTED, 300)]


def test_the_plausible_comes_from_the_traces_own_undisturbed_launches() -> None:
    s = Small()
    for n in range(20):
        s.launch(1000 * n, 1000 * n + 5, n).op(1000 * n + 25, 1000 * n + 40, n)
    assert s.timeline().devices.plausible_ns == ns(100)


def test_no_launch_record_is_said_gap_by_gap() -> None:
    s = Small().op(10, 20, NONE).launch(30, 35, 2).op(38, 50, 2)
    assert s.device(0, 38) == [
        (C.NO_LAUNCH_RECORD, 10),
        (C.DEVICE_KERNEL, 10),
        (C.HOST_UNTRACED, 10),
        (C.LAUNCH, 8),
    ]


def test_nothing_that_follows_is_no_release() -> None:
    t = Small().op(0, 10).timeline()
    found = t.devices.account(0, 0, ns(50))
    assert labels(t, found.segments)[1] == "nothing starts on the device before the interval ends"
    assert (found.busy_ns, found.gaps.release.tolist()) == (ns(10), [NONE])


def test_an_op_of_another_device_that_is_waited_for_is_dependency() -> None:
    s = Small().launch(0, 5, 1).op(10, 400, 1, device=0).call("cudaEventRecord", 6, 7, 2)
    s.event_record(2, event=1, stream=7, device=0)
    s.call("cudaStreamWaitEvent", 8, 9, 3).sync_record(3, stream=7, event=1, device=1)
    s.launch(10, 15, 4).op(405, 500, 4, device=1)
    assert s.device(15, 500, device=1) == [(C.DEPENDENCY, 385), (C.LAUNCH, 5), (C.DEVICE_KERNEL, 95)]


def test_a_blocking_copy_is_host_copy_before_it_moves() -> None:
    s = Small().launch(0, 5, 1).op(10, 20, 1).call("cudaMemcpy", 30, 200, 2)
    s.op(130, 195, 2, kind=OpKind.COPY, name="HtoD", copy=CopyKind.HTOD, host_memory=MemKind.PAGEABLE)
    assert s.device(20, 195) == [(C.HOST_UNTRACED, 10), (C.HOST_COPY, 100), (C.DEVICE_COPY, 65)]


def test_host_code_off_the_core_is_an_os_wait() -> None:
    s = Small().launch(0, 5, 1).op(10, 20, 1).range("step", 20, 100).off_core(40, 70).launch(100, 105, 2)
    s.op(107, 120, 2)
    assert s.device(20, 100) == [(C.HOST_ANNOTATION, 20), (C.HOST_OS_WAIT, 30), (C.HOST_ANNOTATION, 30)]


def test_an_os_call_inside_an_api_call_is_how_that_call_waits() -> None:
    s = Small().launch(0, 5, 1).op(10, 20, 1).call("cudaMalloc", 30, 90).os("ioctl", 40, 80).launch(100, 105, 2)
    s.op(107, 120, 2)
    assert (C.HOST_ALLOC, 60) in s.device(20, 107)
