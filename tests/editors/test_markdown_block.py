"""The managed block: in place, at the end, and out again; text of others is never between two markers by accident."""
from __future__ import annotations

import pytest

from engram.editors import markdown
from engram.editors.source import Unreadable
from tests.editors.configs import markdown_text, only_inserted
from tests.trials import count, dice

LINES = ["## Engram", "", "- load", "- propose"]


def test_any_text_keeps_every_byte_and_comes_back():
    rolls = dice("markdown")
    for _ in range(count(1000, 5000)):
        text = markdown_text(rolls)
        after = markdown.put_block(text, LINES)
        assert markdown.block_of(after) == LINES and only_inserted(text, after)
        assert markdown.put_block(after, LINES) == after
        assert markdown.drop_block(after) == text
        assert markdown.drop_block(markdown.put_block(after, ["other"])) == text


def test_a_block_is_replaced_where_it_stands():
    text = markdown.put_block("# A\n", ["old"]) + "\nBelow.\n"
    assert markdown.put_block(text, LINES) == "# A\n\n" + "\n".join([markdown.START, *LINES, markdown.END]) + "\n\nBelow.\n"
    assert markdown.drop_block(text) == "# A\n\nBelow.\n"


@pytest.mark.parametrize("text, line", [
    (f"a\n{markdown.END}\nmine\n{markdown.START}\n", 2),
    (f"{markdown.START}\nx\n{markdown.END}\nmine\n{markdown.START}\n", 5),
    (f"{markdown.START}\nx\n", 1),
    (f"x\n{markdown.START}\na\n{markdown.END}\n{markdown.START}\nb\n{markdown.END}\n", 5),
])
def test_markers_in_disorder_are_refused_with_the_line(text, line):
    for edit in (lambda: markdown.put_block(text, LINES), lambda: markdown.drop_block(text)):
        with pytest.raises(Unreadable) as caught:
            edit()
        assert caught.value.line == line


def test_markers_in_a_code_fence_are_an_example():
    text = f"```\n{markdown.START}\n{markdown.END}\n```\n"
    assert markdown.block_of(text) is None
    assert markdown.drop_block(markdown.put_block(text, LINES)) == text


@pytest.mark.parametrize("text", ["```\nnever closed", "~~~~\n```\n~~~\n", "```a\n```b\n"])
def test_a_fence_that_is_never_closed_hides_no_block(text):
    after = markdown.put_block(text, LINES)
    assert markdown.put_block(after, LINES) == after and markdown.drop_block(after) == text


def test_many_fences_take_no_time():
    text = "```a\n" * 100_000 + "~~~\n" * 100_000
    assert markdown.drop_block(markdown.put_block(text, LINES)) == text


def test_line_ends_are_those_of_the_file():
    after = markdown.put_block("a\r\nb\r\n", LINES)
    assert after.count("\r\n") == after.count("\n")
