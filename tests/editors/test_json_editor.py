"""The JSON and JSONC editor: whatever is written in a file, an edit inserts and takes out, and moves nothing."""
from __future__ import annotations

import json

import pytest

from engram.editors import json as editor
from engram.editors.source import Unreadable, decode
from tests.editors.configs import JsonMaker, only_inserted, read_jsonc
from tests.trials import count, dice

ENTRY = {"command": "engram-mcp", "args": ["--x", "é"]}
PATH = ["mcpServers", "engram"]
DIALECTS = {"strict": editor.STRICT, "comments": editor.COMMENTS, "jsonc": editor.JSONC}


def there_and_back(text, dialect, path=PATH):
    """Put an entry in and take it out again; return what stood there in between."""
    marks = {}
    after = editor.put(text, path, ENTRY, dialect, marks)
    assert editor.drop(after, path, dialect, json.loads(json.dumps(marks))) == text
    return after


@pytest.mark.parametrize("name", DIALECTS)
def test_any_config_keeps_every_other_byte_and_comes_back(name):
    dialect, rolls = DIALECTS[name], dice(f"json {name}")
    for _ in range(count(700, 5000)):
        text = JsonMaker(rolls, comments=dialect.comments, trailing=dialect.trailing, servers="mcpServers").text()
        before = read_jsonc(text)
        after = there_and_back(text, dialect)
        assert only_inserted(text, after), text
        now = read_jsonc(after)
        assert dict(dict(now)["mcpServers"])["engram"] == read_jsonc(json.dumps(ENTRY))
        had = "mcpServers" in dict(before)
        assert (now.without(*PATH) if had else now.without("mcpServers")) == before
        if "\r\n" in text and text.count("\r\n") == text.count("\n"):
            assert after.count("\r\n") == after.count("\n")


def test_several_edits_of_one_file_come_out_in_any_order():
    rolls = dice("json orders")
    for _ in range(count(500, 4000)):
        text = JsonMaker(rolls, comments=True, trailing=True, servers="mcpServers").text()
        if "hooks" in dict(read_jsonc(text)):
            continue
        marks, now = {}, text
        steps = [("put", PATH), ("append", ["hooks", "Start"]), ("append", ["hooks", "Prompt"]), ("put", ["mcp", "engram"])]
        steps = [step for step in steps if step[1][0] not in ("mcp",) or "mcp" not in dict(read_jsonc(text))]
        for kind, path in steps:
            now = (editor.put if kind == "put" else editor.append)(now, path, ENTRY, editor.JSONC, marks)
        rolls.shuffle(steps)
        for kind, path in steps:
            marks = json.loads(json.dumps(marks))
            now = (editor.drop(now, path, editor.JSONC, marks) if kind == "put"
                   else editor.drop_items(now, path, lambda value: value == ENTRY, editor.JSONC, marks))
        assert now == text


def test_without_marks_an_undo_only_leaves_what_link_made_empty():
    after = editor.put('{\n  "a": 1\n}\n', PATH, ENTRY, editor.STRICT, {})
    assert editor.drop(after, PATH, editor.STRICT, {}) == '{\n  "a": 1,\n  "mcpServers": {}\n}\n'


def test_old_marks_don_t_take_what_its_owner_wrote_since():
    marks = {}
    editor.put('{"a": 1}', PATH, ENTRY, editor.STRICT, marks)
    text = '{"a": 1, "mcpServers": {}}'  # linked, taken out by hand, written anew by its owner
    after = editor.put(text, PATH, ENTRY, editor.STRICT, marks)
    assert editor.drop(after, PATH, editor.STRICT, marks) == text


@pytest.mark.parametrize("text, line, reason", [
    ('{\n  "a": 1\n  "b": 2\n}', 3, "comma"),
    ('{"mcpServers": {', 1, "never closed"),
    ("[]\n", 1, "not an object"),
    ('"text"', 1, "not an object"),
    ('{"a": 1,}', 1, "comma before"),
    ('{\n// x\n}', 2, "comment"),
    ('{"a": tru}', 1, "not a JSON value"),
    ('{"a": 01}', 1, "not a JSON value"),
    ('{"a": "x\n"}', 1, "never closed"),
    ('{"a": "\\q"}', 1, "escape"),
    ('{"a" 1}', 1, "colon"),
    ('{"a":}', 1, "value"),
    ('{a: 1}', 1, "double quotes"),
    ("{'a': 1}", 1, "double quotes"),
    ('{"a": 1} x', 1, "more text"),
    ('{"a": 1}}', 1, "more text"),
    ('{"a": [1}', 1, "missing"),
    ('{,}', 1, "double quotes"),
    ('{"a": NaN}', 1, "not a JSON value"),
    ('{"mcpServers": []}', 1, "not an object"),
    ('{"mcpServers": null}', 1, "not an object"),
    ('{"mcpServers": {}, "mcpServers": {}}', 1, '"mcpServers" stands there twice'),
    ('{"mcpServers": {}, "mcp\\u0053ervers": {}}', 1, '"mcpServers" stands there twice'),
    ('{"mcpServers": {"engram": 1}}', 1, "there already"),
])
def test_what_is_not_json_or_ambiguous_is_refused_with_its_place(text, line, reason):
    with pytest.raises(Unreadable) as caught:
        editor.put(text, PATH, ENTRY, editor.STRICT, {})
    assert caught.value.line == line and reason in str(caught.value)


@pytest.mark.parametrize("text, line, reason", [
    ('{\n"a": 1, /* open\n}', 2, "never closed"),
    ('{"a": 1,, "b": 2}', 1, "double quotes"),
    ('{"a": 1 /x/ }', 1, "`/`"),
    ('{"a": 1 // old Mac\rline\n}', 1, "carriage return"),
])
def test_what_is_not_jsonc_is_refused_too(text, line, reason):
    with pytest.raises(Unreadable) as caught:
        editor.put(text, PATH, ENTRY, editor.JSONC, {})
    assert caught.value.line == line and reason in str(caught.value)


@pytest.mark.parametrize("data, reason", [
    (b"\0" * 100, "zero bytes"), (b'{"a": "\0"}', "zero byte"), ('{"a": 1}'.encode("utf-16"), "UTF-16"), (b'{"a": "\xe9"}', "not UTF-8"),
])
def test_bytes_that_are_no_text_are_refused(data, reason):
    with pytest.raises(Unreadable, match=reason):
        decode(data)


@pytest.mark.parametrize("depth", [50, 5000, 40_000])
def test_deep_nesting_is_no_harm(depth):
    text = '{"deep": ' + "[" * depth + "]" * depth + "}"
    assert json.loads(editor.put("{}", PATH, ENTRY, editor.STRICT, {}))["mcpServers"]["engram"] == ENTRY
    assert there_and_back(text, editor.STRICT).startswith(text[:-1])


def test_a_large_config_is_edited_in_a_moment():
    text = json.dumps({f"key {n}": {"list": list(range(20)), "text": "x" * 50} for n in range(1000)}, indent=2)
    assert len(text) > 200_000
    there_and_back(text, editor.STRICT)


@pytest.mark.parametrize("before, after", [
    ("{}", '{\n  "mcpServers": {\n    "engram": {\n      "command": "x"\n    }\n  }\n}'),
    ('{"a":1}', '{"a":1,"mcpServers":{"engram":{"command":"x"}}}'),
    ('{ "a": 1 }', '{ "a": 1, "mcpServers": {"engram": {"command": "x"}} }'),
    ('{"mcpServers": {}}', '{"mcpServers": {"engram": {"command": "x"}}}'),
    ('{\n\t"mcpServers": {\n\t\t"mine": {}\n\t}\n}\n',
     '{\n\t"mcpServers": {\n\t\t"mine": {},\n\t\t"engram": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n'),
    ('{\r\n    "a": 1\r\n}',
     '{\r\n    "a": 1,\r\n    "mcpServers": {\r\n        "engram": {\r\n            "command": "x"\r\n        }\r\n    }\r\n}'),
    ('{\n  "a": 1 // why\n}', '{\n  "a": 1, // why\n  "mcpServers": {\n    "engram": {\n      "command": "x"\n    }\n  }\n}'),
    ('{\n  "a": 1,\n}', '{\n  "a": 1,\n  "mcpServers": {\n    "engram": {\n      "command": "x"\n    }\n  },\n}'),
    ("{ // none yet\n}", '{ // none yet\n  "mcpServers": {\n    "engram": {\n      "command": "x"\n    }\n  }\n}'),
])
def test_an_entry_is_written_in_the_style_found_there(before, after):
    assert editor.put(before, PATH, {"command": "x"}, editor.JSONC, {}) == after


@pytest.mark.parametrize("text, found", [("", None), ("{}", None), ('{"a": null}', None), ('{"a": {"b": 1}}', 1),
                                         ('{"a": {"b": [1, 2]},}', [1, 2]),
                                         ('// x\n{"a": {"b": "c"}}', "c"), ('\ufeff{"a": {"b": 2}}', 2)])
def test_a_value_is_looked_up_in_strict_and_other_json(text, found):
    assert editor.value(text, ["a", "b"], editor.JSONC) == found


def test_looking_into_a_text_of_another_shape_says_so():
    for text in ("[]", "3", '{"a": []}', '{"a": "x"}'):
        with pytest.raises(Unreadable, match="not an object"):
            editor.value(text, ["a", "b"], editor.STRICT)


def test_looking_into_a_large_file_takes_a_moment():
    text = '{"history": [' + ", ".join(['{"x": [1, 2, 3], "y": "z"}'] * 200_000) + '], "a": {"b": 1}}'
    assert editor.value(text, ["a", "b"], editor.STRICT) == 1


def test_replacing_a_value_touches_nothing_else():
    text = '{\n  "mcpServers": {\n    "engram": {"command": "old", "env": {"A": "1"}}, // mine\n  },\n}\n'
    assert editor.replace(text, [*PATH, "command"], "new", editor.JSONC) == text.replace('"old"', '"new"')
    assert editor.replace(text, PATH, ENTRY, editor.JSONC).endswith("}, // mine\n  },\n}\n")


def test_what_somebody_wrote_around_our_entry_stays():
    marks = {}
    text = editor.put('{\n  "a": 1\n}\n', PATH, ENTRY, editor.JSONC, marks)
    text = text.replace('    "engram"', '    // ours?\n    "engram"').replace("    }\n  }", '    }, /* after */\n    "later": {}\n  }')
    left = editor.drop(text, PATH, editor.JSONC, marks)
    assert "// ours?" in left and "/* after */" in left and read_jsonc(left) == [("a", "1"), ("mcpServers", [("later", [])])]
    assert "engram" not in left


def test_a_comment_never_swallows_what_follows_a_removed_entry():
    text = '{"a": 1, // remark\n"mcpServers": {"engram": {}} /* x */ }'
    assert read_jsonc(editor.drop(text, PATH, editor.JSONC, {"made": [["mcpServers"]]})) == [("a", "1")]
