"""The page as bytes: closed to the network, whole in one file, never large, and nothing in it acts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scopedown.picture import Picture, Pieces
from scopedown.tell import html
from scopedown.tell.drawing import FAMILIES, family
from scopedown.terms import Category
from tell import pages
from tell.reports import HOSTILE

ROOT = Path(__file__).parents[2]


class Parts(HTMLParser):
    """Attributes of every element, and the text of scripts, styles and the title."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._in = ""
        self.feed(data.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag

    def handle_data(self, data: str) -> None:
        if self._in in ("script", "style", "title"):
            self.texts.append((self._in, data))

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


def value(page: bytes) -> dict[str, Any]:
    (block,) = re.findall(rb'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    found: dict[str, Any] = json.loads(block)
    return found


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return pages.of_situation("worked_example", tmp_path_factory.mktemp("case"))


def test_policy_admits_the_script_and_the_style_and_nothing_else(worked: bytes) -> None:
    parts = Parts(worked)
    (policy,) = [a["content"] for t, a in parts.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(p.strip().split(" ", 1) for p in policy.split(";"))
    assert rules["default-src"] == "'none'"
    (style,) = [t for tag, t in parts.texts if tag == "style"]
    (script,) = [t for tag, t in parts.texts if tag == "script" and t.startswith('"use strict"')]
    for rule, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}


def test_nothing_is_fetched_and_nothing_acts_by_attribute(worked: bytes) -> None:
    for tag, attributes in Parts(worked).elements:
        assert not any(k.startswith("on") or k == "style" for k in attributes), tag
        for k in ("src", "href", "action", "data"):
            assert (attributes.get(k) or "#").startswith(("#", "data:,")), (tag, attributes)
    script = (ROOT / "src/scopedown/tell/templates/report.js").read_text("utf-8")
    style = (ROOT / "src/scopedown/tell/templates/report.css").read_text("utf-8")
    acting = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|fetch\(|XMLHttp|WebSocket|import\("
    )
    assert not re.search(acting, script)
    assert not re.search(r"url\(|@import", style)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(text: str) -> None:
    page = pages.hostile_page(text)
    assert [t for t, _ in Parts(page).elements].count("script") == 2
    (block,) = re.findall(rb'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert not set("<>&\u2028\u2029\x1b\u202e") & set(block.decode())
    assert value(page)["things"]
    assert len(page) < html.LIMIT


def test_a_name_that_is_a_mark_of_the_template_is_not_filled_in() -> None:
    page = pages.hostile_page("{{script}} {{data}}")
    assert page.count(b"use strict") == 1
    assert "{{script}}" in value(page)["drawing"]["lanes"][0]["title"]


def test_escape_is_json_of_the_same_value() -> None:
    text = "</script><!--&\u2028\u2029\u00e9"
    out = html.escape(json.dumps(text, ensure_ascii=False).encode())
    assert json.loads(out) == text
    assert not set(b"<>&") & set(out)


def test_a_million_events_make_a_small_page_that_says_what_it_left_out() -> None:
    report, pictures = pages.large()
    page = html.render(report, pictures)
    assert len(page) < 3_000_000
    drawing = value(page)["drawing"]
    assert sum(sum(row.get("c", [1] * len(row["d"]))) for x in drawing["lanes"] for row in x["rows"]) > 900_000
    assert any("drawn together" in n for n in drawing["notes"])
    assert sum(drawing["path"]["d"]) == drawing["total"]


def test_too_large_a_page_is_drawn_again_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    report, (picture,) = pages.large()
    asked = []

    def every(nth: int, p: Pieces) -> Pieces:
        cut = {k: getattr(p, k)[::nth] for k in ("start", "ns", "name", "count", "busy")}
        return msgspec.structs.replace(p, **cut)

    def smaller() -> Iterator[Picture]:
        for nth in (1, 2, 4, 8):
            asked.append(nth)
            lanes = [msgspec.structs.replace(x, rows=[every(nth, r) for r in x.rows]) for x in picture.lanes]
            yield msgspec.structs.replace(picture, lanes=lanes)

    monkeypatch.setattr(html, "LIMIT", 1_500_000)
    assert len(html.render(report, smaller())) <= 1_500_000
    assert 1 < len(asked) < 4


def test_amounts_of_the_page_are_those_of_the_report(worked: bytes) -> None:
    v = value(worked)
    total = v["drawing"]["total"]
    lines = [t for t in v["things"] if t["kind"] == "line"]
    assert sum(t["total"] for t in lines) == total
    assert sum(v["drawing"]["path"]["d"]) == total
    assert [r["amount"] for r in v["ledger"]["rows"]][:3] == [f"{t['total'] / 1e6:.3f}" for t in lines[:3]]
    for t in v["things"]:
        if t["members"]:
            assert sum(t["members"]["d"]) == t["total"], t["id"]
        if t["chart"]:
            assert sum(t["chart"]["bins"]) == t["count"], t["id"]


def test_what_the_statement_says_leads_to_its_occurrences(worked: bytes) -> None:
    v = value(worked)
    first = v["things"][v["statements"][0]["thing"]]
    assert first["kind"] == "pattern"
    assert first["text"] == v["statements"][0]["text"]
    assert first["refuted"]
    assert first["members"]
    assert any(v["things"][i]["kind"] == "gaps" for i in first["links"])


def test_every_category_has_a_family_and_every_family_a_category() -> None:
    assert {family(c) for c in Category} == set(range(len(FAMILIES)))


@pytest.mark.parametrize("name", ["near_saturation", "late_client", "slow_monitor"])
def test_logs_alone_have_a_page(name: str, tmp_path: Path) -> None:
    v = value(pages.of_situation(name, tmp_path))
    assert v["drawing"]["lanes"] == []
    assert v["ledger"]["rows"]


def test_the_command_writes_it_and_prints_the_text(tmp_path: Path) -> None:
    pages.of_situation("sync_then_launch", tmp_path / "case")
    target = tmp_path / "report.html"
    for _ in range(2):  # its own page may be written over
        run = [sys.executable, "-m", "scopedown", "diagnose", str(tmp_path / "case"), "--html", str(target)]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("symptom")
    assert target.read_bytes().startswith(b"<!doctype html>")


def test_the_wheel_holds_the_templates(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("report.html", "report.css", "report.js"):
        assert f"scopedown/tell/templates/{name}" in names
