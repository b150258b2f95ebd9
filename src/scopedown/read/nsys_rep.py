"""Reader of raw Nsight Systems reports (.nsys-rep, .qdrep): exported by the user's own nsys, then read as an export.

The report's format is private to its version of the tool; its first line names that version and is readable without
it. An nsys older than the report refuses it, so that is checked first.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.cache import cache_dir
from scopedown.read.nsys_sqlite import NsysSqlite
from scopedown.read.nsys_tables import MAGIC
from scopedown.terms import Scope

_REPORT = b"NVIDIA Tegra Profiler Report"
_STREAM = b"NVIDIA Nsight Systems Stream"
_LFS = b"version https://git-lfs"
# "Report 2025@5@1@121-255136380782v0."; up to 2022.4 only "Report 1."
_VERSION = re.compile(_REPORT + rb" (\d{4})@(\d+)@(\d+)@")
_TOOL_VERSION = re.compile(r"version (\d+\.\d+\.\d+)")
_INSTALLED = (
    "/opt/nvidia/nsight-systems*/*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/opt/nvidia/nsight-systems*/bin/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/local/cuda*/nsight-systems*/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
)
_EXPORT_TIMEOUT_S = 600.0
_VERSION_TIMEOUT_S = 30.0


def report_version(head: bytes) -> str | None:
    """``"2025.5.1"`` from a report's first bytes; None where the report does not say (2022.4 and older)."""
    found = _VERSION.match(head)
    return b".".join(found.groups()).decode() if found else None


class NsysReport:
    kind: ClassVar[str] = "nsys-rep"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "Nsight Systems report (.nsys-rep, .qdrep), through your own nsys"

    def __init__(self, nsys: str | None = None, *, cache: bool = True) -> None:
        """``nsys``: the tool to use instead of the one that is found. Without ``cache`` the export is not kept."""
        self.nsys, self.cache = nsys, cache

    def sniff(self, source: Source) -> bool:
        return source.head.startswith((_REPORT, _LFS)) or _STREAM in source.head[:64]

    def read(self, source: Source) -> Artifact:
        if source.head.startswith(_LFS):
            raise InputError(source.path, "", "is a Git LFS pointer, not a report", "fetch it with: git lfs pull")
        if _STREAM in source.head[:64]:
            raise InputError(
                source.path,
                "",
                "is a raw stream that was not imported into a report",
                f"import it with: QdstrmImporter -i {source.path.name}, then give the .nsys-rep",
            )
        if self.cache:
            return self._read(source, cache_dir())
        with tempfile.TemporaryDirectory(prefix="scopedown-") as scratch:
            return self._read(source, Path(scratch))

    def _read(self, source: Source, folder: Path) -> Artifact:
        exported = export(source.path, self.nsys, folder, sha256=source.sha256)
        artifact = NsysSqlite().read(Source(exported))
        return replace(
            artifact,
            path=source.path,
            sha256=source.sha256,
            kind=self.kind,
            warnings=tuple(w.replace(exported.name, source.path.name) for w in artifact.warnings),
        )


def export(
    path: Path, nsys: str | None, folder: Path, timeout_s: float = _EXPORT_TIMEOUT_S, sha256: str | None = None
) -> Path:
    """The SQLite export of a report, made by ``nsys`` (else ``$NSYS``, PATH, the newest installed one) and kept in
    ``folder`` by the report's hash and the tool's version.

    Raises InputError where no tool is found, it is older than the report, it fails, or takes longer than
    ``timeout_s``.
    """
    source = Source(path)
    report = report_version(source.head)
    tool, version = _tool(path, report, nsys)
    kept = folder / f"{sha256 or source.sha256}-nsys-{version}.sqlite"
    if kept.exists():
        return kept
    # A folder of its own: nsys writes beside its output, and what fails or is stopped half-way must not be found later.
    try:
        scratch = tempfile.TemporaryDirectory(prefix="export-", dir=folder)
    except OSError as e:
        raise InputError(
            folder, "", f"the cache folder cannot be written ({e.strerror})", "set SCOPEDOWN_CACHE to a folder of yours"
        ) from None
    with scratch as made:
        out = Path(made) / "out.sqlite"
        argv = [tool, "export", "--type", "sqlite", "-o", str(out), str(path.absolute())]
        code, said = _run(argv, timeout_s)
        if code is None:
            raise InputError(
                path,
                "",
                f"nsys export ({version}) did not end within {timeout_s:g} s and was stopped",
                f"run it yourself: {_command(path)}",
            )
        if code != 0 or not out.exists() or not _is_sqlite(out):
            raise InputError(
                path, "", f"nsys export ({version}) failed: {_first_error(said)}", f"run it yourself: {_command(path)}"
            )
        out.replace(kept)
    return kept


def _tool(path: Path, report: str | None, nsys: str | None) -> tuple[str, str]:
    """An nsys that can read the report, and its version."""
    chosen = nsys or os.environ.get("NSYS")
    candidates = [chosen] if chosen else [*filter(None, [shutil.which("nsys")]), *installed_nsys()]
    found: list[str] = []
    for tool in candidates:
        code, said = _run([tool, "--version"], _VERSION_TIMEOUT_S)
        match = _TOOL_VERSION.search(said) if code == 0 else None
        if match is None:
            continue
        found.append(match[1])
        if report is None or _order(match[1]) >= _order(report):
            return tool, match[1]
    needed = f"nsys {report} or newer" if report else "nsys (2022.4 or newer)"
    do = f"on a machine with {needed} run: {_command(path)}, then give the .sqlite file"
    if found:
        newest = max(found, key=_order)
        raise InputError(path, "", f"was written by nsys {report}, the nsys here is {newest}: too old to read it", do)
    if chosen:
        raise InputError(path, "", f"needs {needed}, and {chosen} is no working nsys", do)
    raise InputError(path, "", f"is a raw report that only nsys can read ({needed}), and no nsys was found", do)


def installed_nsys() -> list[str]:
    """Usual places, newest version first."""
    root = Path("/")
    tools = {str(p) for pattern in _INSTALLED for p in root.glob(pattern.removeprefix("/")) if os.access(p, os.X_OK)}
    return sorted(tools, key=lambda t: [int(n) for n in re.findall(r"\d+", t)], reverse=True)


def _run(argv: list[str], timeout_s: float) -> tuple[int | None, str]:
    """(exit status, output); None where it was stopped after ``timeout_s``, 127 where it cannot be started."""
    try:
        # A group of its own, as nsys starts helpers that outlive it.
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError:
        return 127, ""
    with process:
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said.decode("utf-8", "replace")


def _first_error(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|invalid|newer than|not found|fail", line, re.IGNORECASE)]
    return (telling or lines or ["it wrote no export"])[0][:300]


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as f:
        return f.read(len(MAGIC)) == MAGIC


def _command(path: Path) -> str:
    return shlex.join(["nsys", "export", "--type", "sqlite", "-o", f"{path.stem}.sqlite", path.name])


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in version.split("."))
