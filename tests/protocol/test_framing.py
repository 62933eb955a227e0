"""Lines out of a byte stream, however it is cut."""
from __future__ import annotations

import pytest

from engram.protocol.framing import TOO_LONG, Lines
from tests.trials import count, dice


def cut(chunks, limit=1 << 20):
    lines = Lines(limit)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return found + lines.end()


@pytest.mark.case("RP-05")
@pytest.mark.parametrize("data, lines", [
    (b"a\nb\n", [b"a", b"b"]),
    (b"a\r\nb\r\n", [b"a", b"b"]),
    (b"a\nb", [b"a", b"b"]),
    (b"\n  \n\r\n\t\na\n\n", [b"a"]),
    (b"", []),
    (b"\xef\xbb\xbfa\n", [b"\xef\xbb\xbfa"]),
    (b"a\0b\n", [b"a\0b"]),
])
def test_a_line_ends_with_lf_and_blank_lines_are_dropped(data, lines):
    assert cut([data]) == lines


def test_the_cut_of_the_chunks_makes_no_difference():
    roll = dice("framing")
    for _ in range(count(200, 5000)):
        data = bytes(roll.choice(b"ab \r\n\t{}\x00\xff") for _ in range(roll.randrange(60)))
        chunks, rest = [], data
        while rest:
            size = roll.randrange(1, 9)
            chunks.append(rest[:size])
            rest = rest[size:]
        assert cut(chunks) == cut([data])


def test_a_line_past_the_limit_is_told_and_not_kept():
    assert cut([b"x" * 11 + b"\nok\n"], limit=10) == [TOO_LONG, b"ok"]
    assert cut([b"x" * 8, b"x" * 8, b"x", b"\n", b"ok"], limit=10) == [TOO_LONG, b"ok"]
    assert cut([b"x" * 11], limit=10) == [TOO_LONG]
    assert cut([b"x" * 10 + b"\n"], limit=10) == [b"x" * 10]
