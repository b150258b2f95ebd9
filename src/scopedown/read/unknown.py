"""What a file that no reader knows looks like, so that the refusal can say what to do."""

from __future__ import annotations

import re
from shlex import quote

from scopedown.read.columns import guess, seen

_DCGM_NAMES = re.compile(rb"(?:DCGM_FI_\w+\r?\n){2}")
_SMI_ROW = re.compile(rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, ")
#: Files that load generators write beside their requests.
_BESIDE = (
    (b'"endpoints_configured"', "AIPerf's scrape of the server's metrics"),
    (b"# AIPerf Server Metrics", "AIPerf's scrape of the server's metrics"),
    (b'"timeslices"', "AIPerf's statistics by slices of time"),
    (b"Run Info,Run Info", "GuideLLM's statistics as CSV"),
)


def looks_like(head: bytes) -> tuple[str, str]:
    """``(what it is, what to do)`` from the first bytes of a file."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    low = start[:2000].lower()
    if head.startswith(b"\x1f\x8b"):
        return "is damaged gzip data", "fetch or compress it again"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "is damaged zstd data", "fetch or compress it again"
    if head.startswith(b"PK\x03\x04"):
        return "is a zip archive", "unpack it and name the files inside"
    if b"[symptom]" in head or b"[[evidence]]" in head:
        return "is the description of a case, not evidence", "name its folder"
    if start.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer, not the file itself", "fetch the file with git lfs pull"
    if low.startswith((b"<!doctype html", b"<html")):
        return "is an HTML page, perhaps an error page saved by a download", "download the file itself"
    if head.startswith(b"SQLite format 3\x00"):
        return "is an SQLite database of no known schema", "export it anew with nsys export --type sqlite"
    if head.startswith(b"NVR\x00") or b"NVIDIA Nsight Compute" in head[:4096]:
        return "is an Nsight Compute report: not read by this version", "give the timeline or the request log first"
    if b'"traceEvents"' in head or b'"deviceProperties"' in head:
        return "is a PyTorch trace: not read by this version", "give an Nsight Systems report or the request log"
    if head.startswith(b"\x7fELF"):
        return "is an ELF binary", "give a request log, a monitor log or an Nsight Systems report"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16 text", "convert it with iconv -t UTF-8"
    if _SMI_ROW.match(start):
        return (
            "looks like nvidia-smi rows without their header",
            "nothing tells for certain which device a row is of: put the header line back, or record with "
            "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,clocks.current.sm,power.draw "
            "--format=csv -lms 100",
        )
    if low.startswith(b"<?xml"):
        return "is XML of no known format", "give a request log, a monitor log or an Nsight Systems report"
    if _DCGM_NAMES.match(start):
        return (
            "is a list of DCGM field names without a sample",
            "record dcgmi dmon -e 203,1001,155,100, or scrape dcgm-exporter",
        )
    for sign, what in _BESIDE:
        if sign in start[:4096]:
            return f"is {what}: not read by this version", "give the requests that the tool wrote beside it"
    if columns := seen(head):
        return _rows_of(columns)
    if start.startswith(b"[") and b"{" in start[:64]:
        return "is a JSON array", "write one request object a line"
    if start.startswith(b"{"):
        return "is JSON of no known format", "a request log has one object a line with id, arrival_ns, first_token_ns"
    if b"\x00" in head[:4096]:
        return "is a binary file of no known format", "give a request log, a monitor log or an Nsight Systems report"
    return "is of no known format", "give a request log (JSON lines), a monitor log or an Nsight Systems report"


def _rows_of(columns: list[str]) -> tuple[str, str]:
    """Rows of unknown columns: perhaps requests of one's own, which a mapping makes readable."""
    shown = ", ".join(columns[:12]) + (", …" if len(columns) > 12 else "")
    mapping = guess(columns)
    if mapping is None:
        return f"is of no known format; its rows have {shown}", "name the columns of a request log with --columns"
    return (
        f"is no format of a known tool; its rows have {shown}",
        f"if they are requests, try --columns {quote(mapping)}",
    )
