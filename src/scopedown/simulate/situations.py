"""Situations with a trace: each function writes one, and says what a right answer contains.

A new one is a function from a seed to a Situation; add it to SITUATIONS in ``scopedown.simulate``.
"""

from __future__ import annotations

from scopedown.simulate.server import ATTENTION, LAYER, LAYERS, SMALL, Server
from scopedown.simulate.situation import Expect, Situation
from scopedown.simulate.write_nsys import NsysOptions
from scopedown.terms import HOST_WITHOUT_CAUSE, Category, Kind, Metric, Scope, Statistic
from scopedown.trace.model import CopyKind

NARROW = (Scope.KERNEL, Scope.SOURCE, Scope.INSTRUCTIONS)
HOST = (Category.HOST_ANNOTATION, *sorted(HOST_WITHOUT_CAUSE - {Category.HOST_ANNOTATION}))
FRAMEWORK_NEXT = Expect((Kind.MEASURE,), (Scope.FRAMEWORK,), HOST, NARROW, "host code on the path has no cause yet")


def changes(*categories: Category, why: str) -> Expect:
    """The timeline names the cause: change it, and compare."""
    return Expect((Kind.CHANGE, Kind.MEASURE), (Scope.TIMELINE,), categories, NARROW, why)


def kernels(why: str) -> Expect:
    return Expect((Kind.MEASURE,), (Scope.KERNEL,), (Category.DEVICE_KERNEL,), NARROW[1:], why)


def worked_example(seed: int) -> Situation:
    """One prompt of 2,048 tokens: 121 ms to the first token, the device active 35 %; shape logic before every layer."""
    s = Server(seed)
    with s.step("prefill step"):
        s.engine.host(5_500_000, tag="prepare inputs", spread=0.02)
        for n in range(LAYERS):
            with s.engine.range(f"layer {n}"):
                # A graph break: back in Python, which reads a shape and decides, then a few small ops one by one.
                s.engine.host(1_779_000, tag="shape logic", spread=0.008)
                for _ in range(12):
                    s.engine.host(29_000, tag="eager ops", spread=0.1)
                    s.engine.kernel(SMALL, 3_000, tag=SMALL, spread=0.1)
                s.layer(1_272_000)
                s.engine.sync()
        s.engine.kernel(LAYER[5][0], 560_000, tag="lm head", spread=0.01)
        s.token()
    return s.situation("worked_example", Metric.TTFT, FRAMEWORK_NEXT, target=0.496, monitor_period_ns=20_000_000)


def dominating_kernel(seed: int) -> Situation:
    """The host runs ahead; one attention kernel family holds two thirds of the prefill."""
    s = Server(seed)
    with s.step("prefill step"):
        for _ in range(LAYERS):
            s.layer(800_000)
            s.engine.kernel(ATTENTION, 2_100_000, tag="attention", spread=0.02)
        s.token()
    return s.situation("dominating_kernel", Metric.TTFT, kernels("one kernel family holds the path"), target=0.6)


def launch_bound(seed: int) -> Situation:
    """A hundred kernels of 2 us a layer, launched one by one and never awaited: the path runs along the host."""
    s = Server(seed)
    with s.step("prefill step"):
        for _ in range(24):
            for _ in range(100):
                s.engine.host(8_000, tag="dispatch", spread=0.1)
                s.engine.kernel(SMALL, 2_200, tag=SMALL, spread=0.1, blocks=4)
        s.token()
    return s.situation("launch_bound", Metric.TTFT, FRAMEWORK_NEXT)


def sync_then_launch(seed: int) -> Situation:
    """Decode: wait for the token, decide for 1.8 ms, launch the next step; the same gap before every step."""
    s = Server(seed)
    with s.step("prefill step"):
        s.layer(8_000_000)
        s.token()
    for n in range(64):
        with s.step(f"decode step {n}"):
            s.engine.host(1_800_000, tag="prepare step", spread=0.02)
            for _ in range(8):
                s.layer(210_000)
            s.token()
    return s.situation("sync_then_launch", Metric.TPOT, FRAMEWORK_NEXT, target=0.7)


def sync_is_device_work(seed: int) -> Situation:
    """Decode steps launched at once and then awaited: nearly all of the time stands under a synchronising call, and
    all of that is the device's work."""
    s = Server(seed)
    with s.step("prefill step"):
        s.layer(9_000_000)
        s.token()
    for n in range(24):
        with s.step(f"decode step {n}"):
            s.engine.host(90_000, tag="prepare step", spread=0.05)
            for _ in range(LAYERS):
                s.layer(330_000)
            s.token()
    return s.situation("sync_is_device_work", Metric.TPOT, kernels("under the synchronisation the device works"))


def pageable_copies(seed: int) -> Situation:
    """Nine uploads from pageable memory, each blocking, before the first kernel."""
    s = Server(seed)
    with s.step("restore prefix"):
        for _ in range(9):
            s.engine.host(35_000, tag="next block", spread=0.2)
            nbytes = s.rng.randrange(50_000_000, 64_000_000)
            s.engine.copy(CopyKind.HTOD, nbytes, nbytes // 10, "upload", pageable=True, stage_ns=120_000)
    with s.step("prefill step"):
        for _ in range(LAYERS):
            s.layer(440_000)
        s.token()
    expect = changes(Category.DEVICE_COPY, Category.HOST_COPY, why="blocking uploads before the first kernel")
    return s.situation("pageable_copies", Metric.TTFT, expect)


def long_copy_then_idle(seed: int) -> Situation:
    """One long pinned upload that the engine waits for; no compute runs beside it."""
    s = Server(seed)
    with s.step("load adapter"):
        s.engine.copy(CopyKind.HTOD, 2_300_000_000, 44_000_000, "adapter upload", stream=14, spread=0.02)
        s.engine.sync(stream=14)
    with s.step("prefill step"):
        for _ in range(LAYERS):
            s.layer(500_000)
        s.token()
    expect = changes(Category.DEVICE_COPY, why="a copy holds the path, with nothing beside it")
    return s.situation("long_copy_then_idle", Metric.TTFT, expect)


def allocation_in_loop(seed: int) -> Situation:
    """Every decode step allocates a workspace and frees it again: cudaFree also waits for the device."""
    s = Server(seed)
    with s.step("prefill step"):
        s.layer(8_000_000)
        s.token()
    for n in range(40):
        with s.step(f"decode step {n}"):
            s.engine.alloc(900_000, "workspace", spread=0.05)
            for _ in range(8):
                s.layer(150_000)
            s.engine.free(700_000, "workspace", spread=0.05)
            s.token()
    return s.situation("allocation_in_loop", Metric.TPOT, changes(Category.HOST_ALLOC, why="allocator calls"))


def module_load(seed: int) -> Situation:
    """The first launch of a kernel loads its module: the launch call lasts 58 ms, and the tool says why."""
    return _module_load(seed, "module_load", recorded=True)


def module_load_unrecorded(seed: int) -> Situation:
    """The same, and no overhead record says what the long launch call did."""
    return _module_load(seed, "module_load_unrecorded", recorded=False)


def _module_load(seed: int, name: str, *, recorded: bool) -> Situation:
    s = Server(seed)
    with s.step("prefill step"):
        for n in range(LAYERS):
            if n == 3:
                load = s.program.around(58_000_000, 0.02)
                s.engine.kernel("fused_moe_kernel", 90_000, load_ns=load, load_recorded=recorded)
            s.layer(700_000)
        s.token()
    known = changes(Category.HOST_MODULE, Category.HOST_API, why="one launch call loads a module for 58 ms")
    unknown = Expect(
        (Kind.MEASURE, Kind.RECAPTURE, Kind.CHANGE),
        (Scope.FRAMEWORK, Scope.TIMELINE),
        (Category.HOST_API, Category.UNACCOUNTED, Category.HOST_MODULE),
        NARROW,
        "one launch call hides 58 ms, and no record says of what",
    )
    expect = known if recorded else unknown
    # The table of overhead records exists from schema 3.24 on.
    nsys = NsysOptions(product="2026.2.1.210") if recorded else None
    return s.situation(name, Metric.TTFT, expect, nsys=nsys)


def opaque_graph(seed: int) -> Situation:
    """Decode by graph launches that the tool recorded as a whole: the inside is not in the file."""
    return _graphs(seed, "opaque_graph", whole=True)


def graph_by_node(seed: int) -> Situation:
    """The same with the nodes recorded: one kernel family holds most of each graph."""
    return _graphs(seed, "graph_by_node", whole=False)


def _graphs(seed: int, name: str, *, whole: bool) -> Situation:
    s = Server(seed)
    with s.step("prefill step"):
        s.layer(8_000_000)
        s.token()
    nodes = [(kernel, int(120_000 * share)) for _ in range(LAYERS) for kernel, share in LAYER]
    nodes += [(ATTENTION, 150_000)] * LAYERS
    for n in range(30):
        with s.step(f"decode step {n}"):
            s.engine.host(110_000, tag="prepare step", spread=0.05)
            s.engine.graph(nodes, tag="graph", whole=whole, spread=0.01)
            s.token()
    opaque = Expect((Kind.MEASURE, Kind.RECAPTURE), (Scope.TIMELINE,), (Category.DEVICE_OPAQUE_GRAPH,), NARROW)
    return s.situation(name, Metric.TPOT, opaque if whole else kernels("one family inside the graph"))


def exposed_collective(seed: int) -> Situation:
    """Two devices: every layer ends in an all-reduce with no compute beside it."""
    s = Server(seed, devices=2)
    other = s.program.thread("Worker_TP1")
    s.engine.signal("step")
    other.wait_for("step")
    with s.step("prefill step"), other.range("prefill step"):
        other.owner = s.request
        for n in range(LAYERS):
            ns = s.program.around(1_150_000, 0.02)
            for rank, script in enumerate((s.engine, other)):
                s.layer(420_000, device=rank, script=script)
                script.collective(f"layer {n}", ns, "all-reduce", device=rank)
        s.token()
        other.sync(device=1)
    expect = Expect((Kind.MEASURE, Kind.CHANGE), (Scope.TIMELINE,), (Category.DEVICE_COLLECTIVE,), NARROW)
    return s.situation("exposed_collective", Metric.TTFT, expect)


def os_wait(seed: int) -> Situation:
    """Before every decode step the engine sleeps in a lock for 2 ms, as the OS rows show."""
    s = Server(seed)
    with s.step("prefill step"):
        s.layer(8_000_000)
        s.token()
    for n in range(40):
        with s.step(f"decode step {n}"):
            s.engine.os_wait(2_100_000, "lock", call="pthread_mutex_lock", spread=0.03)
            for _ in range(8):
                s.layer(170_000)
            s.token()
    return s.situation("os_wait", Metric.TPOT, changes(Category.HOST_OS_WAIT, why="the engine waits for a lock"))


def rare_pauses(seed: int) -> Situation:
    """Sixty decode steps, three of them paused for 45 ms outside any range: p99 of the inter-token latency."""
    s = Server(seed)
    with s.step("prefill step"):
        s.layer(8_000_000)
        s.token()
    paused = set(s.rng.sample(range(5, 58), 3))
    for n in range(60):
        if n in paused:
            s.engine.host(45_000_000, tag="pause", spread=0.05)
        with s.step(f"decode step {n}"):
            s.engine.host(60_000, tag="prepare step", spread=0.05)
            for _ in range(8):
                s.layer(350_000)
            s.token()
    return s.situation("rare_pauses", Metric.ITL, FRAMEWORK_NEXT, statistic=Statistic.P99, target=0.3, others=3)


def side_stream(seed: int) -> Situation:
    """A second stream copies all the time beside a host-bound prefill: the device looks busy, the path waits."""
    s = Server(seed)
    with s.step("prefill step"):
        for _ in range(9):
            s.engine.copy(CopyKind.HTOD, 400_000_000, 8_000_000, "prefetch", stream=14, spread=0.02)
        for n in range(LAYERS):
            with s.engine.range(f"layer {n}"):
                s.engine.host(1_700_000, tag="shape logic", spread=0.02)
                s.layer(500_000)
                s.engine.sync()
        s.token()
    return s.situation("side_stream", Metric.TTFT, FRAMEWORK_NEXT)


def neighbour_prefill(seed: int) -> Situation:
    """Other requests' prefills run between my decode steps; the annotations say whose they are."""
    s = Server(seed)
    with s.step(f"prefill {s.request}"):
        s.layer(8_000_000)
        s.token()
    for n in range(40):
        if n % 4 == 2:
            other = s.new_id()
            with s.step(f"prefill {other}", owner=other):
                s.engine.host(150_000, tag="prepare step", spread=0.05)
                for _ in range(LAYERS):
                    s.layer(1_000_000)
                s.engine.sync()
        with s.step(f"decode {s.request} step {n}"):
            s.engine.host(60_000, tag="prepare step", spread=0.05)
            for _ in range(8):
                s.layer(350_000)
            s.token()
    expect = Expect((Kind.CHANGE, Kind.MEASURE), (Scope.APPLICATION,), (Category.SCHEDULER,), NARROW)
    return s.situation("neighbour_prefill", Metric.TPOT, expect, load="8 requests in flight")


def nothing_wrong(seed: int) -> Situation:
    """The request is within its target."""
    s = Server(seed)
    with s.step("prefill step"):
        for _ in range(LAYERS):
            s.layer(1_100_000)
        s.token()
    expect = Expect((Kind.ENOUGH,), (Scope.APPLICATION,), ())
    return s.situation("nothing_wrong", Metric.TTFT, expect, target=1.25)


def two_processes(seed: int) -> Situation:
    """Two ranks as processes with the same correlation ids, each with its device; the first one's host is late."""
    s = Server(seed, devices=2)
    second = s.program.process("python3")
    other = s.program.thread("Worker_TP1", second)
    with s.step("prefill step"), other.range("prefill step"):
        for n in range(LAYERS):
            s.engine.host(1_500_000, tag="shape logic", spread=0.02)
            s.layer(300_000)
            ns = s.program.around(60_000, 0.05)
            s.engine.collective(f"layer {n}", ns, "all-reduce")
            s.engine.sync()
            s.layer(300_000, device=1, script=other)
            other.collective(f"layer {n}", ns, "all-reduce", device=1)
            other.sync(device=1)
        s.token()
    return s.situation("two_processes", Metric.TTFT, FRAMEWORK_NEXT)


def two_devices(seed: int) -> Situation:
    """A pipeline: the second half of the layers runs on another device, which waits for an event of the first."""
    s = Server(seed, devices=2)
    with s.step("prefill step"):
        for _ in range(LAYERS // 2):
            s.layer(500_000)
            s.engine.kernel(ATTENTION, 1_500_000, tag="attention", spread=0.02)
        s.engine.copy(CopyKind.PTOP, 16_777_216, 60_000, "hand over")
        s.engine.record("first half")
        s.engine.wait_event("first half", stream=7, device=1)
        for _ in range(LAYERS // 2):
            s.layer(500_000, device=1)
            s.engine.kernel(ATTENTION, 1_500_000, tag="attention", spread=0.02, device=1)
        s.token(device=1)
    return s.situation("two_devices", Metric.TTFT, kernels("one family on both devices"))


def hand_over(seed: int) -> Situation:
    """The engine waits for a scheduler thread before each decode step; that thread's work is the time."""
    s = Server(seed)
    scheduler = s.program.thread("Scheduler")
    with s.step("prefill step"):
        s.layer(8_000_000)
        s.token()
    for n in range(40):
        s.engine.signal("tokens")
        scheduler.wait_for("tokens")
        with scheduler.range(f"schedule {n}"):
            scheduler.host(1_600_000, tag="schedule", spread=0.03)
        scheduler.signal("batch")
        s.engine.wait_for("batch")
        with s.step(f"decode step {n}"):
            for _ in range(8):
                s.layer(170_000)
            s.token()
    expect = Expect(
        (Kind.MEASURE, Kind.CHANGE), (Scope.FRAMEWORK, Scope.TIMELINE), (Category.HOST_OS_WAIT, *HOST), NARROW
    )
    return s.situation("hand_over", Metric.TPOT, expect)
