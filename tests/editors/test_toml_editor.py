"""The TOML editor: a table goes in and comes out, in whatever way the file is written; nothing else moves."""
from __future__ import annotations

import tomllib

import pytest

from engram.editors import toml as editor
from engram.editors.source import Unreadable
from tests.editors.configs import only_inserted, toml_text
from tests.trials import count, dice

PATH = ("mcp_servers", "engram")
VALUES = {"command": 'C:\\Users\\demo\\bin "x"', "args": ["--a", "é"], "tools": {"engram_commit": {"approval_mode": "prompt"}}}


def shape(value):
    """Return a value that can be compared: NaN with NaN, and 1 not with True."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else (type(value).__name__, repr(value))


def read(text):
    return tomllib.loads(text.removeprefix("\ufeff"))


def test_any_config_keeps_every_other_byte_and_comes_back():
    rolls = dice("toml")
    for _ in range(count(700, 5000)):
        text = toml_text(rolls)
        after = editor.add_table(text, PATH, VALUES, remark="Ours")
        found = read(after)
        assert found["mcp_servers"].pop("engram") == VALUES
        expected = read(text)
        expected.setdefault("mcp_servers", {})
        assert shape(found) == shape(expected)
        assert only_inserted(text, after), text
        assert editor.drop_table(after, PATH, remarks=("Ours",)) == text
        if "\r\n" in text and text.count("\r\n") == text.count("\n"):
            assert after.count("\r\n") == after.count("\n")


def test_an_entry_that_was_edited_goes_without_a_trace():
    rolls = dice("toml edited")
    for _ in range(count(400, 3000)):
        text = toml_text(rolls)
        after = editor.add_table(text, PATH, VALUES)
        after = editor.set_value(after, (*PATH, "command"), "other")
        after = editor.set_value(after, (*PATH, "cwd"), "/x")
        after = editor.set_value(after, (*PATH, "tools", "engram_commit", "approval_mode"), "approve")
        after = editor.add_subtable(after, (*PATH, "env"), {"A": "1"})
        assert read(after)["mcp_servers"]["engram"] == {"command": "other", "args": ["--a", "é"], "cwd": "/x", "env": {"A": "1"},
                                                        "tools": {"engram_commit": {"approval_mode": "approve"}}}
        assert editor.drop_table(after, PATH) == text


@pytest.mark.parametrize("text", [
    '[mcp_servers.engram]\ncommand = "x"\n',
    "[ mcp_servers . 'engram' ]\ncommand = 'x'\n",
    '["mcp_servers"."engr\\u0061m"]\ncommand = "x"\n',
    'mcp_servers.engram.command = "x"\n',
    'mcp_servers.engram = { command = "x" }\n',
    'mcp_servers = { engram = { command = "x" } }\n',
    'mcp_servers = { mine = {}, engram.command = "x", other = { a = 1 } }\n',
    '[mcp_servers]\nengram = { command = "x" } # ours\nmine = { command = "y" }\n',
    '[mcp_servers]\nmine.command = "y"\nengram.command = "x"\n"engram".args = []\n',
    '[mcp_servers.engram]\ncommand = "x"\n[mcp_servers.engram.env]\nA = "1"\n'
    '[[mcp_servers.engram.more]]\nb = 1\n[mcp_servers.mine]\ncommand = "y"\n',
])
@pytest.mark.case("CT-02", "CT-03", "CT-04")
def test_an_entry_is_found_in_every_spelling(text):
    assert editor.value(text, PATH)["command"] == "x"
    with pytest.raises(Unreadable, match="is there already"):
        editor.add_table(text, PATH, VALUES)
    changed = editor.set_value(text, (*PATH, "command"), "new")
    assert editor.value(changed, PATH)["command"] == "new"
    longer = editor.set_value(text, (*PATH, "cwd"), "/x")
    assert editor.value(longer, PATH)["cwd"] == "/x"
    left = editor.drop_table(text, PATH)
    assert "engram" not in read(left).get("mcp_servers", {})
    expected = read(text)
    del expected["mcp_servers"]["engram"]
    assert read(left).get("mcp_servers", {}) == expected["mcp_servers"]


@pytest.mark.parametrize("text, line, reason", [
    ('approval = "ask"\n[history\nkeep = 30\n', 2, "not TOML"),
    ("a = 1\na = 2\n", 2, "overwrite"),
    ("[a]\n[a]\n", 2, "twice"),
    ("a = ", 1, "not TOML"),
    ('a = "x\ny"', 1, "not TOML"),
    ("[[mcp_servers]]\na = 1\n", 1, "not a table"),
    ("mcp_servers = 3\n", 1, "not a table"),
    ("x = 1\nmcp_servers = []\n", 2, "not a table"),
    ("[mcp_servers]\nengram = 3\n", 2, "there already"),
    ("a = " + "[" * 3000 + "]" * 3000, 1, "too deeply"),
    ("a = 1\rb = 2\n", 1, "not TOML"),
])
def test_what_is_not_toml_or_stands_in_the_way_is_refused_with_its_place(text, line, reason):
    with pytest.raises(Unreadable) as caught:
        editor.add_table(text, PATH, VALUES)
    assert caught.value.line == line and reason in str(caught.value)


def test_comments_of_others_stay_beside_a_removed_block():
    text = ('# mine\n[mcp_servers.engram]\ncommand = "x"\n# inside\nargs = []\n\n'
            '  # about weather\n[mcp_servers.weather] # slow\ncommand = "wx"\n')
    assert editor.drop_table(text, PATH) == '# mine\n\n  # about weather\n[mcp_servers.weather] # slow\ncommand = "wx"\n'


def test_what_stands_between_leftover_markers_is_nobody_s_to_remove():
    # Codex drops comments when it rewrites tables, and puts new ones before a marker that survived (hosts.md, 1.3)
    text = '[mcp_servers.engram]\ncommand = "x"\n\n[mcp_servers.later]\ncommand = "y"\n# <<< engram\n'
    assert "[mcp_servers.later]\ncommand = \"y\"\n# <<< engram\n" in editor.drop_table(text, PATH)


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "\ufeff", "# only a remark", "# only a remark\n", "a = 1", "a = 1\r\n", "a = 1\n\n\n"])
def test_the_ends_of_a_file_come_back(text):
    assert editor.drop_table(editor.add_table(text, PATH, VALUES), PATH) == text
