"""A small model server in a program: a front-end thread that receives, an engine thread that steps, a device.

The worked example's model: 7 billion parameters, 32 layers, prompts of 2,048 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from scopedown.simulate.program import Program, Script
from scopedown.simulate.run import run
from scopedown.simulate.situation import Expect, MonitorPlan, Request, Situation, Symptom, observed
from scopedown.simulate.write_nsys import NsysOptions
from scopedown.terms import Metric, Statistic
from scopedown.trace.model import CopyKind

LAYERS = 32
#: Kernel and its share of a layer's device time.
LAYER: tuple[tuple[str, float], ...] = (
    ("void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, const c10::BFloat16*, float, int)", 0.01),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", 0.17),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(const long*, c10::BFloat16*, int)", 0.015),
    ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, true>(Flash_fwd_params)", 0.105),
    ("nvjet_tst_128x128_64x6_1x2_h_bz_TNT", 0.08),
    ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 0.385),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, silu>(c10::BFloat16*, const c10::BFloat16*, int)", 0.03),
    ("nvjet_tst_192x128_64x5_2x1_v_bz_TNT", 0.205),
)
SMALL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>(int)"
ATTENTION = LAYER[3][0]


class Server:
    """Writes the program of one traced request and the log of the requests around it."""

    def __init__(self, seed: int, *, devices: int = 1, input_tokens: int = 2048) -> None:
        self.program = Program(seed, devices=("NVIDIA H100 80GB HBM3",) * devices)
        self.rng = self.program.rng
        self.seed, self.input_tokens = seed, input_tokens
        self.api = self.program.thread("APIServer")
        self.engine = self.program.thread("EngineCore")
        self.request = self.new_id()
        self.tokens: list[str] = []
        self._receive()

    def new_id(self) -> str:
        return f"cmpl-{self.rng.getrandbits(32):08x}"

    def _receive(self) -> None:
        with self.api.range(f"request {self.request}"):
            self.api.host(2_400_000, tag="tokenise", spread=0.03)
            self.api.signal("request")
        self.engine.wait_for("request")
        self.engine.host(620_000, tag="admission", spread=0.1)
        self.engine.mark("scheduled")

    @contextmanager
    def step(self, name: str, owner: str | None = None) -> Iterator[Script]:
        """A step of the engine; device ops inside serve the request (or ``owner``)."""
        self.engine.owner = self.request if owner is None else owner
        with self.engine.range(name):
            yield self.engine
        self.engine.owner = ""

    def layer(
        self, ns: int, *, host_ns: int = 2_500, host_tag: str = "", device: int = 0, script: Script | None = None
    ) -> None:
        """The kernels of a layer, ``ns`` of device time; ``host_ns`` of host code before each launch."""
        script = script or self.engine
        for name, share in LAYER:
            script.host(host_ns, tag=host_tag, spread=0.1)
            script.kernel(name, int(ns * share), tag=name, spread=0.02, device=device)

    def token(self, device: int = 0) -> None:
        """The step's token comes back to the host: a small copy and a synchronisation."""
        self.engine.copy(CopyKind.DTOH, 8, 1_700, blocking=False, device=device)
        self.engine.sync(device=device)
        name = f"token {len(self.tokens)}"
        self.engine.mark(name)
        self.tokens.append(name)

    def situation(
        self,
        name: str,
        metric: Metric,
        expect: Expect,
        *,
        target: float | None = 0.5,
        statistic: Statistic = Statistic.REQUEST,
        load: str = "1 request at a time",
        others: int = 8,
        nsys: NsysOptions | None = None,
        monitor_period_ns: int | None = None,
    ) -> Situation:
        """Runs the program and writes the log around it. ``target``: a share of the observed value."""
        result = run(self.program)
        nsys = nsys or NsysOptions()
        zero = nsys.session_utc_ns
        began = zero + self.program.start_ns
        received = next(r.end for r in result.recorded.ranges if r.name == f"request {self.request}")
        sent = began - self.rng.randrange(90_000, 140_000)
        marks = [zero + result.mark(m) for m in self.tokens]
        back = self.rng.randrange(250_000, 400_000)
        tokens = [t + back + self.rng.randrange(0, 20_000) for t in marks]
        subject = Request(
            self.request,
            arrival=sent - self.rng.randrange(30_000, 60_000),
            sent=sent,
            queued=zero + received,
            scheduled=zero + result.mark("scheduled"),
            tokens=tokens,
            end=tokens[-1] + 300_000,
            input_tokens=self.input_tokens,
        )
        before = [self._another(subject, others - i, warmup=i == 0) for i in range(others)]
        symptom_request = subject.id if statistic == Statistic.REQUEST else None
        draft = Situation(
            name,
            self.seed,
            Symptom(metric, statistic, None, load, symptom_request),
            [*before, subject],
            subject,
            expect,
            result,
            self.program.threads.index(self.engine),
            tuple(self.tokens),
            nsys=nsys,
            contract={
                "model": "7B dense, bf16",
                "device": self.program.devices[0],
                "input_tokens": self.input_tokens,
                "sampling": "greedy",
                "queueing": "first come, first served",
            },
        )
        return _with_target(draft, target, monitor_period_ns)

    def _another(self, like: Request, ago: int, *, warmup: bool) -> Request:
        """An untraced request of the same kind, some time earlier."""
        shift = -ago * max(600_000_000, 2 * (like.end - like.arrival))
        slow = self.program.around(1000, 0.02) / 1000 * (1.6 if warmup else 1.0)
        arrival = like.arrival + shift
        if like.queued is None or like.scheduled is None:
            raise ValueError("the traced request has the server's stamps")
        first = arrival + int(like.ttft * slow)
        gaps = [int((b - a) * slow) for a, b in zip(like.tokens, like.tokens[1:], strict=False)]
        self.rng.shuffle(gaps)
        tokens = [first]
        for gap in gaps:
            tokens.append(tokens[-1] + gap)
        queued = like.queued + shift + self.rng.randrange(-200_000, 200_000)
        scheduled = queued + like.scheduled - like.queued
        sent = like.sent + shift
        return Request(self.new_id(), arrival, sent, queued, scheduled, tokens, tokens[-1] + 300_000, warmup=warmup)


def _with_target(s: Situation, share: float | None, period: int | None) -> Situation:
    # Rounded to 10 us, as people write targets.
    target = None if share is None else int(observed(s) * share) // 10_000 * 10_000
    monitor = None
    if period is not None and s.run is not None:
        end = s.subject.end + 5 * period
        monitor = MonitorPlan(period, service_intervals(s.requests[:-1]), s.requests[0].arrival - 5 * period, end)
    return replace(s, symptom=replace(s.symptom, target_ns=target), monitor=monitor)


def service_intervals(requests: Sequence[Request]) -> list[tuple[int, int]]:
    """Scheduled to last token of each request."""
    return [(r.scheduled, r.tokens[-1]) for r in requests if r.scheduled is not None]
