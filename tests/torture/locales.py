"""Locale C, cp1252, no UTF-8 mode, -O, -W error, each Python: the same results, byte for byte where bytes are written."""

from __future__ import annotations

import json
import os
import re
import subprocess

import build
from tests.torture.place import Place

TEXT = "The ✓ 設定 🚀 příklad service restarts at midnight, naïvely."
SETTINGS = (
    {"LANG": "C.UTF-8"},
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "cp950", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"LC_ALL": "de_DE.ISO-8859-1", "TZ": "Asia/Kathmandu"},
    {"TZ": "America/St_Johns", "PYTHONHASHSEED": "99", "PYTHONWARNINGS": "error"},
)
FLAGS = ((), ("-O",), ("-OO",), ("-W", "error"), ("-X", "dev"), ("-bb",))


def run(trial):
    lost, tried = [], 0
    wanted = None
    for which, python in enumerate(build.pythons().values()):
        for number, env in enumerate(SETTINGS):
            if which and number % 3 and not trial.long:
                continue
            for flags in FLAGS if number == 0 and (trial.long or not which) else FLAGS[:1]:
                found, problems = once(trial, python, env, flags)
                tried += 1
                where = f"{os.path.basename(python)} {' '.join(flags)} {env}"
                lost += [f"{where}: {problem}" for problem in problems]
                wanted = wanted or found
                lost += [
                    f"{where}: another {key}: {found[key]!r:.300} is not {wanted[key]!r:.300}"
                    for key in wanted
                    if found.get(key) != wanted[key]
                ]
    return f"{tried} combinations of {len(build.pythons())} Pythons, environments and flags", lost


def once(trial, python, env, flags):
    """Save, load, search over both faces; return what must be equal everywhere, and what went wrong."""
    problems, found = [], {}
    # the built file is started without -I here, so that the environment's settings reach it
    with Place(trial.built, env=env, inject=False) as place:
        start = [python, *flags, place.built]

        def command(*words, text=""):
            done = subprocess.run(
                [*start, *words],
                input=text.encode(),
                capture_output=True,
                cwd=place.workspace,
                env=place.env,
                timeout=120,
            )
            noise = done.stderr.decode("utf-8", "replace")
            if done.returncode or "Error" in noise or "Warning" in noise:
                problems.append(f"{words[0]}: exit {done.returncode}: {noise.strip()[-200:]}")
            return done.stdout

        command("inject")
        command("save", "--force", "--scope", "workspace", "--json", text=f"TYPE: rule | TEXT: {TEXT}")
        found["files"] = {
            name: re.sub(rb"\d{4}-\d\d-\d\d[^\n]*", b"DATE", data) for name, data in place.memories().items()
        }
        if not any(TEXT.encode() in data for data in found["files"].values()):
            problems.append("the text is not in the file as it was given")
        for words in (
            ("load", "příklad service", "--json"),
            ("search", "priklad", "--json"),
            ("search", "設定", "--json"),
            ("list", "--json"),
        ):
            found[" ".join(words)] = json.loads(command(*words) or b"{}").get("data")
        command("status")
        command("help")
        command("load", "service")
        server = subprocess.Popen(
            [*start, "mcp", "--surface", "engram"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.workspace,
            env=place.env,
        )
        lines = [
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                },
            },
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "engram_search", "arguments": {"query": "příklad ✓"}},
            },
            {"jsonrpc": "2.0", "id": 3, "method": "ping"},
        ]
        out, err = server.communicate(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in lines).encode(), timeout=120
        )
        answers = {row.get("id"): row for row in map(json.loads, out.decode("utf-8").splitlines())}
        found["over MCP"] = answers.get(2, {}).get("result", {}).get("structuredContent", {}).get("data")
        if answers.get(3, {}).get("result") != {} or server.returncode or b"Traceback" in err:
            problems.append(f"server: exit {server.returncode}: {err.decode('utf-8', 'replace')[-200:]}")
    return found, problems
