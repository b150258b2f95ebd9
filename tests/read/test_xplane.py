"""JAX and XLA profiles: the public files against a decoder of the test's own, and the oddities of the format."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from make.xplane import LINE_START, UTC, PlaneMaker, environment, message, number, varint, write_xplane
from scopedown.answer import diagnose
from scopedown.case import case_from_files
from scopedown.errors import InputError
from scopedown.inspection import of_artifact
from scopedown.options import Options
from scopedown.read import READERS, load
from scopedown.read.base import Artifact, Source
from scopedown.read.rows import show
from scopedown.read.wire import WireError, fields
from scopedown.read.xplane import Xplane
from scopedown.read.xspace import rounded
from scopedown.simulate import SITUATIONS
from scopedown.terms import Kind, Scope
from scopedown.trace.model import NONE, CopyKind, HostKind, MemKind, OpKind, Trace
from shared_data import SHARED, needs_shared

JAX = SHARED / "data" / "jax"
GEMM, ATTENTION, TPU = (f"{n}.xplane.pb.gz" for n in ("mi300_gemm", "mi300_te_fused_attn", "tpu_inference_a"))

Event = tuple[str, int, int]
"""(name, start, end) in ns."""


def walk(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a message, the plain way: content as bytes, numbers as they are."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or number()
            yield key >> 3, data[at : at + size]
            at += size


def one(data: bytes, tag: int, otherwise: int | bytes = 0) -> int | bytes:
    return next((v for t, v in walk(data) if t == tag), otherwise)


def decoded(path: Path) -> dict[tuple[str, str], list[Event]]:
    """Events of each line, by (plane, line and its place)."""
    found: dict[tuple[str, str], list[Event]] = {}
    for tag, plane in walk(gzip.decompress(path.read_bytes())):
        if tag != 1:
            continue
        assert isinstance(plane, bytes)
        names = {}
        for t, entry in walk(plane):
            if t == 4:
                value = one(entry, 2, b"")  # type: ignore[arg-type]
                names[one(entry, 1)] = one(value, 2, b"")  # type: ignore[arg-type]
        for n, (t, line) in enumerate(walk(plane)):
            if t != 3:
                continue
            start = one(line, 3)  # type: ignore[arg-type]
            key = (one(plane, 2).decode(), f"{n} {one(line, 2, b'').decode()}")  # type: ignore[union-attr, arg-type]
            found[key] = [
                (
                    names.get(one(e, 1), b"").decode(),  # type: ignore[arg-type, union-attr]
                    start + round(one(e, 2) / 1000),  # type: ignore[arg-type, operator]
                    start + round((one(e, 2) + one(e, 3)) / 1000),  # type: ignore[arg-type, operator]
                )
                for t2, e in walk(line)  # type: ignore[arg-type]
                if t2 == 4
            ]
    return found


def trace_of(artifact: Artifact) -> Trace:
    assert isinstance(artifact.content, Trace)
    return artifact.content


def union(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, -(2**62)
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


# The public files


@needs_shared
@pytest.mark.parametrize(("name", "events"), [(GEMM, 54), (ATTENTION, 150)])
def test_gpu_events_equal_the_file(name: str, events: int) -> None:
    artifact = load(JAX / name)
    trace = trace_of(artifact)
    lines = {k: v for k, v in decoded(JAX / name).items() if k[0] == "/device:GPU:0"}
    spans = sorted((s, e) for v in lines.values() for _, s, e in v)
    assert artifact.counts["kernels"] == len(spans) == events
    assert list(zip(trace.ops.start.tolist(), trace.ops.end.tolist(), strict=True)) == spans
    inspected = of_artifact(artifact)
    (device,) = inspected.devices
    assert device.busy_ns == union(spans)
    assert device.idle_ns == spans[-1][1] - spans[0][0] - union(spans)
    assert inspected.coverage is not None
    assert inspected.coverage["ops_without_launch"] == inspected.coverage["launches_without_op"] == 0
    assert trace.ops.block is not None
    assert (trace.ops.block > 0).all()
    assert not any(".kd" in n for n in trace.names)


@needs_shared
def test_host_events_equal_the_file() -> None:
    for name, thread in ((GEMM, "python"), (ATTENTION, "python3")):
        trace = trace_of(load(JAX / name))
        host = [v for (plane, _), v in decoded(JAX / name).items() if plane == "/host:CPU"]
        expected = sorted((s, -e, n.removeprefix("$")) for v in host for n, s, e in v)
        mine = zip(trace.host.start.tolist(), trace.host.end.tolist(), trace.host.name.tolist(), strict=True)
        assert sorted((s, -e, trace.names[n]) for s, e, n in mine) == expected
        frames = sum(n.startswith("$") and s < e for v in host for n, s, e in v)
        assert int((trace.host.kind == HostKind.PYTHON).sum()) == frames
        assert thread in {t.name for t in trace.threads}
    assert len(next(v for (_, n), v in decoded(JAX / GEMM).items() if n.endswith(" python"))) == 3_568


@needs_shared
@pytest.mark.parametrize(("name", "calls", "thread"), [(GEMM, 42, "python"), (ATTENTION, 150, "python3")])
def test_calls_belong_to_the_thread_whose_operations_hold_them(name: str, calls: int, thread: str) -> None:
    artifact = load(JAX / name)
    trace = trace_of(artifact)
    names = [trace.threads[t].name for t in trace.host.thread[trace.host.kind == HostKind.API].tolist()]
    assert names.count(thread) == calls
    assert sum("each lies in the operation that it names" in w for w in artifact.warnings) == 1


@needs_shared
def test_tpu_lines() -> None:
    artifact = load(JAX / TPU)
    trace = trace_of(artifact)
    lines = decoded(JAX / TPU)
    work = ("XLA Ops", "Async XLA Ops")
    for device in range(4):
        mine = {n: v for (p, n), v in lines.items() if p == f"/device:TPU:{device}"}
        spans = [(s, e) for n, v in mine.items() if n.endswith(work) for _, s, e in v]
        ops = trace.ops.take(trace.ops.device == device)
        assert len(ops) == len(spans)
        assert of_artifact(artifact).devices[device].busy_ns == union(spans)
        modules = next(v for n, v in mine.items() if n.endswith("XLA Modules"))
        named = [n for n in trace.names if n.endswith(f" TPU{device}")]
        codes = [trace.names.index(n) for n in named]
        rows = np.isin(trace.host.name, codes)
        assert int(rows.sum()) == len(modules)
        assert (trace.host.kind[rows] == HostKind.RANGE).all()
    assert (
        sum(len(v) for (p, n), v in lines.items() if n.endswith(" XLA Ops") and "Async" not in n) == 1_504 + 3 * 1_503
    )
    assert len(trace_of(artifact).ops) == 1_504 + 3 * 1_503 + 600
    copies = trace.ops.kind == OpKind.COPY
    assert trace.ops.copy_kind is not None
    assert set(trace.ops.copy_kind[copies].tolist()) == {CopyKind.HTOD, CopyKind.DTOH}
    assert "who launched the work: there are no launch records" in artifact.cannot_establish


#: What ``diagnose`` answers on each file: kind, scope, total in ns (first to last row, inside the profile's window).
ANSWERS = {
    GEMM: (Kind.MEASURE, Scope.FRAMEWORK, 13_149_578),
    ATTENTION: (Kind.MEASURE, Scope.FRAMEWORK, 9_731_542_165),
    TPU: (Kind.CHANGE, Scope.TIMELINE, 98_153_057_682),
}


@needs_shared
@pytest.mark.parametrize("name", ANSWERS)
def test_answer(name: str) -> None:
    r = diagnose(case_from_files([JAX / name]), Options(cache=False))
    assert (r.decision.kind, r.decision.scope, r.ledger.total_ns) == ANSWERS[name]
    assert sum(line.ns for line in r.ledger.lines) == r.ledger.total_ns
    # Rows of the profiler's own end lie behind the window that the profile states.
    lines = [
        v for (p, n), v in decoded(JAX / name).items() if p.startswith(("/device", "/host:CPU")) and "TraceMe" not in n
    ]
    window = trace_of(load(JAX / name)).meta.window
    assert window is not None
    first, last = min(s for v in lines for _, s, _ in v), max(e for v in lines for *_, e in v)
    assert r.ledger.total_ns == min(last, window[1]) - first


@needs_shared
@pytest.mark.parametrize("name", ANSWERS)
def test_clock_and_privacy(name: str) -> None:
    artifact = load(JAX / name)
    trace = trace_of(artifact)
    assert [r.kind for r in READERS if r.sniff(Source(JAX / name))] == ["xplane"]
    assert trace.meta.utc_start_ns is not None
    assert 1_741_000_000 * 10**9 < trace.meta.utc_start_ns < 1_780_000_000 * 10**9
    assert trace.meta.window is not None
    assert trace.ops.start.min() > 0
    assert trace.ops.end.max() <= trace.meta.window[1]
    said = repr((trace.names, trace.threads, trace.processes, artifact.warnings, trace.meta))
    for private in ("tw003", "934987a2fc2f", "/home/", "/root/"):
        assert private not in said


# The format, one oddity each


def gpu_plane(*events: bytes, plane: PlaneMaker | None = None) -> bytes:
    plane = plane or PlaneMaker("/device:GPU:0")
    plane.line("Stream #7", list(events))
    return plane.made()


def save(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_picoseconds_are_rounded_from_the_line_and_do_not_drift(tmp_path: Path) -> None:
    plane = PlaneMaker("/device:GPU:0")
    events = [plane.event("k", 1_333_333 * i, 1_333_333) for i in range(3_000)]
    trace = trace_of(load(save(tmp_path / "p", gpu_plane(*events, plane=plane))))
    expected = [LINE_START + round(1_333_333 * i / 1000) for i in range(3_001)]
    assert trace.ops.start.tolist() == expected[:-1]
    assert trace.ops.end.tolist() == expected[1:]


def test_halves_go_to_even() -> None:
    ps = np.array([500, 1500, 2500, 499, 501, -500, -1500, 10**15 + 500], np.int64)
    assert rounded(ps).tolist() == [0, 2, 2, 0, 1, 0, -2, 10**12]


def test_lines_without_timestamp_begin_at_zero(tmp_path: Path) -> None:
    plane = PlaneMaker("/device:TPU:1")
    plane.line("XLA Ops", [plane.event("%fusion.3 = f32[8]{0} fusion(%p)", 5_000, 7_000)], timestamp_ns=0)
    trace = trace_of(load(save(tmp_path / "z", plane.made() + environment(UTC, UTC + 10_000))))
    assert trace.ops.start.tolist() == [5]
    assert trace.ops.end.tolist() == [12]
    assert trace.ops.device.tolist() == [1]
    assert trace.names[trace.ops.name[0]] == "fusion.3"
    assert trace.meta.utc_start_ns == UTC
    assert trace.meta.window == (0, 10_000)


def test_epoch_timestamps_are_utc_already(tmp_path: Path) -> None:
    plane = PlaneMaker("/device:GPU:0")
    plane.line("Stream #1", [plane.event("k", 0, 1000)], timestamp_ns=UTC)
    trace = trace_of(load(save(tmp_path / "e", plane.made())))
    assert trace.meta.utc_start_ns == 0


def test_without_an_environment_the_clock_is_unknown(tmp_path: Path) -> None:
    artifact = load(save(tmp_path / "u", gpu_plane()))
    assert artifact.utc_start_ns is None
    assert any("the capture is empty" in w for w in artifact.warnings)


def test_copies_and_memory_kinds(tmp_path: Path) -> None:
    plane = PlaneMaker("/device:GPU:0")
    details = "kind_src:pinned kind_dst:device size:4096 dest:0 async:1"
    events = [plane.event("MemcpyH2D", 0, 1000, memcpy_details=details), plane.event("Memset 0", 9000, 1000)]
    ops = trace_of(load(save(tmp_path / "c", gpu_plane(*events, plane=plane)))).ops
    assert ops.kind.tolist() == [OpKind.COPY, OpKind.MEMSET]
    assert ops.copy_kind is not None
    assert ops.src_kind is not None
    assert ops.bytes is not None
    assert ops.copy_kind.tolist() == [CopyKind.HTOD, NONE]
    assert ops.src_kind.tolist() == [MemKind.PINNED, NONE]
    assert ops.bytes.tolist() == [4096, NONE]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("%all-reduce.5 = f32[8]{0} all-reduce(%p)", OpKind.COLLECTIVE),
        ("%all-gather-start = (f32[8]{0}) all-gather-start(%p)", OpKind.COLLECTIVE),
        ("%copy-done.1 = f32[8]{0} copy-done(%copy-start.1)", OpKind.COPY),
        ("%copy_fusion.1 = f32[8]{0} fusion(%p)", OpKind.KERNEL),
        ("convolution.12", OpKind.KERNEL),
    ],
)
def test_tpu_operations(name: str, kind: OpKind, tmp_path: Path) -> None:
    plane = PlaneMaker("/device:TPU:0")
    plane.line("XLA Ops", [plane.event(name, 0, 1000)])
    assert trace_of(load(save(tmp_path / "t", plane.made()))).ops.kind.tolist() == [kind]


def test_aggregated_events_are_left_out_and_counted(tmp_path: Path) -> None:
    plane = PlaneMaker("/device:GPU:0")
    aggregated = message(4, number(1, 1) + number(5, 12) + number(3, 1000))
    artifact = load(save(tmp_path / "a", gpu_plane(plane.event("k", 1000, 1000), aggregated, plane=plane)))
    assert artifact.counts["kernels"] == 1
    assert "1 events that stand for many have no time of their own: left out" in artifact.warnings


def test_host_kinds(tmp_path: Path) -> None:
    host = PlaneMaker("/host:CPU")
    host.line(
        "python/1",
        [
            host.event("$/home/someone/train.py:12 step", 0, 90_000),
            host.event("train", 1_000, 80_000, step_num=7),
            host.event("my range", 2_000, 70_000),
            host.event("PjitFunction(f)", 3_000, 60_000),
            host.event("cuLaunchKernel", 4_000, 5_000, correlation_id=3),
            host.event("MemoryAllocation", 20_000, 0),
        ],
    )
    trace = trace_of(load(save(tmp_path / "h", host.made())))
    found = dict(zip((trace.names[n] for n in trace.host.name), trace.host.kind.tolist(), strict=True))
    assert found == {
        "~/train.py:12 step": HostKind.PYTHON,
        "train 7": HostKind.ANNOTATION,
        "my range": HostKind.ANNOTATION,
        "PjitFunction(f)": HostKind.OP,
        "cuLaunchKernel": HostKind.API,
        "MemoryAllocation": HostKind.MARK,
    }


def test_calls_that_lie_elsewhere_stay_on_their_line(tmp_path: Path) -> None:
    host = PlaneMaker("/host:CPU")
    host.line("Host Threads/9", [host.event("hipLaunchKernel", 0, 5_000, correlation_id=1, hlo_op="dot.1")])
    host.line("python/1", [host.event("dot.1", 90_000, 5_000), host.event("other", 0, 9_000)])
    artifact = load(save(tmp_path / "h", host.made()))
    assert len(set(trace_of(artifact).host.thread.tolist())) == 2
    assert not any("operation that it names" in w for w in artifact.warnings)


def test_errors_of_the_tool_are_told(tmp_path: Path) -> None:
    path = save(tmp_path / "w", gpu_plane() + message(2, "failed below /home/someone/x\nagain"))
    assert "failed below ~/x again" in load(path).warnings


# Files that are not what they should be


@pytest.mark.parametrize(
    "broken",
    [
        b"\x0a\xff",
        b"\x80" * 11,
        b"\x0a\x05abc",
        b"\x0b",
        b"\x0d\x01",
        b"\x09\x01\x02",
        b"\x02\x00",
        varint(3 << 3 | 6),
    ],
)
def test_the_wire_is_checked(broken: bytes) -> None:
    with pytest.raises(WireError, match=r"^byte \d+: "):
        list(fields(broken, 0, len(broken)))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_cut_files_are_one_line(share: float, tmp_path: Path) -> None:
    made = SITUATIONS["worked_example"](1).run
    assert made is not None
    whole = write_xplane(made, tmp_path / "w").read_bytes()
    with pytest.raises(InputError, match="is damaged or cut short"):
        load(save(tmp_path / "cut", whole[: int(len(whole) * share)]))


@needs_shared
@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_read_or_say_so(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    raw = bytearray(gzip.decompress((JAX / GEMM).read_bytes()))
    for _ in range(dice.choice((1, 5, 40))):
        raw[dice.randrange(200, len(raw))] = dice.randrange(256)
    said = ""
    try:
        load(save(tmp_path / "damaged", bytes(raw)))
    except InputError as error:
        said = str(error)
    assert "\n" not in said


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    for n, content in enumerate((b"\x0a", b"\x0a\x05hello", b"\nplain text\n", b"", b"\x0a\x04\x12\x02hi", b"{}")):
        assert not Xplane().sniff(Source(save(tmp_path / str(n), content)))


def test_the_module_shows_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = SITUATIONS["worked_example"](1).run
    assert made is not None
    assert show(Xplane(), [str(write_xplane(made, tmp_path / "m"))]) == 0
    out = capsys.readouterr().out
    assert "kernels" in out
    assert "box-of-somebody" not in out
