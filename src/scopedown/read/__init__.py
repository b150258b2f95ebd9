"""Files become artifacts: which reader a file belongs to is decided by its content, never by its name.

Adding a format: write ``read/foo.py`` with a class that keeps the promises of ``base.Reader`` and add it to READERS.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Reader, RequestLog, Source
from scopedown.read.bench_aiperf import AiperfRecords
from scopedown.read.bench_aiperf_summary import AiperfSummary
from scopedown.read.bench_custom import CustomRequests
from scopedown.read.bench_guidellm import GuideLlm
from scopedown.read.bench_inference_perf import InferencePerf, InferencePerfSummary
from scopedown.read.bench_llmperf import LlmPerf, LlmPerfSummary
from scopedown.read.bench_lmbench import LmBench
from scopedown.read.bench_vllm import BenchServing
from scopedown.read.bench_vllm_summary import BenchServingSummary
from scopedown.read.columns import parse_columns
from scopedown.read.load_trace import LoadTrace
from scopedown.read.monitor_amd import AmdSmi
from scopedown.read.monitor_dcgm import Dcgm
from scopedown.read.monitor_dmon import NvidiaSmiDmon
from scopedown.read.monitor_rocm import RocmSmi
from scopedown.read.monitor_smi import NvidiaSmiCsv
from scopedown.read.monitor_smi_capture import NvidiaSmiCapture
from scopedown.read.monitor_smi_xml import NvidiaSmiXml
from scopedown.read.nsys_rep import NsysReport
from scopedown.read.nsys_sqlite import NsysSqlite
from scopedown.read.request_checks import refuse_clocks
from scopedown.read.requests import NativeRequests
from scopedown.read.rocpd import Rocpd
from scopedown.read.rocprofv1 import RocprofV1
from scopedown.read.rocprofv3_json import RocprofJson
from scopedown.read.rpd import Rpd
from scopedown.read.stamps import Zoned
from scopedown.read.unknown import looks_like
from scopedown.read.xplane import Xplane

#: In order of specificity: the first that recognises a file reads it.
READERS: tuple[Reader, ...] = (
    NsysReport(),
    NsysSqlite(),
    Rocpd(),
    RocprofJson(),
    Rpd(),
    RocprofV1(),
    Xplane(),
    NativeRequests(),
    AiperfRecords(),
    GuideLlm(),
    BenchServing(),
    LlmPerf(),
    InferencePerf(),
    LmBench(),
    AiperfSummary(),
    BenchServingSummary(),
    InferencePerfSummary(),
    LlmPerfSummary(),
    LoadTrace(),
    CustomRequests(),
    NvidiaSmiCsv(),
    NvidiaSmiXml(),
    NvidiaSmiCapture(),
    NvidiaSmiDmon(),
    RocmSmi(),
    AmdSmi(),
    Dcgm(),
)

#: Formats whose files may hold several runs.
OF_RUNS = (GuideLlm, BenchServing, BenchServingSummary)


def detect(source: Source, columns: str | None = None) -> Reader | None:
    """The reader whose format the content has; None where nobody knows it.

    ``columns``: the mapping (``read/columns.py``) through which a file is read that no other reader knows.
    """
    known = next((r for r in READERS if _sniffs(r, source)), None)
    if columns is None:
        return known
    run = parse_columns(columns).run
    if isinstance(known, OF_RUNS):
        return type(known)(run)
    mapped = CustomRequests(columns)
    return mapped if known is None and _sniffs(mapped, source) else known


def _sniffs(reader: Reader, source: Source) -> bool:
    try:
        return reader.sniff(source)
    except RecursionError:
        return False


def open_source(path: Path) -> Source:
    """A Source for a regular, readable file that is not empty; InputError for anything else.

    A FIFO or a device is refused before it is opened: reading it could wait for ever or change something.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(path, "", "no such file", "check the path") from None
    except OSError as error:
        raise InputError(path, "", f"cannot be reached ({error.strerror})", "check the path and its rights") from None
    if stat.S_ISDIR(mode):
        raise InputError(path, "", "is a folder, a file was expected", "name its files")
    if not stat.S_ISREG(mode):
        raise InputError(path, "", "is not a regular file", "write its content to a file first")
    source = Source(path)
    try:
        head = source.head
    except OSError as error:
        raise InputError(path, "", f"cannot be read ({error.strerror})", "check its rights") from None
    if not head and source.compression is not None:
        raise source.damaged("nothing can be decompressed")
    if not head:
        raise InputError(path, "", "is empty", "check that the tool which wrote it ended normally")
    return source


def load(
    path: Path,
    *,
    kind: str | None = None,
    tz: str | None = None,
    nsys: str | None = None,
    cache: bool = True,
    columns: str | None = None,
) -> Artifact:
    """Read one file. ``kind`` names the reader instead of the content; ``tz`` is the zone of a monitor's local times;
    ``nsys`` exports raw reports, which ``cache`` keeps; ``columns`` maps the columns of a request log of one's own.

    Raises InputError where the file is missing, unreadable, of no known format, or breaks its format.
    """
    source = open_source(path)
    reader: Reader | None = (
        detect(source, columns) if kind is None else next((r for r in READERS if r.kind == kind), None)
    )
    if reader is None:
        if kind is not None:
            known = ", ".join(r.kind for r in READERS)
            raise InputError(path, "", f"unknown kind {kind!r}", f"use one of {known}")
        what, do = looks_like(source.head)
        raise InputError(path, "", what, do)
    if isinstance(reader, CustomRequests) and kind is not None:
        reader = CustomRequests(columns)
    if tz is not None and isinstance(reader, Zoned):
        reader = type(reader)(tz)
    if isinstance(reader, NsysReport):
        reader = NsysReport(nsys, cache=cache)
    try:
        found = reader.read(source)
    except RecursionError:
        raise InputError(
            path, "", f"is nested deeper than any file of the format {reader.kind}", "check what wrote it"
        ) from None
    if isinstance(found.content, RequestLog):
        refuse_clocks(path, found.content)
    return found


def expand(paths: Iterable[str | Path]) -> list[Path]:
    """Files named by paths, folders and globs, without doubles; a folder gives its visible regular files, sorted.

    Symbolic links to folders are not followed. A path that exists is itself, whatever characters it has.
    """
    found: dict[Path, None] = {}
    for item in paths:
        path = Path(item)
        if path.is_dir():
            found.update(dict.fromkeys(_walk(path)))
        elif path.exists() or path.is_symlink() or not glob.has_magic(str(item)):
            found[path] = None
        else:
            matches = sorted(glob.glob(str(item), recursive=True))  # noqa: PTH207 - absolute patterns too
            if not matches:
                raise InputError(path, "", "matches no file", "check the pattern")
            for match in map(Path, matches):
                found.update(dict.fromkeys(_walk(match) if match.is_dir() else [match]))
    return list(found)


def _walk(folder: Path) -> list[Path]:
    files: list[Path] = []
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        files.extend(p for n in sorted(names) if not n.startswith(".") and (p := Path(root, n)).is_file())
    return sorted(files)
