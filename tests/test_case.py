from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from request_logs import row, write
from scopedown.case import case_from_files, load, load_case, load_evidence, parse_symptom
from scopedown.errors import InputError, UsageError
from scopedown.new_case import write_case
from scopedown.terms import Metric, Objective, Statistic
from shared_data import SHARED, needs_shared

GOOD = {"metric": "ttft", "statistic": "p95", "observed": "121 ms", "target": "60 ms"}


def case(folder: Path, toml: str) -> Path:
    (folder / "evidence").mkdir(exist_ok=True)
    write(folder / "evidence", [row(0, 0, 10)])
    (folder / "case.toml").write_text(toml)
    return folder


def test_a_complaint() -> None:
    symptom = parse_symptom(GOOD)
    assert symptom is not None
    assert (symptom.observed_ns, symptom.target_ns) == (121_000_000, 60_000_000)
    assert symptom.objective is Objective.LATENCY
    one = parse_symptom({"metric": "TTFT", "request": "r1", "observed": "1 s"})
    assert one is not None
    assert one.statistic is Statistic.REQUEST
    rate = parse_symptom({"metric": "token_throughput", "observed": "120 tok/s", "target": "9000 tok/min"})
    assert rate is not None
    assert (rate.observed_rate, rate.target_rate, rate.observed_ns) == (120.0, 150.0, None)
    assert (rate.objective, rate.statistic) == (Objective.THROUGHPUT, Statistic.MEAN)


@pytest.mark.parametrize("given", [{}, {"load": "1 at a time"}, {"objective": "latency"}, {"metric": None}])
def test_no_metric_is_a_question(given: dict[str, Any]) -> None:
    assert parse_symptom(given) is None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"observed": None}, "how much"),
        ({"statistic": None}, "of what"),
        ({"observed": None, "statistic": None}, "how much .* and of what"),
        ({"observed": "slow"}, "is no amount"),
        ({"observed": "121"}, "unit"),
        ({"observed": 121}, "unit"),
        ({"observed": "0 ms"}, "above zero"),
        ({"observed": "-3 ms"}, "above zero"),
        ({"observed": "nan ms"}, "no amount"),
        ({"observed": "121 parsec"}, "unit"),
        ({"observed": "1e99 s"}, "longer"),
        ({"target": "fast"}, "is no amount"),
        ({"metric": "slow"}, "can be measured"),
        ({"metric": "high latency"}, "can be measured"),
        ({"metric": None}, "no metric"),
        ({"statistic": "p42"}, "p50"),
        ({"statistic": "request"}, "which one"),
        ({"request": "r1"}, "by rank"),
        ({"objective": "other"}, "objective_text"),
        ({"observd": "1 ms"}, "did you mean 'observed'"),
        ({"metric": "request_throughput"}, "rate"),
        ({"metric": "request_throughput", "observed": "8 tok/s", "target": None}, "req/s"),
        ({"metric": "cost", "observed": "3 USD", "target": "2 EUR"}, "different units"),
        ({"metric": "cost", "observed": "3", "target": None}, "unit"),
    ],
)
def test_complaints_that_say_too_little(change: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_symptom({**GOOD, **change})


def test_a_folder(tmp_path: Path) -> None:
    case(tmp_path, '[symptom]\nmetric = "ttft"\nrequest = "r0"\nobserved = "10 ms"\n[contract]\ntokens = 3\nx = true\n')
    (tmp_path / "evidence" / "notes.txt").write_text("to do\n")
    (tmp_path / "evidence" / ".DS_Store").write_text("x")
    loaded = load([tmp_path])
    assert loaded.symptom is not None
    assert loaded.symptom.metric is Metric.TTFT
    assert loaded.contract == {"tokens": "3", "x": "true"}
    assert [e.path.name for e in loaded.evidence] == ["requests.jsonl"]
    assert any("notes.txt" in w for w in loaded.warnings)
    assert load([tmp_path / "case.toml"]) == loaded
    assert [a.kind for a in load_evidence(loaded)] == ["requests-jsonl"]
    other = load([tmp_path], {"metric": "e2e", "statistic": "p50", "observed": "3 s"})
    assert other.symptom is not None
    assert other.symptom.request is None
    aim = load([tmp_path], {"target": "5 ms"})
    assert aim.symptom is not None
    assert (aim.symptom.observed, aim.symptom.target_ns) == ("10 ms", 5_000_000)


@pytest.mark.parametrize(
    ("toml", "where", "what"),
    [
        ("[symptom\n", "line 1", "TOML"),
        ('[symptom]\nmetric = "ttft"\n', "[symptom]", "how much"),
        ("symptom = 3\n", "symptom", "table"),
        ("contract = 3\n", "contract", "table"),
        ("[contract]\na = [1]\n", "[contract] a", "one value"),
        ('[[evidence]]\npath = "no.jsonl"\n', "entry 1", "'no.jsonl' is no file"),
        ('[[evidence]]\npath = "evidence"\n', "entry 1", "is no file"),
        ('[[evidence]]\npath = "$(touch x)"\n', "entry 1", "is no file"),
        ('[[evidence]]\npath = "evidence/requests.jsonl"\nkind = "magic"\n', "entry 1", "unknown kind"),
        ('[[evidence]]\npath = "evidence/requests.jsonl"\noffset = "3"\n', "entry 1", "unit"),
        ('[[evidence]]\nfile = "a"\n', "entry 1", "unknown key"),
        ("evidence = 3\n", "evidence", "list"),
    ],
)
def test_a_fault_in_the_file_is_named(tmp_path: Path, toml: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as error:
        load_case(case(tmp_path, toml))
    assert where in error.value.where
    assert what in error.value.expected
    assert "\n" not in str(error.value)


def test_entries_with_offset_zone_and_hash(tmp_path: Path) -> None:
    entry = '[[evidence]]\npath = "evidence/requests.jsonl"\noffset = "{}"\n'
    loaded = load_case(case(tmp_path, entry.format("-3.5 ms") + 'sha256 = "00"\n'))
    assert loaded.evidence[0].offset_ns == -3_500_000
    with pytest.raises(InputError, match="changed since"):
        load_evidence(loaded)
    assert load_case(case(tmp_path, entry.format("+02:00"))).evidence[0].zone == "+02:00"
    assert load_case(case(tmp_path, entry.format("Europe/Berlin"))).evidence[0].zone == "Europe/Berlin"
    shifted = load_evidence(load_case(case(tmp_path, entry.format("2 s"))))
    assert shifted[0].extra["offset_ns"] == 2 * 10**9


def test_nothing_readable(tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text("")
    with pytest.raises(InputError, match="no readable evidence"):
        load_case(tmp_path)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "a").write_text("hello")
    with pytest.raises(InputError, match="no readable evidence: a is of no known format"):
        load_case(tmp_path)
    with pytest.raises(InputError, match="no such case"):
        load_case(tmp_path / "no")
    with pytest.raises(InputError, match=r"no case\.toml"):
        load_case(tmp_path / "evidence")


def test_files_without_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path, [row(0, 0, 10)])
    (tmp_path / "notes.txt").write_text("x")
    assert case_from_files([path], GOOD).symptom == parse_symptom(GOOD)
    folder = case_from_files([tmp_path])
    assert len(folder.evidence) == 1
    assert folder.warnings
    with pytest.raises(InputError, match="no known format"):
        case_from_files([tmp_path / "notes.txt"])
    with pytest.raises(InputError, match="no readable evidence"):
        case_from_files([])


def test_write_case_copies(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        write(folder, [row(0, 0, 10)])
    toml = write_case(tmp_path / "case", GOOD, [first, second], contract={"model": 'a "b"\n'})
    loaded = load_case(toml)
    assert [e.path.name for e in loaded.evidence] == ["requests-2.jsonl", "requests.jsonl"]
    assert loaded.contract == {"model": 'a "b"\n'}
    assert len(load_evidence(loaded)) == 2
    assert sorted(p.name for p in toml.parent.iterdir()) == ["case.toml", "evidence"]
    with pytest.raises(InputError, match="exists already"):
        write_case(tmp_path / "case", GOOD)
    (tmp_path / "case" / "evidence" / "requests.jsonl").write_text('{"id": "x", "arrival_ns": 1}\n')
    with pytest.raises(InputError, match="changed since"):
        load_evidence(loaded)


def test_write_case_references(tmp_path: Path) -> None:
    path = write(tmp_path, [row(0, 0, 10)])
    loaded = load_case(write_case(tmp_path / "case", None, [path], reference=True))
    assert loaded.symptom is None
    assert loaded.evidence[0].path.resolve() == path.resolve()
    assert not (tmp_path / "case" / "evidence").exists()
    assert load_evidence(loaded)
    with pytest.raises(UsageError):
        write_case(tmp_path / "other", {"metric": "ttft"})
    assert not (tmp_path / "other").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        write_case(tmp_path / "case", GOOD)


@needs_shared
def test_the_example_cases() -> None:
    for folder in sorted((SHARED / "cases").glob("0*")):
        loaded = load_case(folder)
        assert loaded.symptom is not None
        assert loaded.symptom.target_ns is not None
        assert loaded.symptom.metric is Metric.TTFT
