"""The process: what it reads and writes, and how it ends (mcp.md, Starting it; cases RP)."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import build
from tests.server.process import STUB, Server, alive, environment
from tests.server.stub import call, modern, request

PING = request(99, "ping")


def test_the_end_of_input_ends_it_with_0():
    with Server() as server:
        server.start()
        assert server.end() == 0 and server.errors == b""


@pytest.mark.case("RP-13")
def test_without_any_input_it_ends_with_0():
    done = subprocess.run(STUB, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly_with_0(number):
    with Server() as server:
        server.start()
        server.process.send_signal(number)
        assert server.wait() == 0 and server.errors == b"" and server.rest() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_server_is_up_is_as_quiet(number):
    code = ("import sys, time\n"
            f"sys.path.insert(0, {build.ROOT!r})\n"
            "class Slow:\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name == 'engram.server.start': print('importing', flush=True); time.sleep(30)\n"
            "sys.meta_path.insert(0, Slow())\n"
            "from engram.server import main\n"
            "main([], 'engram')")
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(20) == 0 and process.stderr.read() == b""


def test_calls_under_way_finish_before_the_end():
    with Server() as server:
        server.start()
        server.send(call(1, "slow"), call(2, "echo", text="x"))
        assert server.end() == 0
        assert {message["id"] for message in server.rest()} == {1, 2}


def test_calls_under_way_finish_before_the_end_by_a_signal():
    with Server() as server:
        server.start()
        server.send(call(1, "slow"))
        server.ask(PING)
        server.process.terminate()
        assert server.wait() == 0 and [message["id"] for message in server.rest()] == [1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_call_that_never_ends_does_not_hold_up_a_signal(number):
    with Server() as server:
        server.start()
        server.send(call(1, "endless"))
        server.ask(PING)
        server.process.send_signal(number)
        assert server.wait(20) == 0 and server.errors == b""


@pytest.mark.case("AP-09")
def test_a_dialog_that_waits_neither_delays_a_ping_nor_the_end():
    with Server() as server:
        server.start(capabilities={"elicitation": {}})
        server.send(call(1, "keep", text="x"))
        question = server.receive()
        assert question["method"] == "elicitation/create"
        for id in range(100, 120):
            assert server.ask(request(id, "ping"))["result"] == {}
        assert server.end() == 0
        rest = server.rest()
        assert [message["id"] for message in rest] == [1]
        assert rest[0]["result"]["content"][0]["text"].startswith("nothing was saved")


def test_nothing_but_messages_comes_out_whatever_a_tool_does():
    with Server() as server:
        server.start()
        assert server.ask(call(1, "noisy"))["result"]["content"][0]["text"] == "quiet"
        assert server.ask(PING)["result"] == {}
        assert server.end() == 0
        assert server.errors.count(b"a stray") == 3


@pytest.mark.case("RP-05")
@pytest.mark.parametrize("name, ids", [("crlf-lines", [0, 99]), ("no-final-newline", [0, 99]), ("handshake", [0, 99]),
                                       ("garbage-then-ping", [0, None, None, 99]), ("invalid-utf8", [0, None, 99])])
def test_the_case_files_are_answered_line_by_line(name, ids):
    with open(os.path.join(os.path.dirname(__file__), "..", "data", "cases", "jsonrpc", name + ".jsonl"), "rb") as file:
        done = subprocess.run(STUB, stdin=file, capture_output=True, timeout=30)
    assert done.returncode == 0 and done.stderr == b"" and b"\r" not in done.stdout
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [reply.get("id") for reply in replies] == ids
    assert all("error" in reply for reply in replies if reply["id"] is None)


def test_a_line_of_16_mib_is_served_and_a_longer_one_than_the_limit_is_told():
    with Server() as server:
        server.start()
        huge = call(1, "echo", text="x" * (16 << 20))
        assert "text holds 16777216 characters" in server.ask(huge)["result"]["content"][0]["text"]
        server.send(b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":"' + b"x" * (33 << 20) + b'"}}\n')
        assert server.receive()["error"]["code"] == -32700
        assert server.ask(PING)["result"] == {}


@pytest.mark.case("RP-07")
def test_nesting_thousands_deep_is_a_parse_error_and_the_server_goes_on():
    with Server() as server:
        server.start()
        for depth in (900, 3000, 100_000):
            server.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * depth + b"]" * depth + b"}}\n")
            reply = server.receive()
            assert reply["id"] in (1, None) and ("result" in reply or reply["error"]["code"] == -32700)
        assert server.ask(PING)["result"] == {}
        nested = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":' + b"[" * 900 + b"]" * 900
        server.send(nested + b"}}}\n")
        reply = server.receive()
        assert reply["id"] in (2, None)
        assert server.ask(PING)["result"] == {}


@pytest.mark.case("RP-10")
@pytest.mark.parametrize("encoding", ["cp1252", "ascii:strict", "cp950"])
def test_a_code_page_makes_no_difference(encoding):
    text = "✓ 設定 🚀 příklad"
    command = [word for word in STUB if word != "-I"]
    with Server(command, env=environment(PYTHONIOENCODING=encoding, PYTHONUTF8="0", LC_ALL="C")) as server:
        server.start()
        assert server.ask(call(1, "echo", text=text))["result"]["content"][0]["text"] == text
        server.send(json.dumps(call(2, "echo", text=text), ensure_ascii=False).encode() + b"\n")
        assert server.reply(2)["result"]["content"][0]["text"] == text


@pytest.mark.case("RP-12")
@pytest.mark.parametrize("size", [0, 90_000])
def test_a_client_that_stops_reading_ends_it(size):
    with subprocess.Popen(STUB, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(json.dumps(modern(1, "tools/call", name="echo", arguments={"text": "x" * size})).encode() + b"\n")
        process.stdout.read(10)  # in the middle of a reply that fills the pipe
        process.stdout.close()
        assert process.wait(20) == 0 and process.stderr.read() == b""


@pytest.mark.case("RP-13")
def test_a_dead_parent_ends_it():
    # The parent's parent holds both pipes open, so the death alone has to tell.
    code = ("import os, subprocess, sys\n"
            "child = subprocess.Popen(sys.argv[1:])\n"
            "os.write(2, b'%d\\n' % child.pid)\n"
            "child.wait()\n")
    parent = subprocess.Popen([sys.executable, "-c", code, *STUB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with parent:
        pid = int(parent.stderr.readline())
        parent.stdin.write(json.dumps(modern(1, "tools/list")).encode() + b"\n")
        parent.stdin.flush()
        assert b'"id":1' in parent.stdout.readline()
        parent.kill()
        parent.wait()
        until = time.monotonic() + 20
        while alive(pid) and time.monotonic() < until:
            time.sleep(0.02)
        assert not alive(pid)


def test_a_closed_stderr_is_no_trouble():
    with Server(["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *STUB]) as server:
        server.start()
        assert server.ask(call(1, "noisy"))["result"]["content"][0]["text"] == "quiet"
        assert server.end() == 0


def test_a_flood_of_calls_is_answered_whole():
    with Server() as server:
        server.start()
        lines = b"".join(json.dumps(call(id, "echo", text="x" * 100)).encode() + b"\n" for id in range(3000))
        server.send(lines)
        assert {server.receive()["id"] for _ in range(3000)} == set(range(3000))
        assert server.end() == 0
