#!/usr/bin/env python3
"""Speed and retrieval, measured: `python3 build.py bench [--sizes 10,1000,10000] [--runs 15] [--only speed|retrieval]`.

Prints two tables: times as multiples of a bare Python start in the same run (quality.md, Speed), with peers beside ours where
they are installed, and nDCG@10 on the open benchmark sets (../shared/bench). What is not there is skipped by name. Runs of ours
and of bare Python alternate, so that a busy machine slows both.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "bench")
QUERY = "change the retry policy of the log shipper with Redis"
SHORT = "retry policy log shipper"
TARGETS = {"version": "2 x", "hook": "5.5 x", "initialize": "7 x",
           "load": {10: "5 x", 1000: "5.5 x", 10_000: "7 x", 100_000: "14 x"},
           "engram_load": {1000: "3 ms", 10_000: "6 ms", 100_000: "25 ms"},
           "engram_search": {1000: "3 ms", 10_000: "8 ms", 100_000: "30 ms"},
           "first index": {10_000: "6 s", 100_000: "90 s"}}


class Workspace:
    """A throw-away workspace with a generated store, and an environment in which only it is seen."""

    def __init__(self, folder, size, python):
        self.size, self.folder = size, os.path.join(folder, str(size))
        self.store = os.path.join(self.folder, ".agents", ".engram")
        os.makedirs(os.path.join(self.folder, ".git"))
        os.makedirs(self.store)
        home = os.path.join(folder, "home")
        os.makedirs(home, exist_ok=True)
        self.env = {"HOME": home, "PATH": os.pathsep.join((os.path.dirname(python), os.environ["PATH"]))}
        subprocess.run([python, os.path.join(SHARED, "gen_store.py"), self.store, str(size), "7"], check=True, stdout=subprocess.DEVNULL)

    def run(self, argv, text=None):
        """Run a command; return (seconds, most memory in MiB, exit code)."""
        start = time.perf_counter()
        process = subprocess.Popen(argv, cwd=self.folder, env=self.env, stdin=subprocess.PIPE if text else subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if text:
            process.stdin.write(text.encode())
            process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        return seconds, used.ru_maxrss / 1024, process.returncode

    def beside_bare(self, bare, argv, runs, text=None):
        """Return medians of alternating runs: (seconds bare, seconds, MiB, exit code)."""
        self.run(argv, text)  # warm
        pairs = [(self.run(bare)[0], self.run(argv, text)) for _ in range(runs)]
        return (statistics.median(one for one, _ in pairs), statistics.median(two[0] for _, two in pairs),
                statistics.median(two[1] for _, two in pairs), pairs[-1][1][2])


class Served:
    """A server over stdio; one request at a time."""

    def __init__(self, workspace, argv):
        self.process = subprocess.Popen(argv, cwd=workspace.folder, env=workspace.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.number = 0

    def ask(self, method, params):
        """Return the seconds that an answer took."""
        self.number += 1
        start = time.perf_counter()
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            raise EOFError("the server ended")
        return time.perf_counter() - start

    def initialize(self):
        client = {"name": "bench", "version": "1"}
        return self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})

    def call(self, tool, arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def memory(self):
        """Return the most memory so far in MiB; None where there is no /proc."""
        try:
            with open(f"/proc/{self.process.pid}/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
        except OSError:
            return None

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def row(what, value, target="", memory=None):
    print(f"| {what} | {value} | {target} | {'' if memory is None else f'{memory:.0f} MiB'} |", flush=True)


def speed(built, sizes, runs):
    """Print the speed table."""
    python = shutil.which("python3")
    bare = [python, "-I", "-S", "-c", "pass"]
    print(f"\n## Speed ({subprocess.run([python, '-V'], capture_output=True, text=True).stdout.strip()}, medians of {runs})\n")
    print("| what | measured | target | memory |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        for size in sizes:
            place = Workspace(folder, size, python)
            first, memory, _ = place.run([built, "rebuild-index"])
            row(f"first index of {size:,}", f"{first:.2f} s", TARGETS["first index"].get(size, ""), memory)
            event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "bench", "cwd": place.folder, "prompt": QUERY})
            asked = [(f"load, {size:,}", [built, "load", *QUERY.split()], TARGETS["load"].get(size, ""), None)]
            if size == sizes[0]:
                asked.insert(0, ("--version", [built, "--version"], TARGETS["version"], None))
            asked.append((f"hook claude, {size:,}", [built, "hook", "claude"], TARGETS["hook"] if size == 1000 else "", event))
            for what, argv, target, text in asked:
                base, seconds, memory, code = place.beside_bare(bare, argv, runs, text)
                row(what, f"{seconds / base:.1f} x bare ({1000 * seconds:.0f} ms)" + (f", exit {code}" if code else ""), target, memory)
            served(place, built, bare, runs)
            edited(place, built, bare, runs)
            for name, argv in peers(place).items():
                try:
                    base, seconds, memory, code = place.beside_bare(bare, argv, 3)
                    row(f"{name}, {size:,}", f"{seconds / base:.0f} x bare ({1000 * seconds:.0f} ms)" + (f", exit {code}" if code else ""),
                        "", memory)
                except OSError as error:
                    print(f"{name}: {error}")
            shutil.rmtree(place.folder)


def served(place, built, bare, runs):
    """Print the rows of the server."""
    argv = [built, "mcp", "--surface", "engram"]
    starts = []
    for _ in range(runs):
        base = place.run(bare)[0]
        start = time.perf_counter()
        server = Served(place, argv)
        server.initialize()
        starts.append((time.perf_counter() - start, base))
        server.close()
    ratio = statistics.median(one for one, _ in starts) / statistics.median(base for _, base in starts)
    row(f"server start to initialize, {place.size:,}", f"{ratio:.1f} x bare", TARGETS["initialize"])
    server = Served(place, argv)
    server.initialize()
    for tool, query in (("engram_load", QUERY), ("engram_search", SHORT)):
        times = [server.call(tool, {"query": query}) for _ in range(max(runs, 30))]
        row(f"{tool}, {place.size:,}", f"{1000 * statistics.median(times):.1f} ms (first {1000 * times[0]:.0f} ms)",
            TARGETS[tool].get(place.size, ""), server.memory())
    server.close()


def edited(place, built, bare, runs):
    """Print how much longer a load takes that meets a hand edit."""
    rel = subprocess.run([built, "route", "--json", *QUERY.split()], cwd=place.folder, env=place.env, capture_output=True, text=True)
    entries = json.loads(rel.stdout)["data"]["entries"]
    path = next((os.path.join(folder, entries[0]["id"] + ".md") for folder in
                 (os.path.join(place.store, kind) for kind in ("rules", "skills", "knowledge"))
                 if entries and os.path.exists(os.path.join(folder, entries[0]["id"] + ".md"))), None)
    if path is None:
        return
    load, more = [built, "load", *QUERY.split()], []
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for number in range(min(runs, 7)):
        still = place.run(load)[0]
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + f"Edited {number}.\n")
        more.append(place.run(load)[0] - still)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    target = "+ 20 ms" if place.size == 10_000 else ""
    row(f"a load that meets a hand edit, {place.size:,}", f"+ {1000 * statistics.median(more):.0f} ms", target)


def peers(place):
    """Return the commands of peers that are installed: {name: words}."""
    found = {}
    earlier = os.environ.get("ENGRAM_BENCH_EARLIER")  # words that start the earlier implementation
    if earlier:
        found["earlier implementation, load"] = [*earlier.split(), "load", QUERY]
    if shutil.which("basic-memory", path=place.env["PATH"]):
        found["basic-memory, search"] = ["basic-memory", "tool", "search-notes", SHORT]
    if place.size == 10:
        for name, there in (("the earlier implementation (set ENGRAM_BENCH_EARLIER)", earlier),
                            ("basic-memory", "basic-memory, search" in found), ("server-memory", shutil.which("mcp-server-memory"))):
            if not there:
                print(f"skipped, not installed: {name}")
    if shutil.which("mcp-server-memory", path=place.env["PATH"]):
        found["server-memory, start"] = ["mcp-server-memory"]
    return found


def retrieval(runs):
    """Print nDCG@10 on the open sets, with and without related words."""
    del runs
    print("\n## Retrieval, nDCG@10\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        made = []
        for name, more in (("lexical", ["--lexical"]), ("engram", [])):
            out = os.path.join(folder, name + ".json")
            command = " ".join([sys.executable, os.path.join(HERE, "ranker.py"), *more])
            subprocess.run([sys.executable, os.path.join(SHARED, "evaluate.py"), "run", "--data", os.path.join(SHARED, "data"),
                            "--name", name, "--cmd", command, "--out", out], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            made.append(out)
        for more in ([], ["--metric", "R@5"]):
            subprocess.run([sys.executable, os.path.join(SHARED, "evaluate.py"), "table", *more, *made], check=True)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("built", help="the built file")
    parser.add_argument("--sizes", default="10,1000,10000", help="store sizes (default: 10,1000,10000; 100000 takes minutes)")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", choices=("speed", "retrieval"))
    args = parser.parse_args(argv)
    if not os.path.isdir(SHARED):
        print("skipped: no ../shared/bench beside this checkout, which has the generator of stores and the sets.")
        return 0
    if args.only != "retrieval":
        speed(os.path.abspath(args.built), [int(size) for size in args.sizes.split(",")], args.runs)
    if args.only != "speed":
        retrieval(args.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
