"""Start a registered server the way its host does and see it answer `initialize`.

Must not know hosts' files. A repository's file names the command, and checking must not run what somebody put there:
of a workspace's entry only the launchers that Engram itself writes are started, without the entry's own variables.
The network is never asked: npx runs offline, from npm's cache.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections import namedtuple

SECONDS = 20  # npm alone takes half a second, a loaded machine much longer
LARGEST_ANSWER = 1 << 20
NPX = re.compile(r"(cmd /c )?npx -y --package @the-long-ride/engram@[\w.+-]+ engram-mcp( --[\w-]+)*")
ASK = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
       "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "engram-doctor", "version": "1"}}}

# ok: it answered; None when it was not started. said: the server's version, or the reason.
Trial = namedtuple("Trial", "ok said")


def runnable(words, env):
    """Return the absolute path of the program that `words` start, or None: a bare name is looked up on `env`'s PATH."""
    return shutil.which(words[0], path=env.get("PATH", os.defpath)) if words else None


def is_own(words, env, kept):
    """Tell whether `words` are a launcher that Engram writes: from PATH, from its kept copies under `kept`, or npx pinned."""
    line = " ".join(words)
    if NPX.fullmatch(line):
        return True
    program = words[0]
    if program != os.path.basename(program):
        real = os.path.realpath(program)
        return os.path.isabs(program) and bool(kept) and real.startswith(os.path.realpath(kept) + os.sep)
    return program in ("engram", "engram-mcp") and all(re.fullmatch(r"mcp|--?[\w=-]+|engram|mem|all", word) for word in words[1:])


def start(words, env, folder):
    """Start `words` in `folder`, ask it to initialize, end it, and return the Trial."""
    offline = {"npm_config_offline": "true", "npm_config_update_notifier": "false"}
    if NPX.fullmatch(" ".join(words)):
        folder = os.path.abspath(os.sep)  # npx obeys the .npmrc and the node_modules of the folder it is started in
    try:
        child = subprocess.Popen(words, cwd=folder, env={**env, **offline}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
    except OSError as error:
        return Trial(False, f"it does not start: {error.strerror or error}")
    complaint = []
    reader = threading.Thread(target=lambda: complaint.append(child.stderr.read()[-LARGEST_ANSWER:]), daemon=True)
    reader.start()
    timer = threading.Timer(SECONDS, child.kill)
    timer.start()
    try:
        try:
            child.stdin.write(json.dumps(ASK).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline(LARGEST_ANSWER)
            child.stdin.close()  # the end of its input ends a server
            child.wait(SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            line = b""
        return _judge(line, child, complaint, reader)
    finally:
        timer.cancel()
        child.kill()
        child.wait()
        reader.join(1)
        for stream in (child.stdin, child.stdout, child.stderr):
            try:
                stream.close()
            except OSError:
                pass


def _judge(line, child, complaint, reader):
    try:
        info = json.loads(line)["result"]["serverInfo"]
        return Trial(info["name"] == "engram", f"{info['name']} {info['version']}")
    except (ValueError, KeyError, TypeError):
        pass
    if line:
        return Trial(False, "its answer to initialize is not one")
    reader.join(1)
    last = b"".join(complaint).decode("utf-8", "replace").strip().splitlines()
    why = last[-1][:200] if last else f"exit code {child.returncode}" if child.returncode is not None else "no answer"
    return Trial(False, f"it does not answer initialize: {why}")
