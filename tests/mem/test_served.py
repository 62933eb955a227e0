"""`engram mcp` as hosts run it: the built file, many processes, one database."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from tests.server.process import Server, alive, environment
from tests.server.stub import call, initialize, request
from tests.trials import count

pytestmark = pytest.mark.built
NEWLINE = b"\n"


def serve(built, folder, *options, **env):
    return Server([sys.executable, "-I", "-S", built, "mcp", *options], cwd=folder, env=environment(**env))


def used(server, id, name, /, **arguments):
    result = server.ask(call(id, name, **arguments))["result"]
    assert not result.get("isError"), result
    return result["structuredContent"]


@pytest.mark.case("DB-01")
def test_processes_that_save_at_once_lose_nothing_while_another_one_holds_the_database(built, tmp_path):
    processes, each, seconds = count(4, 8), count(15, 50), count(1, 3)
    data = tmp_path / "data"
    env = {"ENGRAM_DATA_DIR": str(data)}
    with serve(built, tmp_path, "--project", "p", **env) as first:
        first.start()
        used(first, 1, "mem_save", title="first", content="first")
    servers = [serve(built, tmp_path, "--project", "p", **env) for _ in range(processes)]
    faults, started, held = [], threading.Barrier(processes + 1), threading.Event()

    def work(number, server):
        try:
            server.start()
            started.wait(60)
            held.wait(60)
            for row in range(each):
                used(server, 10 + 2 * row, "mem_save", title=f"note {number}-{row}", content=f"statement {number} {row}")
                used(server, 11 + 2 * row, "mem_search", query=f"statement {number}")
        except Exception as error:  # noqa: BLE001 - a thread reports what went wrong to the test
            faults.append(f"{number}: {error!r} {server.errors!r}")

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(servers)]
    for thread in threads:
        thread.start()
    connection = sqlite3.connect(data / "sessions.db", isolation_level=None)
    started.wait(60)
    connection.execute("BEGIN IMMEDIATE")
    held.set()
    time.sleep(seconds)  # the trial is this time: how long the database is held
    connection.execute("COMMIT")
    for thread in threads:
        thread.join(300)
    for server in servers:
        assert server.end() == 0
        server.__exit__()
    assert not faults
    assert connection.execute("SELECT count(*) FROM observations WHERE title LIKE 'note %'").fetchone()[0] == processes * each
    assert connection.execute("SELECT count(*) FROM terms").fetchone()[0] == processes * each + 1
    assert connection.execute("SELECT count(DISTINCT session_id) FROM observations").fetchone()[0] == processes + 1
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


@pytest.mark.case("RP-13")
def test_a_save_that_waits_for_the_database_holds_up_no_end(built, tmp_path):
    data = tmp_path / "data"
    with serve(built, tmp_path, "--project", "p", ENGRAM_DATA_DIR=str(data)) as server:
        server.start()
        used(server, 1, "mem_save", title="first", content="first")
        connection = sqlite3.connect(data / "sessions.db", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        server.send(call(2, "mem_save", title="second", content="second"))
        start = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - start < 15  # ten times what it may take: not the patience of a save
        connection.close()
        (answer,) = [message for message in server.rest() if message.get("id") == 2]
        assert answer["result"]["structuredContent"]["error_code"] == "cancelled"


def test_a_start_answers_while_the_database_is_locked_and_damaged(built, tmp_path):
    os.makedirs(tmp_path / "data")
    (tmp_path / "data" / "sessions.db").write_bytes(b"no database at all" * 1000)
    with serve(built, tmp_path, ENGRAM_DATA_DIR=str(tmp_path / "data")) as server:
        server.start()
        assert len(server.ask(request(1, "tools/list"))["result"]["tools"]) == 19
        result = server.ask(call(2, "mem_search", query="x"))["result"]
        assert result["isError"] and "sessions.db" in result["content"][0]["text"]
        assert server.ask(request(3, "ping"))["result"] == {}
        assert server.end() == 0


def test_a_folder_that_is_gone_stops_no_server(built, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os, runpy, sys; os.rmdir({str(gone)!r}); sys.argv = ['engram', 'mcp']; runpy.run_path({built!r}, run_name='__main__')"
    with Server([sys.executable, "-I", "-S", "-c", code], cwd=gone, env=environment(ENGRAM_DATA_DIR=str(tmp_path / "data"))) as server:
        server.start()
        assert used(server, 1, "mem_current_project")["project"] == ""
        result = server.ask(call(2, "mem_save", title="t", content="c"))["result"]
        assert result["structuredContent"]["error_code"] == "project_required"
        assert server.end() == 0


def test_options_in_both_spellings_and_unknown_ones(built, tmp_path):
    for options in (("--project", "Alpha", "--tools=admin,nonsense", "--what"), ("--project=alpha", "--tools", "admin,nonsense", "--what")):
        with serve(built, tmp_path, *options) as server:
            server.start()
            tools = [tool["name"] for tool in server.ask(request(1, "tools/list"))["result"]["tools"]]
            assert tools == ["mem_delete", "mem_stats", "mem_timeline", "mem_merge_projects"]
            server.end()
        assert b"nonsense" in server.errors and b"--what" in server.errors


def test_both_surfaces_are_served_as_one(built, tmp_path):
    with serve(built, tmp_path, "--surface", "all", "--tools=all") as server:
        server.start()
        names = {tool["name"] for tool in server.ask(request(1, "tools/list"))["result"]["tools"]}
        assert {"engram_load", "engram_commit", "mem_save", "mem_doctor"} <= names
        assert len(names) == 34
        used(server, 2, "mem_save", title="t", content="c")
        server.end()


@pytest.mark.case("RP-13")
def test_end_of_input_a_closed_pipe_and_a_dead_parent_end_the_server(built, tmp_path):
    env = environment(ENGRAM_DATA_DIR=str(tmp_path / "data"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", built, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
    with serve(built, tmp_path) as server:
        server.start()
        used(server, 1, "mem_save", title="t", content="c")
        assert server.end(20) == 0
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-I', '-S', {built!r}, 'mcp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"child.stdin.write({json.dumps(initialize()).encode() + NEWLINE!r}); child.stdin.flush(); child.stdout.readline()\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


@pytest.mark.case("RP-09", "RP-10")
@pytest.mark.parametrize("encoding", ["cp1252", "ascii:strict", "cp950"])
def test_every_tool_keeps_stdout_for_messages_in_any_code_page(built, tmp_path, encoding):
    text = "✓ 設定 🚀 příklad"
    env = environment(
        ENGRAM_DATA_DIR=str(tmp_path / "data"), PYTHONIOENCODING=encoding, PYTHONUTF8="0", PYTHONWARNINGS="always", LC_ALL="C"
    )
    with Server([sys.executable, "-S", built, "mcp", "--tools=all"], cwd=tmp_path, env=env) as server:
        server.start()
        used(server, 1, "mem_save", title=text, content=text)
        assert used(server, 2, "mem_search", query="設定")["results"][0]["preview"] == text
        for number, tool in enumerate(server.ask(request(3, "tools/list"))["result"]["tools"]):
            server.ask(call(100 + number, tool["name"], id=1, observation_id=1, expected_project="x"))
        assert server.ask(request(4, "ping"))["result"] == {}
        assert server.end() == 0
