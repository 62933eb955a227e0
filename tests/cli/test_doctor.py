"""`engram doctor`: each finding by its stable id, from files as hosts and people write them."""
import io
import json
import os
import shutil
import sqlite3
import sys

import pytest

import engram
from engram.cli import doctor, doctor_server, link, main, upgrade
from engram.cli.context import Context
from engram.link import opencode_plugin
from engram.store import places, trust, writing

PIN = f"@the-long-ride/engram@{engram.__version__}"
OURS = {"command": "engram-mcp"}


@pytest.fixture
def world(tmp_path, clean_environment, monkeypatch, built):
    """Return a workspace with a store, Engram on PATH, and a function that runs the doctor: rows by id."""
    root, bin = tmp_path / "project", tmp_path / "bin"
    (root / ".git").mkdir(parents=True), bin.mkdir()
    for name in ("engram", "engram-mcp"):
        os.symlink(built, bin / name)
    os.symlink(os.path.realpath(sys.executable), bin / "python3")
    monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")
    place = places.find(str(root))
    writing.make(place.workspace)
    trust.trust_workspace(place)

    class World:
        home, path = clean_environment, root

        def write(self, name, value):
            target = os.path.join(self.home, name[2:]) if name.startswith("~/") else root / name
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode())

        def run(self, command, *words):
            self.context = Context(stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), cwd=str(root))
            parser = main.parser_of(main.table.find(command))
            args = parser.parse_args(words)
            self.context.global_only = args.global_only
            run = {"doctor": doctor.run_doctor, "upgrade": upgrade.run_upgrade, "link": link.run_link, "unlink": link.run_unlink}[command]
            return run(self.context, args)

        def doctor(self, *words, start=False):
            self.result = self.run("doctor", *words, *([] if start else ["--no-start"]))
            rows = {}
            for row in self.result.data["findings"]:
                rows.setdefault(row["id"], []).append(row)
            return rows

        def bad(self, *words, **more):
            return {id for id, rows in self.doctor(*words, **more).items() for row in rows if row["severity"] != "info"}

    return World()


def test_a_fresh_store_on_a_machine_in_order_has_nothing_wrong(world):
    assert world.bad("--strict") == set()
    assert world.result.exit_code == 0 and world.result.ok
    assert all(row["message"] and "id" in row for row in world.result.data["findings"])


@pytest.mark.parametrize("level", [(), ("--global",)])
def test_after_link_every_server_answers_and_every_hook_runs(world, level):
    for host in ("claude", "codex", "gemini", "cursor", "opencode", "windsurf"):
        assert world.run("link", host, *level).ok
    rows = world.doctor("--strict", start=True)
    assert [row for found in rows.values() for row in found if row["severity"] != "info"] == []
    assert len(rows["host.registration"]) == (5 if level else 4)  # Codex and Windsurf have a user file only, Claude's is its own
    assert all(f"engram {engram.__version__}" in row["message"] for row in rows["host.registration"])
    assert len(rows["host.hooks"]) == 6


def test_an_entry_that_cannot_start_and_one_that_does_not_answer_are_errors(world):
    world.write(".mcp.json", {"mcpServers": {"engram": {"command": "/gone/engram-mcp"}}})
    assert world.bad() == {"host.command"} and world.result.exit_code == 1
    broken = world.path.parent / "broken" / "engram-mcp"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    broken.chmod(0o755)
    os.unlink(world.path / ".mcp.json")
    world.write("~/.gemini/settings.json", {"mcpServers": {"engram": {"command": str(broken)}}})
    found, = world.doctor(start=True)["host.server"]
    assert found["severity"] == "error" and "out of order" in found["message"] and found["file"].endswith(".gemini/settings.json")


def test_a_program_in_the_workspace_that_calls_itself_engram_is_not_started(world):
    trap = world.path / "engram-mcp"
    trap.write_text(f"#!/bin/sh\ntouch {world.path}/sprung\n")
    trap.chmod(0o755)
    for command, args in (("./engram-mcp", []), (str(trap), []), ("python3", ["engram-mcp"]),
                          ("npx", ["-y", "--package", "./engram-mcp", PIN, "engram-mcp"]), ("engram-mcp", ["$(touch sprung)", "x;y"])):
        world.write(".mcp.json", {"mcpServers": {"engram": {"command": command, "args": args}}})
        world.doctor(start=True)
        assert not (world.path / "sprung").exists()
        assert world.bad(start=True) <= {"host.registration", "host.foreign", "host.command", "host.version"} and world.bad(start=True)
    world.write(".mcp.json", {"mcpServers": {"engram": {"command": "engram-mcp", "env": {"PATH": str(world.path)}}}})
    assert world.bad(start=True) == set() and not (world.path / "sprung").exists()


@pytest.mark.parametrize("words, own", [
    (["engram-mcp"], True), (["engram-mcp", "--always-load"], True), (["engram", "mcp", "--surface", "engram"], True),
    (["npx", "-y", "--package", PIN, "engram-mcp"], True), (["cmd", "/c", "npx", "-y", "--package", PIN, "engram-mcp"], True),
    (["npx", "-y", "--package", "@the-long-ride/engram", "engram-mcp"], False),
    (["npx", "-y", "--package", "evil", "engram-mcp"], False),
    (["/kept/0.1.0/engram-mcp"], True), (["/kept/../other/engram-mcp"], False), (["engram", "hook", "claude"], False),
    (["sh", "-c", "engram"], False),
])
def test_of_a_workspaces_entries_only_our_own_launchers_are_started(words, own):
    assert doctor_server.is_own(words, {}, "/kept") is own


def test_pins_of_another_version_and_no_pin_at_all(world):
    for name, package in ((".mcp.json", "@the-long-ride/engram@0.0.1"), (".cursor/mcp.json", "@the-long-ride/engram")):
        world.write(name, {"mcpServers": {"engram": {"command": "npx", "args": ["-y", "--package", package, "engram-mcp"]}}})
    rows = world.doctor()
    assert "version 0.0.1" in rows["host.version"][0]["message"] and rows["host.version"][0]["file"].endswith(".mcp.json")
    assert rows["host.unpinned"][0]["file"].endswith("cursor/mcp.json")
    kept = os.path.join(world.home, ".engram", "bin", "0.0.1", "engram-mcp")
    world.write("~/.engram/bin/0.0.1/engram-mcp", "x")
    world.write("~/.gemini/settings.json", {"mcpServers": {"engram": {"command": kept}}})
    rows = world.doctor()
    assert len(rows["host.version"]) == 2 and "0.0.1" in rows["link.leftover"][0]["message"]


@pytest.mark.parametrize("name", ["~/.gemini/settings.json", ".gemini/settings.json", "~/.gemini/config/mcp_config.json"])
def test_gemini_trusting_our_entry_is_found(world, name):
    world.write(name, {"mcpServers": {"engram": {**OURS, "trust": True}}})
    found, = world.doctor()["host.gemini_trust"]
    assert found["severity"] == "warning" and found["file"].endswith(name.lstrip("~"))
    assert world.result.exit_code == 0
    world.doctor("--strict")
    assert world.result.exit_code == 1


@pytest.mark.parametrize("rest, found", [
    ("", False), ("[mcp_servers.engram.tools.engram_commit]\napproval_mode = 'prompt'\n", False),
    ("[mcp_servers.engram.tools.engram_commit]\napproval_mode = 'approve'\n", True), ("default_tools_approval_mode = 'approve'\n", True),
    ("tools = 7\ndefault_tools_approval_mode = 'auto'\n", False),
    ("default_tools_approval_mode = 'approve'\n[mcp_servers.engram.tools.engram_commit]\napproval_mode = 'prompt'\n", False),
])
def test_codex_running_the_commit_unasked_is_found(world, rest, found):
    world.write("~/.codex/config.toml", "[mcp_servers.engram]\ncommand = 'engram-mcp'\n" + rest)
    assert ("host.codex_approval" in world.doctor()) is found


@pytest.mark.parametrize("name, value, found", [
    (".claude/settings.json", {"permissions": {"allow": ["Bash(ls)", "mcp__engram__engram_commit"]}}, True),
    (".claude/settings.local.json", {"permissions": {"allow": ["mcp__engram"]}}, True),
    ("~/.claude/settings.json", {"permissions": {"allow": ["mcp__engram__*"]}}, True),
    ("~/.claude/settings.json", {"permissions": {"allow": ["mcp__engram__engram_load", "mcp__other__*"], "ask": ["mcp__engram"]}}, False),
    (".gemini/settings.json", {"tools": {"allowed": ["engram_commit"]}}, True),
    ("~/.gemini/settings.json", {"allowedTools": ["mcp_engram_engram_commit"]}, True),
    (".gemini/settings.json", {"tools": {"allowed": ["ls"], "core": ["engram_commit"]}}, False),
    ("~/.cursor/cli-config.json", {"permissions": {"allow": ["Mcp(engram:*)"]}}, True),
    (".cursor/cli.json", {"permissions": {"allow": ["Shell(ls)"]}}, False),
    ("~/.codeium/windsurf/mcp_config.json", {"mcpServers": {"engram": {**OURS, "alwaysAllow": ["engram_load", "engram_commit"]}}}, True),
    ("~/.codeium/windsurf/mcp_config.json", {"mcpServers": {"engram": {**OURS, "alwaysAllow": ["engram_load"]}}}, False),
    ("opencode.json", {"permission": {"*": "ask", "engram_*": "allow"}}, True),
    ("opencode.json", {"permission": {"engram_*": "allow", "engram_engram_commit": "ask"}}, False),
    (".claude/settings.json", {"permissions": {"allow": "mcp__engram"}}, False), (".claude/settings.json", [], False),
    (".claude/settings.json", "{", False),
])
def test_a_list_by_which_a_host_commits_unasked_is_found(world, name, value, found):
    world.write(name, value)
    assert ("host.allow_list" in world.doctor()) is found


def test_opencode_asks_only_when_told_to(world):
    world.write("opencode.json", {"mcp": {"engram": {"type": "local", "command": ["engram-mcp"]}}})
    assert world.doctor()["host.opencode_permission"][0]["severity"] == "info"
    world.write("~/.config/opencode/opencode.jsonc", '{"permission": {"engram_engram_commit": "ask",}} // mine\n')
    assert "host.opencode_permission" not in world.doctor()


@pytest.mark.case("CT-13")
@pytest.mark.parametrize("name, content, line", [("~/.codex/config.toml", b"\0" * 512, "zero bytes"), (".mcp.json", b"{]", ".mcp.json"),
                                                 ("~/.gemini/settings.json", b"\xff\xfe{\0}\0", "UTF-8")])
def test_a_host_file_that_cannot_be_read_is_named(world, name, content, line):
    world.write(name, content)
    found, = world.doctor()["host.config"]
    assert line in found["message"] + found["file"] and found["file"].endswith(name.lstrip("~/"))


def test_a_byte_order_mark_before_our_entry_is_told(world):
    for name in (".mcp.json", ".cursor/mcp.json"):
        world.write(name, b"\xef\xbb\xbf" + json.dumps({"mcpServers": {"engram": OURS}}).encode())
    assert [row["file"] for row in world.doctor()["host.bom"]] == [str(world.path / ".mcp.json")]


def test_a_foreign_server_of_our_name_is_told_and_never_started(world):
    world.write(".mcp.json", {"mcpServers": {"engram": {"command": "touch", "args": [str(world.path / "sprung")]}}})
    assert "touch" in world.doctor(start=True)["host.foreign"][0]["message"] and not (world.path / "sprung").exists()


def test_hooks_that_cannot_run_or_are_of_the_earlier_implementation(world):
    group = lambda line: [{"hooks": [{"type": "command", "command": line}]}]
    world.write(".claude/settings.json", {"hooks": {"SessionStart": group("/gone/engram hook claude"), "Stop": group("mine")}})
    world.write("~/.gemini/settings.json", {"hooks": {"BeforeAgent": group("engram agent-hook --host gemini")}})
    rows = world.doctor()
    assert "/gone/engram" in rows["host.hook_command"][0]["message"] and "earlier" in rows["host.hook_old"][0]["message"]


def test_a_plugin_that_cannot_run_and_what_interrupted_links_left(world):
    world.write(".opencode/plugins/engram.js", opencode_plugin.source(["/gone/engram", "hook", "opencode"], 10))
    world.write("~/.codex/.config.toml.0123456789abcdef.tmp", "half")
    world.write("~/.codex/.mine.tmp", "")
    rows = world.doctor()
    assert "/gone/engram" in rows["host.hook_command"][0]["message"]
    assert [os.path.basename(row["file"]) for row in rows["link.leftover"]] == [".config.toml.0123456789abcdef.tmp"]
    world.write(".opencode/plugins/engram.js", "export const Mine = 1;\n")
    assert "host.hook_command" not in world.doctor()


def test_codex_hooks_that_wait_for_trust_are_told(world):
    world.run("link", "codex", "--global", "--no-instructions")
    path = os.path.join(world.home, ".codex", "hooks.json")
    assert world.doctor()["host.codex_hooks"][0]["file"] == path
    with open(os.path.join(world.home, ".codex", "config.toml"), "a") as file:
        file.write(f'\n[hooks.state."{path}:session_start:0:0"]\ntrusted_hash = "sha256:0"\n')
    assert "host.codex_hooks" not in world.doctor()


def test_a_host_that_is_here_and_not_linked_is_an_info(world):
    os.makedirs(os.path.join(world.home, ".gemini"))
    assert world.doctor()["host.not_linked"][0]["remediation"] == "Run engram link gemini."


def test_the_store_is_checked_too(world, monkeypatch):
    root = world.path / ".agents/.engram"
    (root / "rules").mkdir(exist_ok=True)
    (root / "rules/a.md").write_text("---\nid: a\ntype: rule\nauthor: Sam Field <sam.field@example.com>\n---\n# A\n\n## Content\n\n- A.\n")
    (root / "rules/b.md").write_text("---\nid: [\n---\n")
    (root / ".x.0123456789abcdef.tmp").write_text("left")
    (root / ".gitignore").write_text("")
    (root / "index.sqlite").write_bytes(b"no database" * 1000)
    (root / "engram.config.json").write_text('{"read": "sometimes"}')
    rows = world.doctor()
    assert {"hash.mismatch", "store.leftover", "store.ignore", "trust.changed"} <= set(rows) and world.result.exit_code == 1
    assert any(id.startswith("memory.") for id in rows) and any(id.startswith("config.") for id in rows)
    assert rows["index.state"][0]["severity"] == "warning"


def test_an_untrusted_workspace_is_a_warning_and_never_loosened_by_the_repository(world):
    os.unlink(os.path.join(world.home, ".engram", trust.FILE))
    assert "trust.workspace" not in world.doctor()  # nothing there to look at
    rules = world.path / ".agents/.engram/rules"
    rules.mkdir(exist_ok=True)
    (rules / "a.md").write_text("---\nid: a\ntype: rule\nauthor: x\n---\n# A\n\n## Content\n\n- A.\n")
    world.write(".agents/.engram/engram.config.json", {"trust": "off"})
    assert "engram trust" in world.doctor()["trust.workspace"][0]["remediation"]


def test_without_a_store_or_a_home_it_still_says_what_it_can(world, monkeypatch, tmp_path):
    shutil.rmtree(world.path / ".agents")
    assert world.doctor()["store.missing"][0]["severity"] == "info" and world.result.exit_code == 0
    monkeypatch.setenv("HOME", "/")
    monkeypatch.delenv("USERPROFILE")
    assert world.doctor()["user.folder"][0]["severity"] == "error"


def test_a_record_of_trust_that_others_can_write_is_an_error(world):
    os.chmod(os.path.join(world.home, ".engram", trust.FILE), 0o666)
    assert "chmod 600" in world.doctor()["user.private"][0]["remediation"]


def test_an_engram_of_another_version_on_path_is_told(world, tmp_path):
    os.unlink(tmp_path / "bin" / "engram")
    (tmp_path / "bin" / "engram").write_text("#!/bin/sh\necho 0.0.1\n")
    (tmp_path / "bin" / "engram").chmod(0o755)
    assert "is 0.0.1" in world.doctor()["path.version"][0]["message"]


def test_json_is_one_envelope_with_every_finding(run, tmp_path):
    answer = json.loads(run("doctor", "--json", "--no-start", cwd=tmp_path).stdout)
    assert answer["ok"] and answer["diagnostics"] == answer["data"]["findings"]
    assert all(set(row) <= {"id", "severity", "message", "file", "remediation"} for row in answer["data"]["findings"])


def test_doctor_writes_nothing(world):
    world.run("link", "claude"), world.run("link", "codex", "--global")

    def everything():
        return {os.path.join(folder, name): os.stat(os.path.join(folder, name)).st_mtime_ns
                for top in (world.home, world.path) for folder, _, names in os.walk(top) for name in names}
    before = everything()
    world.doctor(start=True)
    assert everything() == before


def test_an_index_that_somebody_locks_does_not_stop_it(world):
    path = world.path / ".agents/.engram/index.sqlite"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE t (x)"), holder.execute("BEGIN EXCLUSIVE")
    assert "index.state" in world.doctor()
    holder.close()
