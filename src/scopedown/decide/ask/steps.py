"""Steps of a command: quoted once, for programs and for a shell; and where new evidence goes."""

from __future__ import annotations

import shlex

from scopedown.decide.servers import Capture, Context, Server, send_request
from scopedown.report import Step


def step(where: str, why: str, argv: tuple[str, ...] | list[str], env: dict[str, str] | None = None) -> Step:
    """A step; ``argv`` runs as it stands (through ``env``), ``shell`` is the same for a shell."""
    words = [f"{name}={value}" for name, value in (env or {}).items()]
    front = [f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()]
    return Step(
        argv=[*(["env", *words] if words else []), *argv],
        shell=" ".join([*front, shlex.join(argv)]),
        where=where,
        why=why,
    )


def diagnose_again(context: Context, *new: str) -> Step:
    """The last step: the same question on the evidence with the new files."""
    if context.case is not None:
        return step("after", "ask again with the new evidence", ["scopedown", "diagnose", _operand(context.case)])
    argv = ["scopedown", "diagnose", *map(_operand, (*context.files, *new)), *context.symptom]
    return step("after", "ask again with the new evidence", argv)


def keep(context: Context, file: str) -> str:
    """Where a new file goes: into the case's evidence, or here."""
    return file if context.case is None else f"{_operand(context.case).rstrip('/')}/evidence/{file}"


def _operand(path: str) -> str:
    """A path that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def requests(context: Context, capture: Capture) -> list[Step]:
    """What the client sends: begin, the symptom's request, stop."""
    if context.server is Server.PLAIN:
        return []
    out = []
    if capture.begin:
        out.append(step("client", "begin the capture; this call stalls the server", capture.begin))
    out.append(step("client", "a request like the symptom's", send_request(context)))
    if capture.stop:
        out.append(step("client", "end the capture; it may take minutes to return", capture.stop))
    return out


def restart(context: Context) -> str:
    if context.server is Server.PLAIN:
        return "the program is started anew under the profiler"
    return "a restart of the server; in a container: the tool inside it, CAP_SYS_ADMIN only for CPU samples"
