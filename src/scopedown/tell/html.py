"""The report as one HTML file that asks nothing of the network and runs nothing that a capture holds.

The data are one JSON value in a script block that no browser executes; the page's own script builds every element with
``textContent``. The Content-Security-Policy admits that script and the style sheet by their hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from scopedown.picture import Picture
from scopedown.report import Report
from scopedown.tell.json import compact
from scopedown.tell.page import page

#: Bytes of a page, whatever the trace.
LIMIT = 5_000_000


def render(report: Report, pictures: Iterable[Picture]) -> bytes:
    """The page. ``pictures``: of less and less detail; the first that keeps the page within LIMIT is drawn, else the
    last."""
    data = b""
    for picture in pictures:
        data = fill(compact(page(report, picture)))
        if len(data) <= LIMIT:
            break
    return data


def fill(value: bytes) -> bytes:
    """The template around a JSON value."""
    style, script = _template("report.css"), _template("report.js")
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    left = _template("report.html")
    out = []
    # In the template's order and never looked for in what was put in: a name may hold a mark.
    for mark, content in (("policy", policy.encode()), ("style", style), ("data", escape(value)), ("script", script)):
        before, _, left = left.partition(b"{{" + mark.encode() + b"}}")
        out += [before, content]
    return b"".join([*out, left, b"\n"])


def escape(value: bytes) -> bytes:
    """JSON that cannot end the block that it stands in, whatever its strings hold."""
    for char in "<>&\u2028\u2029":
        value = value.replace(char.encode(), f"\\u{ord(char):04x}".encode())
    return value


def digest(content: bytes) -> str:
    """The source expression of a policy that admits exactly this content."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()


def _template(name: str) -> bytes:
    return files("scopedown.tell").joinpath("templates", name).read_bytes().rstrip(b"\n")
