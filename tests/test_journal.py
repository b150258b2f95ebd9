from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scopedown.errors import InputError
from scopedown.journal import Entry, EvidenceRef, append, read


def entry(question: str, digest: str = "aa") -> Entry:
    evidence = [EvidenceRef("evidence/requests.jsonl", digest)]
    return Entry(question=question, measurement="log", evidence=evidence, answer="queue", next="trace it")


def test_entries_are_numbered_and_kept(tmp_path: Path) -> None:
    assert read(tmp_path) == []
    assert append(tmp_path, entry("which phase?")).n == 1
    before = (tmp_path / "journal.jsonl").read_bytes()
    assert append(tmp_path, entry("which call?")).n == 2
    assert (tmp_path / "journal.jsonl").read_bytes().startswith(before)
    assert [e.question for e in read(tmp_path)] == ["which phase?", "which call?"]


def test_the_same_question_on_the_same_evidence_adds_nothing(tmp_path: Path) -> None:
    append(tmp_path, entry("which phase?"))
    again = append(tmp_path, entry("which phase?"))
    assert again.n == 1
    assert append(tmp_path, entry("which phase?", "bb")).n == 2
    assert len(read(tmp_path)) == 2


@pytest.mark.parametrize("torn", ['{"n": 2, "quest', '{"n": 2, "question": "x\xc3'])
def test_a_torn_last_line_is_survived(tmp_path: Path, torn: str) -> None:
    append(tmp_path, entry("a"))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(torn.encode("latin-1"))
    assert len(read(tmp_path)) == 1
    assert append(tmp_path, entry("b")).n == 2
    assert [e.n for e in read(tmp_path)] == [1, 2]


def test_writers_do_not_share_a_number(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: append(tmp_path, entry(f"q{n}")), range(40)))
    assert sorted(e.n for e in read(tmp_path)) == list(range(1, 41))


def test_a_case_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        append(tmp_path / "no", entry("a"))
