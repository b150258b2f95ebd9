"""The object that programs read, and its published schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from scopedown.tell.json import decode, encode
from scopedown.tell.schema import PUBLISHED, schema, text
from scopedown.terms import Category
from tell.reports import HOSTILE, hostile, worked_example


def test_the_published_schema_is_that_of_the_types() -> None:
    assert PUBLISHED.read_bytes() == text(), "run: make docs"
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_report_is_valid_and_comes_back() -> None:
    report = worked_example()
    jsonschema.Draft202012Validator(schema()).validate(json.loads(encode(report)))
    assert decode(encode(report)) == report
    assert encode(report).endswith(b"}\n")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_data(name: str) -> None:
    found = json.loads(encode(hostile(name)))
    jsonschema.Draft202012Validator(schema()).validate(found)
    assert found["decision"]["question"] == name.encode("utf-8", "replace").decode()


def test_the_schema_knows_every_category() -> None:
    assert set(schema()["$defs"]["Category"]["enum"]) == set(map(str, Category))


def test_not_a_number_becomes_null() -> None:
    report = worked_example()
    report.statements[0].value = float("nan")
    assert json.loads(encode(report))["statements"][0]["value"] is None
