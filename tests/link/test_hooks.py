"""The hooks in hosts' configs: their shape, whose they are, and that nothing else moves."""
import json
import os

import pytest

from engram.editors import json as editor
from engram.hosts import table
from engram.link import hooks, site
from tests.trials import count, dice

GROUPED = ("claude", "codex", "gemini")
FLAT = ("cursor", "windsurf")


def link(host, text, words=("engram",), marks=None, keep=lambda program: True):
    marks = {} if marks is None else marks
    return hooks.link(text, host, hooks.command(host, list(words)), hooks.SHAPES[host].dialect, marks, keep=keep)


def unlink(host, text, marks=None):
    return hooks.unlink(text, host, hooks.SHAPES[host].dialect, {} if marks is None else marks)


def handlers(host, text):
    """Return {event: [handler]} of a host's file, whatever the shape."""
    found = json.loads(text)["hooks"]
    return {event: [inner for item in items for inner in (item["hooks"] if host in GROUPED else [item])] for event, items in found.items()}


@pytest.mark.parametrize("host, expected", [
    ("claude", {"SessionStart": {"type": "command", "command": "engram hook claude", "timeout": 10},
                "UserPromptSubmit": {"type": "command", "command": "engram hook claude", "timeout": 10}}),
    ("codex", {"SessionStart": {"type": "command", "command": "engram hook codex", "timeout": 10},
               "UserPromptSubmit": {"type": "command", "command": "engram hook codex", "timeout": 10}}),
    ("gemini", {"SessionStart": {"name": "engram", "type": "command", "command": "engram hook gemini", "timeout": 10000},
                "BeforeAgent": {"name": "engram", "type": "command", "command": "engram hook gemini", "timeout": 10000}}),
    ("cursor", {"sessionStart": {"command": "engram hook cursor", "timeout": 10}}),
    ("windsurf", {"pre_user_prompt": {"command": "engram hook windsurf", "show_output": True}}),
])
def test_each_host_gets_its_own_shape_and_its_own_unit_of_time(host, expected):
    text = link(host, "")
    assert handlers(host, text) == {event: [handler] for event, handler in expected.items()}
    assert set(json.loads(text)) == ({"version", "hooks"} if host == "cursor" else {"hooks"})


@pytest.mark.parametrize("host", hooks.SHAPES)
def test_linking_again_leaves_every_byte_even_when_engram_moved(host):
    marks = {}
    once = link(host, '{\n    "theme": "dark"\n}\n', marks=marks)
    assert link(host, once, marks=marks) == once
    assert link(host, once, ("/elsewhere/engram",), marks) == once


@pytest.mark.parametrize("host", hooks.SHAPES)
def test_a_hook_that_no_longer_runs_is_mended_where_it_stands(host):
    once = link(host, "{}", ("/gone/engram",))
    event = hooks.SHAPES[host].events[0]
    group = {"hooks": [{"type": "command", "command": "mine"}]} if host in GROUPED else {"command": "mine"}
    text = editor.append(once, ["hooks", event], group, hooks.SHAPES[host].dialect, {})
    mended = link(host, text, keep=lambda program: program == ["engram"])
    assert mended == text.replace("/gone/engram hook", "engram hook")


@pytest.mark.parametrize("host", GROUPED)
def test_the_hooks_of_the_earlier_implementation_are_replaced_by_ours(host):
    old = {"name": "engram-auto-load", "type": "command", "command": f"engram agent-hook --host {host}", "timeout": 10000}
    text = json.dumps({"hooks": {event: [{"matcher": "*", "hooks": [old]}] for event in hooks.SHAPES[host].events}}, indent=2)
    found = handlers(host, link(host, text))
    assert all(items == [hooks.handler(host, f"engram hook {host}")] for items in found.values())
    assert json.loads(unlink(host, text))["hooks"] == {event: [] for event in hooks.SHAPES[host].events}


def test_of_two_hooks_of_ours_for_one_event_one_stays_and_its_neighbours_too():
    mine = {"type": "command", "command": "mine"}
    ours, other = hooks.handler("claude", "engram hook claude"), hooks.handler("claude", "/opt/engram hook claude")
    events = {"SessionStart": [{"hooks": [mine, ours, other]}, {"hooks": [other]}, {"hooks": [mine]}],
              "UserPromptSubmit": [{"hooks": [ours, other]}]}
    linked = json.loads(link("claude", json.dumps({"hooks": events})))["hooks"]
    assert linked == {"SessionStart": [{"hooks": [mine, ours]}, {"hooks": [mine]}], "UserPromptSubmit": [{"hooks": [ours]}]}
    assert json.loads(unlink("claude", json.dumps({"hooks": events})))["hooks"] == {
        "SessionStart": [{"hooks": [mine]}, {"hooks": [mine]}], "UserPromptSubmit": []}


def test_a_hook_of_ours_under_an_event_that_we_no_longer_use_is_taken_out_too():
    text = json.dumps({"hooks": {"Stop": [{"hooks": [hooks.handler("claude", "engram hook claude")]}]}})
    assert json.loads(unlink("claude", text)) == {"hooks": {"Stop": []}}


@pytest.mark.parametrize("line, program", [
    ("engram hook claude", ["engram"]), ("/opt/my tools/engram hook claude", None),
    ("'/opt/my tools/engram' hook claude", ["/opt/my tools/engram"]),
    ("'/it'\"'\"'s/engram' hook claude", ["/it's/engram"]),
    ('"C:\\Program Files\\engram.exe" hook claude', ["C:\\Program Files\\engram.exe"]),
    ('C:\\Python\\python.exe "C:\\my data\\engram" hook claude', ["C:\\Python\\python.exe", "C:\\my data\\engram"]),
    ("cmd /c engram hook claude", ["cmd", "/c", "engram"]), ("python3 -I /x/engram hook claude", ["python3", "-I", "/x/engram"]),
    ("engram agent-hook --host claude", ["engram"]), ("engram-mcp hook claude", ["engram-mcp"]),
    ("engram hook claude; rm -rf /", None), ("engram hook", None), ("engram load x", None), ("my-engram hook claude", None),
    ("bash -c 'engram hook claude'", None), ("echo engram hook claude", None), ("", None), (None, None), (7, None), (["engram"], None),
])
def test_a_hook_is_ours_when_it_runs_engrams_hook_and_nothing_else(line, program):
    assert hooks.program_of(line) == program


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("words", [["engram"], ["/home/sam field/.engram/bin/0.1.0/engram"], ["C:\\a b\\python.exe", "C:\\it's\\engram"]])
def test_the_words_of_a_command_line_are_found_again(words, windows):
    assert hooks.program_of(hooks.command("claude", words, windows=windows)) == words or "'" in words[-1] and windows


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
def test_a_shell_splits_a_command_line_into_its_words():
    import shlex

    words = ["/home/sam's own $HOME/`x`/engram"]
    assert shlex.split(hooks.command("codex", words)) == [*words, "hook", "codex"]


ODD = ['{"hooks": []}', '{"hooks": null}', '{"hooks": {"SessionStart": {}}}', '{"hooks": {"sessionStart": 7}}', '[]',
       '{"hooks": {"pre_user_prompt": "x"}}',
       '{"hooks": {"BeforeAgent": null, "UserPromptSubmit": null}}']


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("host", hooks.SHAPES)
def test_a_file_whose_hooks_are_not_what_they_should_be_is_refused_or_edited_beside_them(host, text):
    marks = {}
    try:
        linked = link(host, text, marks=marks)
    except editor.Unreadable:
        assert unlink(host, text) == text
    else:
        assert unlink(host, linked, marks) == text


def some_config(dice, host):
    """Return the text of a config with hooks of others, comments and styles as people have them."""
    def handler():
        made = {"type": "command", "command": dice.choice(["mine", "engram hook", "bash -c 'x'", "é\u2028", "engram hook claude && y"])}
        if dice.random() < 0.3:
            made["timeout"] = dice.choice([5, 1.50, 60000])
        return made

    def item():
        if host not in GROUPED:
            return handler()
        group = {"hooks": [handler() for _ in range(dice.randrange(3))]}
        return {"matcher": dice.choice(["", "*", "startup"]), **group} if dice.random() < 0.5 else group

    names = [*hooks.SHAPES[host].events, "Stop", "PreToolUse"]
    values = [1, "x", [], {}, None, [1, {"a": "b"}], {"engram": {"hooks": []}}]
    value = {key: dice.choice(values) for key in dice.sample("abcdef", dice.randrange(4))}
    if dice.random() < 0.7:
        value["hooks"] = {name: [item() for _ in range(dice.randrange(3))] for name in dice.sample(names, dice.randrange(len(names) + 1))}
    if dice.random() < 0.4:
        value["version"] = 1
    keys = list(value)
    dice.shuffle(keys)
    text = json.dumps({key: value[key] for key in keys}, indent=dice.choice([None, 2, 4, "\t"]), ensure_ascii=dice.random() < 0.5)
    if dice.random() < 0.3:
        text = text.replace("\n", "\r\n")
    if hooks.SHAPES[host].dialect.comments and dice.random() < 0.5:
        text = dice.choice(["// top\n", "/* a, \"b\" */ "]) + text + dice.choice(["", "\n// end\n", " /* end */"])
    return dice.choice(["", "", "\ufeff"]) + text + dice.choice(["", "\n", "\n\n"])


@pytest.mark.parametrize("host", hooks.SHAPES)
def test_link_then_unlink_gives_back_every_byte_of_any_config(host):
    rolls = dice("hooks " + host)
    for _ in range(count(150, 2000)):
        text, marks = some_config(rolls, host), {}
        linked = link(host, text, marks=marks)
        assert len(hooks.commands(linked, host, hooks.SHAPES[host].dialect)) >= len(hooks.SHAPES[host].events)
        assert link(host, linked, marks=marks) == linked
        marks = json.loads(json.dumps(marks))  # they are kept as JSON between the two
        assert unlink(host, linked, marks) == text, text


@pytest.mark.parametrize("host", hooks.SHAPES)
def test_without_the_record_of_the_link_the_other_values_still_come_back(host):
    rolls = dice("hooks without marks " + host)
    for _ in range(count(50, 500)):
        text = some_config(rolls, host)
        dialect = hooks.SHAPES[host].dialect
        left = editor.Document(unlink(host, link(host, text)), dialect).value((), {})
        kept = editor.Document(text, dialect).value((), {})
        empty = {key: [] for key in hooks.SHAPES[host].events}
        for value in (left, kept):
            value["hooks"] = {**empty, **value.get("hooks", {})}
            value["version"] = 1
        assert left == kept


def some_site(home, **more):
    return site.Site("/project", str(home / ".engram"), {"HOME": "/home/sam", "PATH": str(home / "bin")}, platform="linux", **more)


def test_every_host_with_hooks_has_an_edit_for_the_workspace_and_one_for_the_user(tmp_path):
    found, user = ({host.name: [edit.path for edit in hooks.edits(host, where, ["engram"])] for host in table.HOSTS}
                   for where in (some_site(tmp_path), some_site(tmp_path, user=True)))
    assert {name: paths for name, paths in found.items() if paths} == {
        "claude": ["/project/.claude/settings.json"], "codex": ["/project/.codex/hooks.json"],
        "gemini": ["/project/.gemini/settings.json"],
        "cursor": ["/project/.cursor/hooks.json"], "windsurf": ["/project/.windsurf/hooks.json"],
        "opencode": ["/project/.opencode/plugins/engram.js"]}
    assert {name: paths for name, paths in user.items() if paths} == {
        "claude": ["/home/sam/.claude/settings.json"], "codex": ["/home/sam/.codex/hooks.json"],
        "gemini": ["/home/sam/.gemini/settings.json"],
        "cursor": ["/home/sam/.cursor/plugins/local/engram/hooks/hooks.json"],
        "windsurf": ["/home/sam/.codeium/windsurf/hooks.json"],
        "opencode": ["/home/sam/.config/opencode/plugins/engram.js"]}


def test_an_upgrade_moves_a_hook_from_an_older_copy_and_a_plain_link_does_not(tmp_path):
    host, older = table.find("codex"), tmp_path / "older"
    older.mkdir(), (tmp_path / "bin").mkdir()
    (older / "engram").write_text("#!/bin/sh\n")
    old, wanted = link("codex", "", (str(older / "engram"),)), ["/newer/engram"]
    assert hooks.edits(host, some_site(tmp_path), wanted)[0].add(old, {}) == old
    assert hooks.edits(host, some_site(tmp_path, refresh=True), wanted)[0].add(old, {}) == old.replace(str(older), "/newer")
    by_name = link("codex", "")
    assert hooks.edits(host, some_site(tmp_path), wanted)[0].add(by_name, {}) != by_name  # it is not on PATH
    os.symlink(older / "engram", tmp_path / "bin" / "engram")
    (older / "engram").chmod(0o755)
    assert hooks.edits(host, some_site(tmp_path), wanted)[0].add(by_name, {}) == by_name
    assert hooks.edits(host, some_site(tmp_path, refresh=True), wanted)[0].add(by_name, {}) == by_name


def test_whether_a_file_holds_a_hook_of_ours():
    assert hooks.installed("claude", link("claude", "{}"))
    assert not hooks.installed("claude", "{}") and not hooks.installed("claude", "") and not hooks.installed("claude", None)
