"""One line read: the value, or the fault with the id that the reply carries."""
from __future__ import annotations

import json

import pytest

from engram.protocol import messages
from engram.protocol.framing import TOO_LONG
from engram.protocol.messages import INVALID_REQUEST, NO_ID, PARSE_ERROR, Fault


def fault(line):
    found = messages.read(line)
    assert isinstance(found, Fault), found
    return found.code, found.id


@pytest.mark.case("RP-01", "RP-06", "RP-07")
@pytest.mark.parametrize("line", [
    b"{bad", b"not a message", b'{"a":1,}', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"id":1}{"id":2}',
    b'{"id":1,"a":"\xff\xfe"}', b'{"id":1,"a":"\xed\xa0\x80"}', b"\0", b'{"id":1}\0', b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"Content-Length: 44", b"'a'", b'"\x01"', TOO_LONG,
])
def test_what_is_not_json_is_a_parse_error_with_a_null_id(line):
    assert fault(line) == (PARSE_ERROR, None)


@pytest.mark.parametrize("line, id", [
    (b'{"id":7,"a":1,"a":2}', 7),
    (b'{"id":"s","params":{"x":{"y":1,"y":1}}}', "s"),
    (b'{"id":7,"id":8}', NO_ID),
    (b'{"id":7,"a":' + b"9" * 5000 + b"}", 7),
    (b'{"id":' + b"9" * 5000 + b"}", NO_ID),
    (b'{"id":7,"a":1e999}', 7),
    (b'{"id":true,"a":1,"a":1}', NO_ID),
    (b'[{"a":1,"a":1}]', NO_ID),
])
def test_what_has_no_safe_reading_is_a_fault_under_its_own_id(line, id):
    assert fault(line) == (INVALID_REQUEST, id)


@pytest.mark.parametrize("line, value", [
    (b'\xef\xbb\xbf{"id":1}', {"id": 1}),
    (b'{"id":123456789012345678901234567890}', {"id": 123456789012345678901234567890}),
    (b'{"a":"\\ud800"}', {"a": "\ud800"}),
    (b'{"a":"\\u0000"}', {"a": "\0"}),
    (b"[]", []), (b"42", 42), (b'"x"', "x"), (b"null", None),
])
def test_odd_but_whole_json_is_read(line, value):
    assert messages.read(line) == value


@pytest.mark.case("RP-10")
def test_a_written_line_is_ascii_and_reads_back_equal():
    value = {"a": "✓ 設定 🚀 příklad \ud800 \0 \n", "b": [1, -5, 1.5, None, True]}
    line = messages.write(value)
    assert line.isascii() and line.endswith(b"\n") and line.count(b"\n") == 1
    assert json.loads(line) == value


def test_a_bool_a_float_and_null_are_no_ids():
    assert [messages.is_id(value) for value in (0, -7, "", 2 ** 60, True, False, None, 1.5, 1.0, [], {})] == [True] * 4 + [False] * 7
