"""`engram upgrade`: brings ours up to date, at both levels, and touches nothing else."""
import io
import json
import os
import sys

import pytest

from engram.cli import link, main, upgrade
from engram.cli.context import Context

OLD = {"command": "npx", "args": ["-y", "--package", "@the-long-ride/engram@0.0.1", "engram-mcp"]}
HOSTS = ("claude", "codex", "gemini", "cursor", "opencode", "windsurf")


@pytest.fixture
def world(tmp_path, clean_environment, monkeypatch, built):
    """Return a workspace, Engram on PATH, and functions that run commands and take pictures of all files."""
    class World:
        home, root, bin = clean_environment, tmp_path / "project", tmp_path / "bin"

        def run(self, command, *words):
            run = {"upgrade": upgrade.run_upgrade, "link": link.run_link}[command]
            context = Context(stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), cwd=str(self.root))
            args = main.parser_of(main.table.find(command)).parse_args(words)
            context.global_only = args.global_only
            return run(context, args)

        def picture(self):
            found = {}
            for top in (self.home, self.root):
                for folder, _, names in os.walk(top):
                    for name in names:
                        path = os.path.join(folder, name)
                        with open(path, "rb") as file:
                            found[path] = file.read(), os.stat(path).st_mtime_ns
            return found

        def write(self, name, text):
            path = os.path.join(self.home, name[2:]) if name.startswith("~/") else self.root / name
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return path

    made = World()
    (made.root / ".git").mkdir(parents=True), made.bin.mkdir()
    for name in ("engram", "engram-mcp"):
        os.symlink(built, made.bin / name)
    os.symlink(os.path.realpath(sys.executable), made.bin / "python3")
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return made


def test_where_nothing_of_ours_is_nothing_is_written(world):
    world.write("~/.gemini/settings.json", '{"theme": "dark"}')
    world.write("CLAUDE.md", "# Mine\n")
    world.write("~/.codex/config.toml", 'model = "gpt-5"\n')
    before = world.picture()
    assert world.run("upgrade").data["files"] == [] and world.picture() == before


def test_what_is_up_to_date_keeps_every_byte_and_its_time(world):
    world.run("link", *HOSTS), world.run("link", "--global", *HOSTS)
    before = world.picture()
    assert "up to date" in world.run("upgrade").text and world.picture() == before


@pytest.mark.parametrize("host, name, holder", [("claude", ".mcp.json", "mcpServers"), ("gemini", "~/.gemini/settings.json", "mcpServers"),
                                                ("cursor", ".cursor/mcp.json", "mcpServers"),
                                                ("windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers")])
def test_an_older_pin_is_pinned_anew_and_the_rest_of_the_file_stays(world, host, name, holder):
    path = world.write(name, json.dumps({holder: {"mine": {"command": "x"}, "engram": {**OLD, "env": {"A": "b"}}}, "z": 1}, indent=4))
    result = world.run("upgrade")
    assert [(row["host"], row["file"]) for row in result.data["files"]] == [(host, str(path))]
    with open(path) as file:
        found = json.load(file)
    entry = found[holder].pop("engram")
    assert [entry["command"], *entry.get("args", [])] == ["engram-mcp"] and entry["env"] == {"A": "b"}
    assert found == {holder: {"mine": {"command": "x"}}, "z": 1}


def test_a_plan_names_the_files_and_writes_nothing(world):
    path = world.write(".mcp.json", json.dumps({"mcpServers": {"engram": OLD}}))
    before = world.picture()
    result = world.run("upgrade", "--plan")
    assert [row["file"] for row in result.data["files"]] == [str(path)] and "would be changed" in result.text and world.picture() == before


def test_only_the_parts_that_are_there_are_refreshed(world):
    world.run("link", "claude", "--no-hooks", "--no-instructions")
    world.write(".mcp.json", json.dumps({"mcpServers": {"engram": OLD}}))
    world.run("upgrade")
    assert sorted(os.listdir(world.root)) == [".git", ".mcp.json"] and "0.0.1" not in (world.root / ".mcp.json").read_text()


def test_an_instructions_block_of_an_older_version_is_replaced_in_place(world):
    path = world.write("AGENTS.md", "# Mine\n\n<!-- engram:start -->\nold words\n<!-- engram:end -->\n\nMore of mine.\n")
    world.run("upgrade")
    with open(path) as file:
        text = file.read()
    assert text.startswith("# Mine\n\n<!-- engram:start -->\n") and text.endswith("<!-- engram:end -->\n\nMore of mine.\n")
    assert "old words" not in text


def test_hooks_keep_their_place_and_only_a_kept_copy_of_another_version_moves(world):
    older = world.write("~/.engram/bin/0.0.1/engram", "#!/bin/sh\n")
    line = f"{older} hook codex"
    hooks = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": line, "timeout": 10}]}, {"hooks": []}],
                       "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "engram hook codex", "timeout": 5}]}]}}
    path = world.write("~/.codex/hooks.json", json.dumps(hooks, indent=2))
    world.run("link", "codex", "--global", "--no-mcp", "--no-instructions")
    with open(path) as file:
        assert json.load(file) == hooks
    world.run("upgrade")
    hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"] = "engram hook codex"
    with open(path) as file:
        assert json.load(file) == hooks


def test_a_file_that_cannot_be_edited_is_told_and_the_others_are_done(world):
    world.write("~/.gemini/settings.json", '{"mcpServers": {"engram": {}}, oops')
    path = world.write(".mcp.json", json.dumps({"mcpServers": {"engram": OLD}}))
    result = world.run("upgrade")
    assert [row["file"] for row in result.data["files"]] == [str(path)] and result.exit_code == 1
    assert result.diagnostics[0]["id"] == "upgrade.refused" and result.diagnostics[0]["file"].endswith(".gemini/settings.json")
    world.write("~/.gemini/settings.json", "{oops")  # and one that has nothing of ours is nobody's fault
    assert world.run("upgrade").exit_code == 0


def test_json_says_what_was_changed(run, tmp_path):
    answer = json.loads(run("upgrade", "--json", cwd=tmp_path).stdout)
    assert answer["ok"] and answer["data"] == {"plan": False, "files": []}
