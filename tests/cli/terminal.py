"""A real terminal for a command: what it prints there, and answers typed when it asks."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import build

PROMPT = b"C reject: "


def typed(words, answers, *, cwd, env, prompt=PROMPT, limit=60):
    """Run `engram WORDS` on a terminal, type one answer (bytes; None for end of input) at each prompt.

    Returns (raw output, exit code). The output is what the terminal would get, byte for byte.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(sys.executable, [sys.executable, "-m", "engram", *words], {**env, "PYTHONPATH": build.ROOT, "TERM": "xterm"})
    output, answers, asked, end = b"", list(answers), 0, time.monotonic() + limit
    try:
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            output += part
            if output.count(prompt) > asked and answers:
                asked = output.count(prompt)
                answer = answers.pop(0)
                os.write(terminal, b"\x04" if answer is None else answer + b"\n")
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return output, os.waitstatus_to_exitcode(status)
