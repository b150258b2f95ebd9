"""How each server is started, put under a profiler and asked for a capture: one class a server.

The sources of the options: docs.vllm.ai "contributing/profiling" and vllm/config/profiler.py; sgl-project/sglang
docs/developer_guide/benchmark_and_profiling.md; NVIDIA/TensorRT-LLM docs "developer-guide/perf-analysis".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from scopedown.decide.tools import Version, parse_version

Env = dict[str, str]


class Server(StrEnum):
    PLAIN = "plain"
    """The user's own program."""
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class Vendor(StrEnum):
    """Whose tools measure the device."""

    NVIDIA = "nvidia"
    AMD = "amd"
    TPU = "tpu"


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the user's set-up; it decides which names the commands carry. All of it may come from files:
    it is quoted where it is printed."""

    server: Server = Server.PLAIN
    vendor: Vendor = Vendor.NVIDIA
    version: str | None = None
    """Of the server; unknown means current."""
    model: str | None = None
    nsys_version: str | None = None
    ncu_version: str | None = None
    kernel_name: str | None = None
    launch_skip: int | None = None
    """Launches of the kernel to pass over before the representative one."""
    range_name: str | None = None
    """An NVTX range round the request or step; ``NAME@DOMAIN`` where it has a domain."""
    port: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    rate: float | None = None
    """Offered load, requests/s."""
    training: bool = False
    """Whether the symptom is a training step: the program then calls an optimizer, which counts its steps."""
    ranks: int = 1
    program: tuple[str, ...] = ("python", "app.py")
    python: bool = True
    """Whether the program runs in Python: a framework's profiler is of no use otherwise."""
    case: str | None = None
    """The case folder, where there is one: new evidence goes into it."""
    files: tuple[str, ...] = ()
    """Without a case: the files that were given."""
    symptom: tuple[str, ...] = ()
    """Without a case: the flags that stated the symptom."""

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port or _PORTS.get(self.server, 8000)}"

    @property
    def server_version(self) -> Version | None:
        return parse_version(self.version)

    @property
    def model_name(self) -> str:
        return self.model or "MODEL"


_PORTS = {Server.SGLANG: 30000}


@dataclass(frozen=True, slots=True)
class Capture:
    """How a server takes part in a capture: environment and arguments of its start, and what the client sends."""

    start: tuple[str, ...]
    env: Env = field(default_factory=dict)
    begin: tuple[str, ...] | None = None
    """Before the request; None where the capture begins by itself."""
    stop: tuple[str, ...] | None = None
    ranged: bool = True
    """Whether the program marks the capture with cudaProfilerStart/Stop."""
    traces: str = "prof"
    """Where the framework's traces go: a folder, or a file ending in .json."""
    note: str = ""


def vllm_has_config(context: Context) -> bool:
    """``--profiler-config`` came with vLLM 0.13; VLLM_TORCH_PROFILER_DIR is ignored without a word from 0.16 on."""
    return context.server_version is None or context.server_version >= (0, 13)


def version_need(context: Context) -> list[str]:
    """Which version of the server the options are for, where they depend on it."""
    if context.server is not Server.VLLM:
        return []
    if context.server_version is None:
        return ["vLLM 0.13 or newer (name yours with --server vllm==VERSION)"]
    return [f"vLLM {context.version} (the options are those of this version)"]


def system_capture(context: Context) -> Capture:
    """The server under a system profiler."""
    model = context.model_name
    if context.server is Server.VLLM:
        if not vllm_has_config(context):
            note = "send the request after 60 s, when the server is up: this version cannot mark the capture itself"
            return Capture(("vllm", "serve", model), _VLLM_ENV, ranged=False, note=note)
        config = ("--profiler-config.profiler", "cuda", "--profiler-config.max_iterations", "200")
        return Capture(("vllm", "serve", model, *config), _VLLM_ENV, _post(context, "start"), _post(context, "stop"))
    if context.server is Server.SGLANG:
        body = {"start_step": 3, "num_steps": 10, "activities": ["CUDA_PROFILER"]}
        return Capture(_sglang(model), {}, _post(context, "start", body))
    if context.server is Server.TRTLLM:
        env = {"TLLM_PROFILE_START_STOP": "100-150"}
        note = "iterations 100 to 150 are captured: send enough requests to reach them, the symptom's among them"
        return Capture(("trtllm-serve", model), env, note=note)
    return Capture(context.program, ranged=False)


def framework_capture(context: Context, *, stacks: bool) -> Capture:
    """The server under its framework's profiler, device rows included."""
    model = context.model_name
    if context.server is Server.VLLM:
        start, stop = _post(context, "start"), _post(context, "stop")
        if not vllm_has_config(context):
            env = {"VLLM_TORCH_PROFILER_DIR": "./prof", "VLLM_TORCH_PROFILER_WITH_STACK": str(int(stacks))}
            return Capture(("vllm", "serve", model), env, start, stop)
        config = {
            "profiler": "torch",
            "torch_profiler_dir": "./prof",
            "torch_profiler_with_stack": stacks,
            "ignore_frontend": True,
            "max_iterations": 20,
        }
        return Capture(("vllm", "serve", model, "--profiler-config", compact(config)), {}, start, stop)
    if context.server is Server.SGLANG:
        body = {"output_dir": "prof", "num_steps": 10, "activities": ["CPU", "GPU"]}
        env = {"SGLANG_PROFILE_WITH_STACK": str(stacks)}
        return Capture(_sglang(model), env, _post(context, "start", body))
    if context.server is Server.TRTLLM:
        env = {"TLLM_PROFILE_START_STOP": "100-150", "TLLM_TORCH_PROFILE_TRACE": "trace.json"}
        note = "iterations 100 to 150 are captured: send enough requests to reach them, the symptom's among them"
        return Capture(("trtllm-serve", model), env, traces="trace.json", note=note)
    return Capture(("python", "-c", torch_profile(context, stacks=stacks)), traces="trace.json")


def offline_run(context: Context) -> tuple[str, ...]:
    """One run of one shape without a server, for a profiler that serialises and replays kernels."""
    tokens = (str(context.input_tokens or 2048), str(context.output_tokens or 8))
    if context.server is Server.VLLM:
        sizes = ("--input-len", tokens[0], "--output-len", tokens[1], "--batch-size", "1")
        return ("vllm", "bench", "latency", "--model", context.model_name, *sizes, "--num-iters", "1")
    if context.server is Server.SGLANG:
        sizes = ("--batch-size", "1", "--input-len", tokens[0], "--output-len", tokens[1])
        return ("python", "-m", "sglang.bench_one_batch", "--model-path", context.model_name, *sizes)
    if context.server is Server.TRTLLM:
        return ("python", "run_one_request.py")
    return context.program


def send_request(context: Context) -> tuple[str, ...]:
    """A client's request of the symptom's shape, to any server with the OpenAI routes."""
    body = {"model": context.model_name, "prompt": "PROMPT", "max_tokens": context.output_tokens or 16}
    return ("curl", "-sS", f"{context.url}/v1/completions", *_JSON, "-d", compact(body))


def scrape(context: Context, out: str) -> tuple[str, ...]:
    """The server's metrics, once."""
    path = "/prometheus/metrics" if context.server is Server.TRTLLM else "/metrics"
    return ("curl", "-sS", f"{context.url}{path}", "-o", out)


def metrics_start(context: Context) -> tuple[str, ...] | None:
    """The start that turns metrics on, where they are off by default."""
    if context.server is Server.SGLANG:
        return (*_sglang(context.model_name), "--enable-metrics", "--enable-request-time-stats-logging")
    if context.server is Server.TRTLLM:
        return ("trtllm-serve", context.model_name, "--extra_llm_api_options", "metrics.yaml")
    return None


def torch_profile(context: Context, *, stacks: bool) -> str:
    """Python text that runs the user's script under torch.profiler without a change to it: the whole of a program, or
    five steps of a training loop, counted by its optimizer."""
    script = _script(context)
    options = ", with_stack=True" if stacks else ""
    head = "import runpy, sys, torch; from torch.profiler import ProfilerActivity as A, profile, schedule; "
    argv = f"sys.argv = {[script, *context.program[2:]]!r}; "
    run = f"runpy.run_path({script!r}, run_name='__main__')"
    save = "p.export_chrome_trace('trace.json')"
    if context.training:
        made = (
            "p = profile(activities=[A.CPU, A.CUDA], schedule=schedule(wait=1, warmup=2, active=5, repeat=1), "
            f"on_trace_ready=lambda p: {save}{options}); p.start(); "
            "torch.optim.optimizer.register_optimizer_step_post_hook(lambda *a: p.step()); "
        )
        return f"{head}{argv}{made}{run}"
    return f"{head}{argv}p = profile(activities=[A.CPU, A.CUDA]{options}); p.start(); {run}; p.stop(); {save}"


def cuda_range(context: Context) -> str:
    """Python text that runs a training script and marks its steps 10 to 15 for a capture range."""
    script = _script(context)
    return (
        "import itertools, runpy, sys, torch; n = itertools.count(1); r = torch.cuda.profiler; "
        "torch.optim.optimizer.register_optimizer_step_post_hook("
        "lambda *a: {10: r.start, 15: r.stop}.get(next(n), int)()); "
        f"sys.argv = {[script, *context.program[2:]]!r}; runpy.run_path({script!r}, run_name='__main__')"
    )


def _script(context: Context) -> str:
    return context.program[1] if len(context.program) > 1 else "app.py"


def _post(context: Context, what: str, body: dict[str, object] | None = None) -> tuple[str, ...]:
    """start_profile or stop_profile; an earlier capture's stop may take minutes to write."""
    data = () if body is None else (*_JSON, "-d", compact(body))
    return ("curl", "-sS", "-X", "POST", f"{context.url}/{what}_profile", *data)


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _sglang(model: str) -> tuple[str, ...]:
    return ("python", "-m", "sglang.launch_server", "--model-path", model)


_JSON = ("-H", "Content-Type: application/json")
#: Workers that are forked leave a profile without device rows (vllm-project/vllm pull request 23802).
_VLLM_ENV = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
