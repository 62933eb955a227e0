"""The built single file as a server: any line, replaced while serving, flat memory, homes that can't be written."""
from __future__ import annotations

import json
import os
import shutil
import stat

import pytest

from tests.protocol.lines import Lines, sound
from tests.server.process import Server, environment
from tests.server.stub import call, modern, request
from tests.trials import count, dice

pytestmark = pytest.mark.built
RULE = "TYPE: rule | TEXT: Keep the changelog short."
ID = "keep-the-changelog-short"


@pytest.fixture
def command(built, tmp_path):
    """Return the path of a copy of the built file, called engram-mcp, in a folder with a space."""
    folder = tmp_path / "bin with space"
    folder.mkdir()
    return shutil.copy(built, folder / "engram-mcp")


@pytest.fixture
def workspace(tmp_path):
    store = tmp_path / "my work" / ".agents" / ".engram"
    store.mkdir(parents=True)
    return tmp_path / "my work"


def used(server, tool, /, **arguments):
    use = used.number = getattr(used, "number", 0) + 1
    return server.ask(call(f"u{use}", tool, **arguments))["result"]["structuredContent"]


def saved(server, text=RULE, **more):
    token = used(server, "engram_save", text=text, scope="workspace", **more)["data"]["approval_token"]
    return used(server, "engram_commit", approval_token=token)["data"]["saved"]


CALLS = [("engram_load", {"query": "changelog"}), ("engram_load", {"id": ID}), ("engram_search", {"query": "a \"b\" type:rule"}),
         ("engram_route", {"query": "x"}), ("engram_verify", {}), ("engram_status", {}), ("engram_save", {"text": RULE}),
         ("engram_save_session", {"text": RULE}), ("engram_note", {"text": "half way"}), ("engram_commit", {"approval_token": "x"}),
         ("engram_set_rule_variant", {"variant": "status"}), ("mem_search", {"query": "x"}), ("mem_current_project", {}), ("nope", {})]
URIS = ["engram://index", f"engram://memory/{ID}", "engram://memory/nope", "x:y"]


@pytest.mark.parametrize("surface", ["engram", "all"])
def test_generated_and_mutated_lines_of_both_eras_end_in_valid_messages_and_exit_0(command, workspace, surface):
    lines = Lines(dice(f"built {surface}"), CALLS, URIS)
    with Server([command, "--surface", surface], cwd=workspace) as server:
        server.start()
        saved(server)
        for block in range(count(10, 500)):
            server.send(*(lines.line() + b"\n" for _ in range(100)), b"\n", request(f"block {block}", "ping"))
            while True:
                message = server.receive(60)
                assert message is not None, server.errors
                assert sound(message) is None, message
                if isinstance(message, dict) and message.get("id") == f"block {block}" and message.get("result") == {}:
                    break
        assert server.end(60) == 0
        assert all(sound(message) is None for message in server.rest())
        assert b"Traceback" not in server.errors


def test_it_goes_on_when_its_file_is_replaced_while_it_serves(command, workspace, tmp_path):
    with Server([command], cwd=workspace) as server:
        server.start()
        other = tmp_path / "other"
        other.write_bytes(b"#!/bin/sh\necho another program\n" * 5000)
        os.replace(other, command)
        assert saved(server)[0]["id"] == ID
        assert used(server, "engram_load", query="the changelog")["data"]["selected_keys"]
        assert used(server, "engram_note", text="Mail bob@example.com")["ok"]
        assert used(server, "engram_set_rule_variant", variant="strict")["ok"]
        assert "result" in server.ask(request("r", "resources/read", uri="engram://index"))
        assert "result" in server.ask(modern("d", "server/discover"))
        os.unlink(command)
        assert used(server, "engram_search", query="chngelog")["ok"]
        assert server.end() == 0 and b"Traceback" not in server.errors


@pytest.mark.case("RP-09")
def test_a_broken_memory_a_first_run_and_warnings_put_nothing_on_stdout_but_messages(command, workspace):
    broken = workspace / ".agents" / ".engram" / "rules"
    broken.mkdir()
    (broken / "broken.md").write_bytes(b"---\nid: a\nid: b\n\xff\xfe")
    with Server([command], cwd=workspace, env=environment(PYTHONWARNINGS="always")) as server:
        server.start()
        for name in ("load", "route", "search", "verify", "status"):
            assert "text" in used(server, f"engram_{name}")["data"]
        assert saved(server)
        assert server.end() == 0  # every line was read as JSON on the way


@pytest.mark.parametrize("home", ["missing", "file", "read-only"])
def test_without_a_home_reads_work_and_a_proposal_is_refused(command, workspace, tmp_path, home):
    path = tmp_path / "a home"
    if home == "file":
        path.write_text("")
    elif home == "read-only":
        path.mkdir(mode=0o500)
        if os.access(path, os.W_OK):
            path = "/proc/self"  # for root every mode can be written; this can't
    else:
        path = "/proc/nobody"
    with Server([command], cwd=workspace, env=environment(HOME=str(path))) as server:
        server.start()
        assert used(server, "engram_load")["ok"] and used(server, "engram_status")["ok"]
        refused = used(server, "engram_save", text=RULE, scope="workspace")
        assert refused["ok"] is False and refused["error"]["message"]
        assert server.end() == 0 and b"Traceback" not in server.errors
    assert not list((workspace / ".agents" / ".engram").rglob("*.md"))


def test_two_servers_start_at_once_and_write_nothing(command, workspace, clean_environment):
    with Server([command], cwd=workspace) as one, Server([command], cwd=workspace) as two:
        for server in (one, two):
            assert server.ask(modern(0, "server/discover"))["result"]["supportedVersions"] == ["2026-07-28"]
        one.process.terminate()
        assert one.wait() == 0
        assert two.ask(modern(1, "tools/list"))["result"]["tools"]
        assert two.end() == 0
    left = [path for folder in (workspace, clean_environment) for path in folder.rglob("*") if stat.S_ISREG(path.lstat().st_mode)]
    assert left == []


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def counted(pid):
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def test_memory_threads_and_open_files_stay_flat_over_mixed_calls(command, workspace):
    with Server([command], cwd=workspace) as server:
        server.start(capabilities={"elicitation": {}})
        server.send(call("first", "engram_save", text=RULE, scope="workspace"))
        question = server.receive()
        server.ask({**request("ping", "ping")})
        server.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"c1": True}}})
        assert server.reply("first")["result"]["structuredContent"]["data"]["saved"]
        reading = [item for item in CALLS if item[0] in ("engram_load", "engram_search", "engram_route", "engram_verify", "engram_status")]

        def round(number):
            for at, (name, arguments) in enumerate(reading):
                server.ask(call(f"{number}.{at}", name, **arguments) if at % 2 else
                           modern(f"{number}.{at}", "tools/call", name=name, arguments=arguments))
            server.ask(modern(f"{number}.r", "resources/read", uri="engram://index"))
            server.ask(request(f"{number}.p", "ping"))

        for number in range(60):
            round(number)
        before, open_before = resident(server.process.pid), counted(server.process.pid)
        for number in range(60, 60 + count(120, 1250)):
            round(number)
        after = resident(server.process.pid)
        assert after <= before * 1.05 + 512, (before, after)
        assert counted(server.process.pid) <= (open_before[0] + 1, open_before[1] + 1)
        print(json.dumps({"resident_kb": [before, after], "fds_threads": [open_before, counted(server.process.pid)]}))
        assert server.end() == 0
