"""What is known of the user's set-up, for the command tables: from the trace's names, the contract and the flags."""

from __future__ import annotations

import re

import numpy as np

from scopedown.case import Case
from scopedown.decide.command import Context, Server, Vendor
from scopedown.decide.kernels import Family
from scopedown.decide.select import Selection
from scopedown.decide.situation import Situation
from scopedown.errors import UsageError
from scopedown.read.base import UNKNOWN
from scopedown.terms import Metric, Scope
from scopedown.trace.model import Trace

_PYTHON = re.compile(r"python|pt_main|ray|torchrun|vllm|sglang|trtllm|EngineCore|simulat", re.IGNORECASE)
_SIGNS = (
    (Server.VLLM, re.compile(r"\bvllm\b|vllm::", re.IGNORECASE)),
    (Server.SGLANG, re.compile(r"\bsglang\b|sgl_kernel|sgl_", re.IGNORECASE)),
    (Server.TRTLLM, re.compile(r"tensorrt_llm|trtllm", re.IGNORECASE)),
)


def server_of(flag: str, declared: dict[str, str], trace: Trace | None) -> tuple[Server, str | None]:
    """The server and its version: as the flag says, else as the contract declares, else by names in the trace."""
    name, _, version = flag.partition("==")
    if name != "auto":
        if name not in set(Server):
            raise UsageError(f"--server {name!r}: expected auto, {', '.join(Server)}, with ==VERSION where it matters")
        return Server(name), version or None
    said = " ".join(str(declared.get(k, "")) for k in ("server", "software", "engine"))
    texts = [said]
    if trace is not None:
        texts += [p.name for p in trace.processes]
        texts += [trace.names[n] for n in np.unique(trace.ops.name).tolist()[:5000]]
    for server, sign in _SIGNS:
        if any(sign.search(t) for t in texts):
            found = re.search(r"\d+\.\d+(\.\d+)?", said)
            return server, found[0] if found else None
    return Server.PLAIN, None


def context(case: Case, s: Situation, x: Selection, families: list[Family], trace: Trace | None, flag: str) -> Context:
    server, version = server_of(flag, case.contract, trace)
    family = x.winner.family if x.winner is not None and x.winner.family is not None else None
    if family is None and x.scope in (Scope.KERNEL, Scope.SOURCE, Scope.INSTRUCTIONS) and families:
        family = families[0]
    log, row = s.log, s.row
    tokens_in = (
        int(log.input_tokens[row]) if log is not None and row is not None and log.input_tokens[row] != UNKNOWN else None
    )
    tokens_out = (
        int(log.output_tokens[row])
        if log is not None and row is not None and log.output_tokens[row] != UNKNOWN
        else None
    )
    program = _program(trace)
    return Context(
        server=server,
        vendor=_vendor(trace),
        program=program or ("python", "app.py"),
        python=program is None,
        version=version,
        model=case.contract.get("model_path"),
        kernel_name=family.kernel if family is not None else None,
        launch_skip=family.representative if family is not None else None,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        rate=s.load.offered_rps if s.load is not None else None,
        training=case.symptom is not None and case.symptom.metric is Metric.STEP_TIME,
        case=str(case.folder) if case.folder is not None else None,
        files=tuple(str(e.path) for e in case.evidence) if case.folder is None else (),
        symptom=_flags(case) if case.folder is None else (),
    )


def _vendor(trace: Trace | None) -> Vendor:
    """By the devices' names and the tool that wrote the trace; NVIDIA where nothing says otherwise."""
    if trace is None:
        return Vendor.NVIDIA
    said = " ".join([trace.meta.tool, *(d.name or "" for d in trace.meta.devices)])
    if re.search(r"\bTPU\b", said):
        return Vendor.TPU
    return (
        Vendor.AMD
        if re.search(r"\bAMD\b|ROCm|rocp|\brpd\b|\bMI\d{2,3}|gfx\d|hip", said, re.IGNORECASE)
        else Vendor.NVIDIA
    )


def _program(trace: Trace | None) -> tuple[str, ...] | None:
    """The program of the capture by its base name, where it is no Python; None where it is, or is unknown."""
    if trace is None or not len(trace.ops):
        return None
    busiest = int(np.bincount(trace.ops.process).argmax())
    name = trace.processes[busiest].name
    if not name or _PYTHON.match(name):
        return None
    return (f"./{name}",)


def _flags(case: Case) -> tuple[str, ...]:
    y = case.symptom
    if y is None:
        return ()
    pairs = [("--metric", str(y.metric)), ("--observed", y.observed), ("--target", y.target), ("--request", y.request)]
    if y.request is None:
        pairs.append(("--statistic", str(y.statistic)))
    return tuple(word for flag, value in pairs if value for word in (flag, value))
