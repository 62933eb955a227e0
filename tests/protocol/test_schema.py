"""Arguments against a schema: the sentence names the field."""
from __future__ import annotations

import pytest

from engram.protocol import schema

SCHEMA = {
    "type": "object", "required": ["text"], "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 5},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        "share": {"type": "number", "minimum": 0},
        "flag": {"type": "boolean"},
        "names": {"type": ["string", "array"], "items": {"type": "string"}, "maxItems": 2},
        "numbers": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1},
        "inner": {"type": "object", "properties": {"deep": {"type": "null"}}, "required": ["deep"]},
    },
}


@pytest.mark.parametrize("arguments", [
    {"text": "a"}, {"text": "a", "kind": "b", "limit": 50, "share": 0.5, "flag": False, "names": "x"}, {"text": "a", "names": []},
    {"text": "a", "names": ["x", "y"], "numbers": [1, 2], "inner": {"deep": None, "free": 1}}, {"text": "日本語です"},
])
def test_what_fits_has_no_problem(arguments):
    assert schema.problem(SCHEMA, arguments) is None


@pytest.mark.parametrize("arguments, named", [
    ({}, "text is missing"), ({"text": 5}, "text must be a string"), ({"text": None}, "text must be a string"),
    ({"text": ""}, "text must not be empty"), ({"text": "abcdef"}, "text holds 6 characters"),
    ({"text": "\ud800"}, "text is not valid Unicode"),
    ({"text": "a", "kind": "c"}, "kind must be one of a, b"), ({"text": "a", "limit": 0}, "limit must be at least 1"),
    ({"text": "a", "limit": 51}, "limit must be at most 50"), ({"text": "a", "limit": True}, "limit must be a whole number"),
    ({"text": "a", "limit": 1.5}, "limit must be a whole number"), ({"text": "a", "limit": "5"}, "limit must be a whole number"),
    ({"text": "a", "limit": 10 ** 300}, "limit must be at most 50"), ({"text": "a", "share": True}, "share must be a number"),
    ({"text": "a", "flag": 1}, "flag must be true or false"), ({"text": "a", "names": {}}, "names must be a string or a list"),
    ({"text": "a", "names": ["x", 5]}, "names[1] must be a string"), ({"text": "a", "names": ["x"] * 3}, "names holds 3 items"),
    ({"text": "a", "numbers": []}, "numbers must hold at least 1"), ({"text": "a", "numbers": [1, 0]}, "numbers[1] must be at least 1"),
    ({"text": "a", "inner": {}}, "inner.deep is missing"), ({"text": "a", "inner": {"deep": 1}}, "inner.deep must be null"),
    ({"text": "a", "other": 1}, "other is not an argument of this tool"), ([], "the arguments must be an object"),
])
def test_what_does_not_fit_is_named(arguments, named):
    assert schema.problem(SCHEMA, arguments).startswith(named)


def test_a_whole_float_is_an_integer():
    assert schema.whole({"a": 5.0, "b": [1.0, 1.5], "c": "5.0", "d": True}) == {"a": 5, "b": [1, 1.5], "c": "5.0", "d": True}
    assert isinstance(schema.whole(5.0), int)


def test_a_value_nested_as_deep_as_json_can_be_read_is_no_trouble():
    value = []
    for _ in range(900):
        value = [value]
    assert schema.whole({"text": value})["text"] == value
    assert schema.problem(SCHEMA, {"text": value}) == "text must be a string, not a list"
    assert schema.problem(SCHEMA, {"text": "a", "names": value}).startswith("names[0] must be a string")
