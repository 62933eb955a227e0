"""`engram link`, `unlink` and `install` as a person runs them."""
from __future__ import annotations

import json
import os
import shutil
import stat

import pytest

import engram
from engram.link import apply, site
from tests.link.machine import Machine, open_bytes

ALL = ("claude", "codex", "gemini", "opencode", "cursor", "windsurf", "antigravity")


@pytest.fixture
def machine(tmp_path):
    return Machine(str(tmp_path))


def entry(machine, name=".mcp.json"):
    return json.loads(machine.read(name))["mcpServers"]["engram"]


def test_a_plan_changes_nothing_and_says_what_a_link_would(machine):
    machine.write("AGENTS.md", "# Mine\n")
    before = machine.tree()
    planned = machine.json("link", *ALL, "--plan")["data"]
    said = machine.run("link", *ALL, "--plan")
    assert machine.tree() == before and not os.path.exists(os.path.join(machine.home, ".engram"))
    assert "create .mcp.json" in said and "nothing was written" in said
    done = machine.json("link", *ALL)["data"]
    paths = lambda data: {(one["file"], one["action"]) for row in data["hosts"] for one in row["files"]}
    assert planned["plan"] is True and paths(planned) == paths(done)
    gone = machine.json("unlink", "all", "--plan")["data"]
    assert {path for path, action in paths(gone)} <= {path for path, _ in paths(done)} and machine.read(".mcp.json")
    machine.run("unlink", "all")
    assert machine.read("AGENTS.md") == b"# Mine\n" and machine.tree().keys() == before.keys()


def test_parts_can_be_left_out(machine):
    machine.run("link", "gemini", "--no-hooks", "--no-instructions")
    assert json.loads(machine.read(".gemini/settings.json")).keys() == {"mcpServers"} and machine.read("GEMINI.md") is None
    machine.run("link", "gemini", "--no-mcp")
    assert json.loads(machine.read(".gemini/settings.json")).keys() == {"mcpServers", "hooks"} and machine.read("GEMINI.md")
    machine.run("unlink", "gemini", "--no-hooks")
    assert json.loads(machine.read(".gemini/settings.json")).keys() == {"hooks"} and machine.read("GEMINI.md") is None
    machine.run("unlink", "gemini")
    assert os.listdir(machine.ws) == []


def test_each_part_of_the_cursor_plugin_brings_the_manifest_and_the_last_takes_it(machine):
    manifest = "~/.cursor/plugins/local/engram/.cursor-plugin/plugin.json"
    for part in ("mcp", "hooks", "instructions"):
        others = [f"--no-{other}" for other in ("mcp", "hooks", "instructions") if other != part]
        machine.run("link", "--global", "cursor", *others)
        assert json.loads(machine.read(manifest))["name"] == "engram"
    for part in ("hooks", "mcp", "instructions"):
        assert machine.read(manifest)
        machine.run("unlink", "--global", "cursor", *[f"--no-{other}" for other in ("mcp", "hooks", "instructions") if other != part])
    assert os.listdir(machine.home) == [".engram"]


def test_always_load_goes_only_where_claude_reads_it_and_no_hook_is(machine):
    machine.run("link", *ALL, "--no-hooks")
    assert entry(machine) == {"command": "engram-mcp", "args": ["--always-load"]}
    machine.run("link", "--global", *ALL, "--no-hooks")
    assert "--always-load" not in "".join(str(content) for path, content in machine.contents().items() if not path.endswith(".mcp.json"))
    said = machine.json("link", "--global", "claude", "--no-hooks")["data"]["hosts"][0]["run"]
    assert said == ["claude mcp add --scope user engram -- engram-mcp --always-load"]
    machine.run("link", "claude")  # hooks come; the flags of an entry that is there stay
    assert entry(machine)["args"] == ["--always-load"]
    machine.run("link", "claude", "--force")
    assert entry(machine) == {"command": "engram-mcp", "args": []} or entry(machine) == {"command": "engram-mcp"}
    said = machine.json("link", "--global", "claude", "--no-hooks")["data"]["hosts"][0]["run"]
    assert said == ["claude mcp add --scope user engram -- engram-mcp"]


def test_claude_s_user_level_is_a_command_to_run(machine):
    machine.write("~/.claude.json", '{"numStartups": 3}')
    before = machine.read("~/.claude.json")
    assert "claude mcp add --scope user engram -- engram-mcp" in machine.run("link", "--global", "claude")
    assert "claude mcp remove --scope user engram" in machine.run("unlink", "--global", "claude")
    assert "remove" not in machine.run("unlink", "--global", "all")
    assert machine.read("~/.claude.json") == before
    machine.write("~/.claude.json", '{"mcpServers": {"engram": {"type": "stdio", "command": "/x/engram-mcp", "args": [], "env": {}}}}')
    assert machine.json("link", "list")["data"]["hosts"][0]["user"]["status"] == "linked"
    assert "claude mcp remove --scope user engram" in machine.run("unlink", "--global", "all")


def test_codex_in_a_workspace_gets_instructions_and_is_told_where_its_servers_are(machine):
    said = machine.run("link", "codex")
    assert "engram link codex --global" in said and machine.read("AGENTS.md") and machine.read(".agents/skills/engram/SKILL.md")
    assert not os.path.exists(machine.path(".codex/config.toml")) and not os.path.exists(machine.path("~/.codex"))


def test_windsurf_in_a_workspace_is_skipped_with_the_reason(machine):
    assert "only a user-level file is documented" in machine.run("link", "windsurf", "--no-hooks", "--no-instructions")
    assert os.listdir(machine.ws) == []


def test_link_all_does_what_is_here_and_says_why_it_skips_the_rest(machine):
    machine.program("gemini")
    os.makedirs(machine.path("~/.codeium/windsurf"))
    rows = {row["host"]: row for row in machine.json("link", "all")["data"]["hosts"]}
    assert rows["gemini"]["status"] == rows["windsurf"]["status"] == "linked"
    assert {row["host"] for row in rows.values() if row["status"] == "skipped"} == set(ALL) - {"gemini", "windsurf"}
    assert all("not on this machine" in row["notes"][0] for row in rows.values() if row["status"] == "skipped")


def test_the_list_tells_how_each_host_stands(machine):
    machine.program("gemini")
    machine.run("link", "claude", "cursor")
    machine.write("~/.codex/config.toml", '[mcp_servers.engram]\ncommand = "other"\n')
    machine.write(".gemini/settings.json", "{")
    rows = {row["host"]: row for row in machine.json("link", "list")["data"]["hosts"]}
    assert rows["claude"]["workspace"]["status"] == "linked" and rows["claude"]["user"]["status"] == "not linked"
    assert rows["codex"]["user"]["status"] == "foreign" and rows["gemini"]["workspace"]["status"] == "unreadable"
    assert rows["gemini"]["found"] and not rows["opencode"]["found"]
    assert "line 1" in machine.run("link", "list")


def test_one_host_that_can_t_be_linked_holds_no_other_back(machine):
    machine.write(".gemini/settings.json", "{")
    said = machine.json("link", "claude", "gemini", "cursor", code=4)
    assert [row["status"] for row in said["data"]["hosts"]] == ["linked", "refused", "linked"]
    assert said["error"]["code"] == "ENG_HOST_CONFIG" and ".gemini/settings.json, line 1" in said["error"]["message"]
    assert machine.read("GEMINI.md") is None and machine.read(".gemini/settings.json") == b"{"
    assert machine.read(".mcp.json") and machine.read(".cursor/mcp.json")


def test_a_copy_is_kept_before_the_first_change_and_unlink_names_it(machine):
    data = b'{"mcpServers": {"mine": {"command": "x"}}}'
    machine.write(".mcp.json", data)
    machine.run("link", "claude")
    machine.run("link", "claude", "--launcher", "npx")
    said = machine.json("unlink", "claude")["data"]["hosts"][0]["files"]
    copy = next(one["copy"] for one in said if one["file"].endswith(".mcp.json"))
    assert open_bytes(copy) == data and stat.S_IMODE(os.stat(copy).st_mode) == 0o600
    assert copy.startswith(os.path.join(machine.home, ".engram", "backups"))


def test_shared_instructions_stay_until_their_last_host_goes(machine):
    machine.run("link", "codex", "opencode")
    machine.run("unlink", "codex")
    assert b"engram:start" in machine.read("AGENTS.md")
    machine.run("unlink", "opencode")
    assert machine.read("AGENTS.md") is None


def test_a_new_claude_md_keeps_the_team_s_agents_md_in_sight(machine):
    machine.write("AGENTS.md", "# House rules\n")
    machine.run("link", "claude")
    assert b"@AGENTS.md\n" in machine.read("CLAUDE.md")
    machine.run("link", "codex")
    machine.run("link", "claude")
    assert b"@AGENTS.md\n" in machine.read("CLAUDE.md")
    machine.run("unlink", "all")
    machine.write("CLAUDE.md", "# Ours\n")
    machine.run("link", "claude")
    assert b"@AGENTS.md" not in machine.read("CLAUDE.md")


def test_opencode_reads_on_where_it_read_before(machine):
    machine.write("CLAUDE.md", "# House rules\n")
    machine.run("link", "opencode")
    assert machine.read("AGENTS.md") is None and b"engram:start" in machine.read("CLAUDE.md")
    machine.run("unlink", "opencode")
    assert machine.read("CLAUDE.md") == b"# House rules\n"


def test_a_file_of_ours_that_somebody_edited_stays(machine):
    machine.run("link", "claude")
    name = ".claude/skills/engram/SKILL.md"
    edited = machine.read(name).replace(b"## Recall", b"## Our way")
    machine.write(name, edited)
    assert machine.run("link", "claude").count("stays as it is") == 1
    assert machine.run("link", "claude", "--launcher", "npx").count("stays as it is") == 1
    assert name in machine.run("unlink", "claude")
    assert machine.read(name) == edited and machine.read(".claude/commands/engram.md") is None


def test_a_crlf_checkout_of_our_files_is_still_ours(machine):
    machine.run("link", "claude")
    for name in (".claude/skills/engram/SKILL.md", ".claude/commands/engram.md", "CLAUDE.md"):
        machine.write(name, machine.read(name).replace(b"\n", b"\r\n"))
    before = machine.tree()
    machine.run("link", "claude")
    assert machine.tree() == before
    machine.run("unlink", "claude")
    assert os.listdir(machine.ws) == []


def test_a_colleague_who_did_not_link_can_unlink(machine, tmp_path):
    machine.write(".mcp.json", '{\n  "mcpServers": {\n    "mine": {"command": "x"}\n  }\n}\n')
    machine.write("AGENTS.md", "# Mine\n")
    before = machine.contents()
    machine.run("link", *ALL)
    shutil.rmtree(os.path.join(machine.home, ".engram"))
    machine.run("unlink", "all")
    files = {path: content for path, content in machine.contents().items() if content != "folder"}
    assert files == before  # of what link made, only folders are left: nobody knows whose those are


def test_without_records_what_a_colleague_added_stays(machine):
    machine.run("link", "claude", "--no-instructions", "--no-hooks")
    machine.write(".mcp.json", machine.read(".mcp.json").replace(b'"mcpServers": {', b'"mcpServers": {\n    "theirs": {"command": "x"},'))
    shutil.rmtree(os.path.join(machine.home, ".engram"))
    machine.run("unlink", "claude")
    assert json.loads(machine.read(".mcp.json")) == {"mcpServers": {"theirs": {"command": "x"}}}


def test_a_damaged_record_is_named_and_nothing_is_touched(machine):
    machine.run("link", "claude")
    path = machine.write("~/.engram/links.json", "{")
    before = machine.tree()
    assert path in machine.run("unlink", "claude", code=1)
    assert machine.tree() == before


def test_a_stale_record_takes_nothing_of_its_owner(machine):
    machine.run("link", "claude", "--no-instructions", "--no-hooks")  # link made the file
    machine.write(".mcp.json", "{}\n")  # its owner wrote it anew
    machine.run("link", "claude", "--no-instructions", "--no-hooks")
    machine.run("unlink", "claude")
    assert machine.read(".mcp.json") == b"{}\n"


def test_what_is_no_regular_file_is_refused_without_waiting(machine):
    os.mkfifo(machine.path(".mcp.json"))
    assert "not a regular file" in machine.run("link", "claude", code=5)
    os.unlink(machine.path(".mcp.json"))
    os.mkdir(machine.path(".mcp.json"))
    machine.run("link", "claude", code=5)
    assert os.listdir(machine.ws) == [".mcp.json"]


def test_a_link_to_nowhere_is_followed_to_where_it_points(machine):
    os.makedirs(machine.path("~/.gemini"))
    os.makedirs(machine.path("~/repo"))
    os.symlink("../repo/s.json", machine.path("~/.gemini/settings.json"))
    before = machine.contents()
    machine.run("link", "--global", "gemini")
    assert machine.read("~/repo/s.json") and os.path.islink(machine.path("~/.gemini/settings.json"))
    machine.run("unlink", "--global", "gemini")
    assert machine.contents() == before


def test_wrong_names_and_options_are_said_with_what_would_be_right(machine):
    assert "claude" in machine.run("link", "cloude", code=2)
    machine.run("link", code=2)
    assert "for codex" in machine.run("link", "claude", "--commit-approval", "approve", code=2)
    machine.run("link", "codex", "--global", "--commit-approval", "writes", code=2)
    assert "single file" in machine.run("link", "--global", "codex", "--launcher", "file", code=2)


def test_codex_s_approval_mode_stays_as_it_was_found(machine):
    mode = lambda: machine.read("~/.codex/config.toml").split(b"approval_mode = ")[1].split(b"\n")[0]
    machine.run("link", "--global", "codex")
    assert mode() == b'"prompt"'
    machine.run("link", "--global", "codex", "--commit-approval", "approve")
    assert mode() == b'"approve"'
    machine.run("link", "--global", "codex", "--launcher", "npx")
    assert mode() == b'"approve"' and b"npx" in machine.read("~/.codex/config.toml")


def test_an_old_opencode_is_asked_for_its_version_first(machine):
    machine.program("opencode", "#!/bin/sh\necho 1.0.185\n")
    machine.run("link", "opencode")
    assert json.loads(machine.read("opencode.json"))["mcp"]["engram"] == {"type": "local", "command": ["engram-mcp"], "enabled": True}
    machine.program("opencode", "#!/bin/sh\necho 1.18.33\n")
    machine.run("link", "opencode", "--force")
    assert json.loads(machine.read("opencode.json"))["mcp"]["engram"]["args"] == []


def test_an_opencode_that_does_not_answer_counts_as_new(machine, monkeypatch):
    monkeypatch.setattr("engram.cli.link.PROBE_SECONDS", 0.2)
    machine.program("opencode", "#!/bin/sh\nexec /bin/sleep 30\n")
    machine.run("link", "opencode")
    assert "args" in json.loads(machine.read("opencode.json"))["mcp"]["engram"]


def test_a_schema_line_that_opencode_adds_does_not_keep_the_file(machine):
    machine.run("link", "opencode", "--no-hooks", "--no-instructions")
    text = machine.read("opencode.json").replace(b"{\n", b'{\n  "$schema": "https://opencode.ai/config.json",\n', 1)
    machine.write("opencode.json", text)
    assert "unchanged" in machine.run("link", "opencode", "--no-hooks", "--no-instructions")
    machine.run("unlink", "opencode")
    assert os.listdir(machine.ws) == []


def test_linking_a_workspace_trusts_it_and_a_plan_does_not(machine):
    from engram.store import places, trust

    known = lambda: trust.read(places.find(machine.ws, env=machine.env)).workspace_trusted
    machine.run("link", "claude", "--plan")
    machine.run("link", "--global", "claude")
    assert not known()
    machine.run("link", "claude")
    assert known()


# the single file


@pytest.fixture
def as_file(built, monkeypatch):
    """Make this process look as if it ran as the single file."""
    monkeypatch.setattr(site, "archive", lambda: built)
    return built


def test_off_path_user_files_get_a_kept_copy_and_shared_ones_a_pinned_package(tmp_path, as_file):
    machine = Machine(str(tmp_path), on_path=())
    machine.run("link", "--global", "codex", "gemini")
    kept = os.path.join(machine.home, ".engram", "bin", engram.__version__)
    assert entry(machine, "~/.gemini/settings.json") == {"command": os.path.join(kept, "engram-mcp")}
    assert open_bytes(os.path.join(kept, "engram-mcp")) == open_bytes(as_file) and os.access(os.path.join(kept, "engram-mcp"), os.X_OK)
    assert os.readlink(os.path.join(kept, "engram")) == "engram-mcp"
    assert os.path.join(kept, "engram") + " hook gemini" in machine.read("~/.gemini/settings.json").decode()
    said = machine.run("link", "claude")
    package = f"@the-long-ride/engram@{engram.__version__}"
    assert entry(machine) == {"command": "npx", "args": ["-y", "--package", package, "engram-mcp"]} and package in said
    said = machine.run("link", "--global", "claude")
    assert f"claude mcp add --scope user engram -- {kept}/engram-mcp" in said


def test_with_neither_path_nor_file_hooks_are_left_out_and_always_load_comes(tmp_path):
    machine = Machine(str(tmp_path), on_path=())
    said = machine.run("link", "claude")
    assert "hooks are left out" in said and machine.read(".claude/settings.json") is None
    assert entry(machine)["args"][-1] == "--always-load"
    machine.run("unlink", "claude")
    assert os.listdir(machine.ws) == []


def test_hooks_come_out_though_engram_left_the_path(tmp_path):
    machine = Machine(str(tmp_path))
    machine.run("link", "claude")
    os.unlink(os.path.join(machine.bin, "engram"))
    machine.run("unlink", "claude")
    assert os.listdir(machine.ws) == []


def test_install_puts_both_names_into_a_folder(machine, as_file):
    folder = os.path.join(machine.home, "a b")
    said = machine.run("install", folder)
    assert open_bytes(os.path.join(folder, "engram")) == open_bytes(as_file) and "not on PATH" in said
    assert os.readlink(os.path.join(folder, "engram-mcp")) == "engram"
    assert os.access(os.path.join(folder, "engram-mcp"), os.X_OK)
    before = machine.tree()
    assert "Already there" in machine.run("install", folder)
    assert machine.tree() == before
    machine.env["PATH"] = folder + os.pathsep + machine.bin
    assert machine.json("install", folder)["diagnostics"] == []
    machine.env["PATH"] = machine.bin + os.pathsep + folder
    assert "another engram stands before" in machine.run("install", folder)
    machine.run("install")
    assert os.path.exists(os.path.join(machine.home, ".local", "bin", "engram-mcp"))


def test_install_replaces_no_program_of_others(machine, as_file):
    path = machine.write("~/bin/engram", "#!/bin/sh\necho other\n", mode=0o755)
    before = machine.tree()
    assert path in machine.run("install", machine.path("~/bin"), code=4)
    assert machine.tree() == before
    machine.run("install", machine.path("~/bin"), "--force")
    assert machine.read("~/bin/engram") == open_bytes(as_file)


def test_install_needs_the_single_file(machine):
    assert "single file" in machine.run("install", code=2)


def test_only_temporary_files_of_our_own_are_swept(machine):
    names = {".settings.tmp": True, ".x.0123456789abcdef.tmp": False, ".y.0123456789ABCDEF.tmp": True, "z.0123456789abcdef.tmp": True,
             ".0123456789abcdef.tmp": True}
    for name in names:
        os.utime(machine.write(name, "x"), (1, 1))
    machine.run("link", "claude")
    assert {name: machine.read(name) is not None for name in names} == names


def test_a_host_that_writes_at_the_same_moment_loses_nothing(machine, monkeypatch):
    machine.write(".mcp.json", '{"a": 1}')
    write, writes = apply._write, []

    def racing(change, where):
        if not writes and change.path.endswith(".mcp.json"):
            writes.append(1)
            machine.write(".mcp.json", '{"a": 1, "b": 2}')
        return write(change, where)

    monkeypatch.setattr(apply, "_write", racing)
    said = machine.json("link", "claude")["data"]["hosts"][0]["files"]
    assert [one["file"] for one in said].count(machine.path(".mcp.json")) == 1 and len(said) == 5
    assert json.loads(machine.read(".mcp.json")).keys() == {"a", "b", "mcpServers"}
    machine.run("unlink", "claude")
    assert machine.read(".mcp.json") == b'{"a": 1, "b": 2}'
