"""What hosts read about Engram: short, complete, the same in every file, and gone when the last host goes."""
from __future__ import annotations

import json
import tomllib

import pytest

from engram.cli import table as commands
from engram.editors import markdown
from engram.link import edits, instructions

MUST = ("engram_load", "engram load", "engram_save", "engram_commit", "--force", "human", "engram llm")


def test_the_block_says_what_matters_in_fifteen_lines():
    text = instructions.block("x", "claude", also=("@AGENTS.md", "")).add(None, {})
    assert len(text.splitlines()) <= 15 and all(word in text for word in MUST)
    assert text.startswith(markdown.START) and text.rstrip().endswith(markdown.END)


def test_the_three_texts_come_from_one_source():
    block, skill, command = "\n".join(instructions.BLOCK), instructions.SKILL, instructions.command("$ARGUMENTS")
    for sentence in (instructions.PROPOSE, instructions.UNAPPROVED):
        assert sentence in block and sentence in skill and sentence in command
    assert instructions.LOAD in block and instructions.LOAD in skill


def test_the_skill_has_the_head_that_hosts_want():
    lines = instructions.SKILL.splitlines()
    head = dict(line.split(": ", 1) for line in lines[1:lines.index("---", 1)])
    assert lines[0] == "---" and head["name"] == "engram" and 20 < len(head["description"]) < 1024


def test_the_command_runs_the_counted_and_the_forced_form():
    text = instructions.command("{{args}}")
    for words in ("save-session --force", "ss -f", "last 50 sessions", "--query-level 50", "engram_commit", "{{args}}"):
        assert words in text


def test_only_commands_that_exist_are_named():
    texts = ["\n".join(instructions.BLOCK), instructions.SKILL, instructions.command("")]
    pieces = [piece.split() for text in texts for piece in text.split("`")[1::2]]
    named = {words[1] for words in pieces if words[:1] == ["engram"] and len(words) > 1}
    assert named >= {"load", "search", "save", "llm"}
    assert all(commands.find(name) for name in named), named


@pytest.mark.parametrize("path", [".gemini/commands/engram.toml", ".claude/commands/engram.md"])
def test_the_command_is_in_the_host_s_format_and_still_ours(path):
    text = instructions.slash(path).add(None, {})
    assert edits.is_stamped(text)
    if path.endswith(".toml"):
        found = tomllib.loads(text)
        assert set(found) == {"description", "prompt"} and "{{args}}" in found["prompt"]
    else:
        assert text.startswith("---\ndescription: ") and "$ARGUMENTS" in text


def test_a_stamp_tells_an_edited_file_from_an_old_one():
    old = edits.stamped("what an older Engram wrote\n")
    assert edits.is_stamped(old) and edits.is_stamped(old.replace("\n", "\r\n"))
    assert not edits.is_stamped(old.replace("older", "other")) and not edits.is_stamped("") and not edits.is_stamped("x\n")
    edit = edits.whole("x", "instructions", "new\n")
    assert edit.add(old, {}) == edits.stamped("new\n") and edit.drop(old, {}) == ""
    with pytest.raises(edits.Foreign):
        edit.add(old + "mine\n", {})


def test_the_cursor_plugin_s_manifest_is_ours_in_any_version():
    edit = instructions.plugin("plugin.json", "1.0.0", "mcp")
    text = edit.add(None, {})
    assert json.loads(text)["name"] == "engram"
    assert instructions.plugin("plugin.json", "2.0.0", "hooks").drop(text, {}) == ""
    for other in ('{"name": "engram"}', "[]", "{", text.replace('"engram"', '"other"')):
        with pytest.raises(edits.Foreign):
            edit.add(other, {})


def test_what_hosts_share_goes_with_its_last_owner():
    marks, text = {}, None
    for owner in ("codex", "gemini"):
        text = instructions.skill("SKILL.md", owner).add(text, marks)
    assert marks == {"owners": ["codex", "gemini"]}
    assert instructions.skill("SKILL.md", "gemini").drop(text, marks) == text
    assert instructions.skill("SKILL.md", "codex").drop(text, marks) == ""
