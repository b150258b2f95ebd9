"""Every command that can be printed: its options exist in that version of the tool, and names stay data."""

from __future__ import annotations

import ast
import itertools
import json
import re
import shlex
import shutil
import subprocess

import pytest

from scopedown.decide.command import FIRST, Context, Question, Server, Vendor, next_command
from scopedown.decide.tools import is_collective, kernel_filter, knows, parse_version
from scopedown.report import Command
from scopedown.terms import Scope

# Option names as the tools' own help and pages list them, written down here once more and by hand.
NSYS_2022 = {
    "--trace", "--sample", "--cpuctxsw", "--cuda-graph-trace", "--capture-range", "--capture-range-end",
    "--nvtx-capture", "--env-var", "--delay", "--duration", "--kill", "--trace-fork-before-exec",
    "--force-overwrite", "--output",
}  # fmt: skip
NSYS_2026 = NSYS_2022 | {"--discard-environment", "--python-sampling", "--cuda-trace-scope", "--gpu-metrics-devices"}
NSYS_EXPORT = {"--type", "--output", "--force-overwrite"}
NSYS_VALUES = {
    "--trace": {"cuda", "nvtx", "osrt"},
    "--sample": {"none", "process-tree"},
    "--cpuctxsw": {"none", "process-tree"},
    "--cuda-graph-trace": {"graph", "node"},
    "--capture-range": {"cudaProfilerApi", "nvtx"},
    "--capture-range-end": {"stop"},
    "--kill": {"none"},
}
NCU = {
    "-k", "-s", "-c", "-f", "-o", "--kernel-name-base", "--clock-control", "--section", "--target-processes",
    "--import-source", "--import", "--page", "--csv", "--print-units", "--units", "--log-file",
}  # fmt: skip
NCU_FLAGS = {"-f", "--csv"}
NCU_SECTIONS = {
    "SpeedOfLight", "LaunchStats", "Occupancy", "MemoryWorkloadAnalysis", "WarpStateStats", "SourceCounters",
}  # fmt: skip
CURL = {"-sS", "-X", "-H", "-d", "-o"}
NVIDIA_SMI = {"--query-gpu", "--format", "--loop-ms", "--filename"}
AIPERF = {"--model", "--url", "--endpoint-type", "--streaming", "--request-rate", "--request-count"}
VLLM_SERVE = {"--profiler-config", "--profiler-config.profiler", "--profiler-config.max_iterations"}
VLLM_LATENCY = {"--model", "--input-len", "--output-len", "--batch-size", "--num-iters"}
VLLM_PROFILER = {"profiler", "torch_profiler_dir", "torch_profiler_with_stack", "ignore_frontend", "max_iterations"}
SGLANG = {"--model-path", "--enable-metrics", "--enable-request-time-stats-logging"}
SGLANG_BATCH = {"--model-path", "--batch-size", "--input-len", "--output-len"}
TRTLLM = {"--extra_llm_api_options"}
ENV = {
    "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_TORCH_PROFILER_DIR", "VLLM_TORCH_PROFILER_WITH_STACK",
    "SGLANG_PROFILE_WITH_STACK", "TLLM_PROFILE_START_STOP", "TLLM_TORCH_PROFILE_TRACE", "TORCH_LOGS", "TORCH_LOGS_OUT",
}  # fmt: skip

HOSTILE = (
    "void cutlass::Kernel<float, (int)128, cutlass::Tile<64, 64>>(T1::Params) [clone .constprop.0]",
    "a'; rm -rf ~; echo '$(id)`id`",
    "--import=/etc/passwd",
    "x\ny\x1b[31m",
    "k" * 10_000,
    "|| ok ^$.*+?()[]{}\\",
)
KERNELS = (None, "fmha_cutlassF_bf16", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", *HOSTILE)
CASES = (None, "case", "a case's", "-rf")
VERSIONS = {
    Server.PLAIN: (None,),
    Server.VLLM: (None, "0.12.0", "0.13", "0.16.1+cu129"),
    Server.SGLANG: (None, "0.5.4"),
    Server.TRTLLM: (None, "1.2.0"),
}


def options(words: list[str]) -> list[tuple[str, str | None]]:
    """(name, value after "=") of the words that are options."""
    return [
        (w.partition("=")[0], w.partition("=")[2] if "=" in w else None) for w in words if re.match(r"--?[A-Za-z]", w)
    ]


def check(argv: list[str], nsys: str | None) -> None:
    """Parse one command line with the tables above; recurses into what a profiler starts."""
    if argv[0] == "env":
        names = list(itertools.takewhile(lambda w: "=" in w, argv[1:]))
        assert {n.partition("=")[0] for n in names} <= ENV
        argv = argv[1 + len(names) :]
    tool, rest = argv[0], argv[1:]
    if tool == "nsys" and rest[0] == "export":
        assert {n for n, _ in options(rest[1:-1])} == NSYS_EXPORT
        assert rest[-1].endswith(".nsys-rep")
    elif tool == "nsys":
        assert rest[0] == "profile"
        own = list(itertools.takewhile(lambda w: w.startswith("-"), rest[1:]))
        known = NSYS_2022 if nsys and parse_version(nsys) < (2025, 5) else NSYS_2026  # type: ignore[operator]
        for name, value in options(own):
            assert name in known, name
            assert value, f"{name} needs its value after ="
            assert set(value.split(",")) <= NSYS_VALUES.get(name, {value, *value.split(",")}), (name, value)
        assert not any(n == "--capture-range" for n, _ in options(own)) or ("--capture-range-end", "stop") in options(
            own
        )
        assert not any(n == "--duration" for n, _ in options(own)) or ("--kill", "none") in options(own)
        check(rest[1 + len(own) :], nsys)
    elif tool == "ncu":
        i = 0
        while i < len(rest) and rest[i].startswith("-"):
            assert rest[i] in NCU, rest[i]
            if rest[i] == "--section":
                assert rest[i + 1] in NCU_SECTIONS
            i += 1 if rest[i] in NCU_FLAGS else 2
        if "--import" not in rest:
            assert rest[rest.index("-c") + 1] == "1", "one launch only"
            check(rest[i:], nsys)
    elif tool == "vllm":
        table, values = (VLLM_LATENCY, 6) if rest[0] == "bench" else (VLLM_SERVE, 0)
        assert {n for n, _ in options(rest)} <= table, values
        if "--profiler-config" in rest:
            assert set(json.loads(rest[rest.index("--profiler-config") + 1])) == VLLM_PROFILER
    elif tool == "python" and rest[0] == "-c":
        ast.parse(rest[1])
    elif tool == "python" and rest[0] == "-m":
        known = {"sglang.launch_server": SGLANG, "sglang.bench_one_batch": SGLANG_BATCH}[rest[1]]
        assert {n for n, _ in options(rest[2:])} <= known
    elif tool == "curl":
        assert {n for n, _ in options(rest)} <= CURL
        if "-d" in rest:
            json.loads(rest[rest.index("-d") + 1])
    elif tool == "torchrun":
        assert re.fullmatch(r"--nproc-per-node=\d+", rest[0])
        assert rest[1] == "--no-python"
        check(rest[2:], nsys)
    elif tool == "scopedown":
        assert rest[0] == "diagnose"
    else:
        table = {"nvidia-smi": NVIDIA_SMI, "aiperf": AIPERF, "trtllm-serve": TRTLLM, "cp": {"-r"},
                 "nvdisasm": {"-c", "-gi"}, "python": set()}[tool]  # fmt: skip
        assert {n for n, _ in options(rest)} <= table


def contexts() -> list[Context]:
    """All servers and versions, with kernels, cases and nsys versions dealt out over them."""
    out = []
    deal = itertools.cycle(itertools.product(KERNELS, CASES, (None, "2022.4.2", "2023.4.4", "2025.1.1", "2026.2.1")))
    for server, versions in VERSIONS.items():
        for version, training, named, _ in itertools.product(versions, (False, True), (None, "step 'x'@d"), range(6)):
            kernel, case, nsys = next(deal)
            out.append(
                Context(
                    server=server,
                    version=version,
                    training=training,
                    range_name=named,
                    kernel_name=kernel,
                    case=case,
                    nsys_version=nsys,
                    launch_skip=None if kernel is None else 7,
                    files=("-log.jsonl", "b c.sqlite"),
                    symptom=("--metric", "ttft"),
                    model=None if case else "org/name",
                    ranks=2,
                )
            )
    return out


@pytest.mark.parametrize("question", list(Question))
def test_every_option_exists_and_every_line_is_quoted(question: Question) -> None:
    for context in contexts():
        command = next_command(Scope.TIMELINE, question, context)
        assert command.steps
        assert all(command.needs)
        assert command.overhead
        for step in command.steps:
            assert step.where in ("server", "client", "after")
            assert step.why
            check(step.argv, context.nsys_version)
            words = shlex.split(step.shell)
            assert words == (step.argv[1:] if step.argv[0] == "env" else step.argv)


@pytest.mark.parametrize("kernel", HOSTILE)
def test_a_shell_hands_hostile_names_over_unchanged(kernel: str) -> None:
    step = next_command(Scope.KERNEL, None, Context(kernel_name=kernel, launch_skip=3)).steps[0]
    script = f"ncu() {{ printf '%s\\0' ncu \"$@\"; }}; {step.shell}"
    out = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.split("\0")[:-1] == step.argv


@pytest.mark.parametrize("kernel", HOSTILE)
def test_the_filter_finds_the_kernel_and_not_another(kernel: str) -> None:
    words = kernel_filter(kernel)
    pattern = words[words.index("-k") + 1].removeprefix("regex:")
    assert re.search(pattern, kernel, re.DOTALL)
    assert not re.search(pattern, "z" + kernel, re.DOTALL)
    assert kernel_filter("gemm_x") == ["-k", "regex:^gemm_x$"]


@pytest.mark.parametrize("name", ["ncclDevKernel_AllReduce", "cross_device_reduce_1stage", "void rcclKernel<1>"])
def test_a_collective_is_never_replayed(name: str) -> None:
    assert is_collective(name)
    for question in (Question.KERNEL, Question.LINES):
        for server in Server:
            said = printed(next_command(Scope.KERNEL, question, Context(server=server, kernel_name=name)))
            assert not re.search(r"\bncu\b", said)
            assert "nsys" in said
    assert not is_collective("fmha_cutlassF_bf16_aligned")


@pytest.mark.parametrize("question", [q for q in Question if q not in (Question.KERNEL, Question.LINES)])
@pytest.mark.parametrize("server", list(Server))
def test_only_kernel_questions_name_ncu(question: Question, server: Server) -> None:
    command = next_command(Scope.APPLICATION, question, Context(server=server))
    assert not re.search(r"\bncu\b", json.dumps([s.shell for s in command.steps]) + str(command.alternative))


def test_kernel_questions_never_start_a_server() -> None:
    for context in contexts():
        if context.kernel_name is None or not is_collective(context.kernel_name):
            said = printed(next_command(Scope.KERNEL, None, context))
            assert "serve" not in re.sub(r"regex:\S+", "", said).replace("server", "")
            assert "never on a live server" in next_command(Scope.KERNEL, None, context).steps[0].why


def test_client_and_stamps_need_no_profiler() -> None:
    for question in (Question.CLIENT, Question.STAMPS, Question.MONITOR):
        for server in Server:
            assert not re.search(r"\b(nsys|ncu|replay)\b", printed(next_command(Scope.APPLICATION, question,
                                                                              Context(server=server))))  # fmt: skip


def test_vllm_before_its_profiler_configuration() -> None:
    old = printed(next_command(Scope.FRAMEWORK, None, Context(server=Server.VLLM, version="0.12.0")))
    assert "VLLM_TORCH_PROFILER_DIR" in old
    assert "--profiler-config" not in old
    for version in (None, "0.13", "0.16.0"):
        new = printed(next_command(Scope.FRAMEWORK, None, Context(server=Server.VLLM, version=version)))
        assert "VLLM_TORCH_PROFILER_DIR" not in new
        assert "--profiler-config" in new


def test_stacks_only_when_they_are_the_question() -> None:
    for server in Server:
        first = printed(next_command(Scope.FRAMEWORK, Question.FRAMEWORK, Context(server=server)))
        then = printed(next_command(Scope.FRAMEWORK, Question.PYTHON, Context(server=server)))
        assert "with_stack=True" not in first
        assert '"torch_profiler_with_stack":true' not in first
        assert first != then or server is Server.TRTLLM


def test_placeholders_are_said() -> None:
    command = next_command(Scope.TIMELINE, None, Context(server=Server.VLLM))
    assert any("MODEL" in n for n in command.needs)
    assert any("PROMPT" in n for n in command.needs)
    assert any("KERNEL" in n for n in next_command(Scope.KERNEL).needs)
    named = next_command(Scope.TIMELINE, None, Context(server=Server.VLLM, model="a/b"))
    assert not any("MODEL" in n for n in named.needs)


def test_new_evidence_goes_into_the_case_and_is_asked_about() -> None:
    command = next_command(Scope.TIMELINE, None, Context(case="-x y/"))
    assert command.steps[-1].argv == ["scopedown", "diagnose", "./-x y/"]
    assert "--output=./-x y/evidence/tl.sqlite" in command.steps[-2].argv
    bare = Context(files=("-log.jsonl",), symptom=("--metric", "ttft"))
    assert next_command(Scope.TIMELINE, None, bare).steps[-1].argv == [
        "scopedown", "diagnose", "./-log.jsonl", "tl.sqlite", "--metric", "ttft",
    ]  # fmt: skip


def test_every_scope_has_a_first_question() -> None:
    assert set(FIRST) == set(Scope)
    for scope in Scope:
        assert next_command(scope).steps


def test_versions() -> None:
    assert parse_version("2025.5.1.121-255136380782v0") == (2025, 5, 1, 121)
    assert parse_version("v0.13.0rc1") == (0, 13, 0)
    assert parse_version("dev") is None
    assert parse_version(None) is None
    assert knows({"--x": (2025, 5)}, "--x=1", None)
    assert not knows({"--x": (2025, 5)}, "--x=1", (2025, 1, 1))


def test_the_training_snippets_run_the_script_once() -> None:
    """Without PyTorch here, its parts are stand-ins of a few lines: what is checked is that the text runs."""
    for question in (Question.FRAMEWORK, Question.TIMELINE):
        context = Context(training=True, program=("python", "it's.py", "--lr", "1"))
        argv = next_command(Scope.FRAMEWORK, question, context).steps[0].argv
        text = argv[argv.index("-c") + 1]
        tree = ast.parse(text)
        strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        assert {"it's.py", "--lr", "1", "__main__"} <= strings


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed")
def test_the_installed_nsys_knows_its_options() -> None:
    version = subprocess.run(["nsys", "--version"], capture_output=True, text=True, check=True).stdout
    text = subprocess.run(["nsys", "profile", "--help"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d{4}(\.\d+)+", version)
    assert found
    for question in (Question.TIMELINE, Question.GRAPH_NODES, Question.OS):
        argv = next_command(Scope.TIMELINE, question, Context(nsys_version=found[0])).steps[0].argv
        for name, _ in options(argv[: argv.index("python")]):
            assert name in text


def printed(command: Command) -> str:
    return "\n".join(s.shell for s in command.steps)


#: rocm.docs.amd.com, rocprofv3 and rocprof-compute command lines; rocm-smi --help.
ROCPROFV3 = {"--runtime-trace", "--output-format", "-d", "--"}
ROCPROF_COMPUTE = {"-n", "-k", "--no-roof", "--"}


@pytest.mark.parametrize("server", list(Server))
@pytest.mark.parametrize("question", list(Question))
def test_another_vendors_device_gets_its_own_tools(question: Question, server: Server) -> None:
    context = Context(server=server, vendor=Vendor.AMD, kernel_name=HOSTILE[0], program=("./app",))
    for step in next_command(Scope.TIMELINE, question, context).steps:
        assert not {"nsys", "ncu", "nvidia-smi"} & set(step.argv), step.shell
        assert shlex.split(step.shell)[-len(step.argv) :][-1] == step.argv[-1]
        for tool, known in (("rocprofv3", ROCPROFV3), ("rocprof-compute", ROCPROF_COMPUTE)):
            if step.argv[0] == tool:
                own = step.argv[: step.argv.index("--") + 1]
                assert {w for w in own if w.startswith("-")} <= known, step.shell


def test_xla_devices_are_traced_by_jax() -> None:
    command = next_command(Scope.TIMELINE, Question.TIMELINE, Context(vendor=Vendor.TPU))
    ast.parse(command.steps[0].argv[2])
