"""The page: complete, and inert whatever the names in it are."""

from __future__ import annotations

import re
import unicodedata

import pytest
from markdown_it import MarkdownIt

from scopedown.tell.markdown import code, escape, render
from tell.reports import HOSTILE, hostile, worked_example

GFM = MarkdownIt("gfm-like", {"html": True, "linkify": False})


def test_it_holds_all_sections() -> None:
    page = render(worked_example())
    for title in ("Next", "Ledger", "Not yet", "Statements", "Patterns", "Kernels", "Contract", "Evidence", "Warnings"):
        assert f"\n## {title}\n" in page
    assert page.count("| `host.annotation` |") == 1
    assert "```sh\nvllm serve MODEL" in page


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_names_from_files_do_not_act(text: str) -> None:
    page, plain = render(hostile(text)), render(worked_example())
    assert not {c for c in page if unicodedata.category(c) in {"Cc", "Cf", "Cs"}} - {"\n"}
    # The same structure as with harmless names: no tag, no link, no image, no heading, no cell more.
    assert _structure(page) == _structure(plain) or text == ""


@pytest.mark.parametrize("text", [t for t in HOSTILE if t], ids=range(len(HOSTILE) - 1))
def test_escaped_text_reads_as_it_was(text: str) -> None:
    from scopedown.tell.clean import clean

    tokens = GFM.parse(f"- {escape(text)}")
    inline = [t for t in tokens if t.type == "inline"]
    assert len(inline) == 1
    children = inline[0].children or []
    assert {c.type for c in children} <= {"text", "text_special"}
    assert re.sub(r"\s+", " ", "".join(c.content for c in children)) == re.sub(r"\s+", " ", clean(text)).strip()


@pytest.mark.parametrize("shell", ["a ``` b", "````", "echo `date`"])
def test_a_command_cannot_leave_its_block(shell: str) -> None:
    tokens = GFM.parse(code([shell]))
    assert [(t.type, t.content) for t in tokens] == [("fence", f"{shell}\n")]


def _structure(page: str) -> list[str]:
    out: list[str] = []
    for token in GFM.parse(page):
        out.append(token.type)
        out += [c.type for c in token.children or [] if c.type not in ("text", "text_special", "softbreak")]
    return out
