#!/usr/bin/env python3
"""Speed and retrieval, measured: `python3 build.py bench`; `--help` lists what can be chosen.

Prints two tables. Speed: times as multiples of a bare Python start in the same run (quality.md, Speed), with peers beside ours where
they are installed; runs of ours and of bare Python alternate, so that a busy machine slows both. Retrieval: nDCG@10 and R@5 on the open
benchmark sets (../shared/bench). What is not there is skipped by name. `--install-peers` installs peers below `.build/bench-peers` and
ends; ENGRAM_BENCH_EARLIER gives the words that start the earlier implementation, ENGRAM_BENCH_PYTHON a Python that has MiniLM.
"""
from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

import peer_speed
import peer_tools
import session_memory
from measure import Place, Served, beside, row

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "bench")
EVALUATE = [sys.executable, os.path.join(SHARED, "evaluate.py")]
RANKER_LIMIT = 3600  # seconds for all sets
OBSERVATIONS = 100_000
QUERY, SHORT = peer_speed.QUERY, peer_speed.SHORT
TARGETS = {"version": "2 x", "hook": "5.5 x", "initialize": "7 x",
           "load": {10: "5 x", 1000: "5.5 x", 10_000: "7 x", 100_000: "14 x"},
           "engram_load": {1000: "3 ms", 10_000: "6 ms", 100_000: "25 ms"},
           "engram_search": {1000: "3 ms", 10_000: "8 ms", 100_000: "30 ms"},
           "first index": {10_000: "6 s", 100_000: "90 s"}}


class Workspace(Place):
    """A throw-away workspace with a generated store, and an environment in which only it is seen."""

    def __init__(self, folder, size, python):
        home = os.path.join(folder, "home")
        os.makedirs(home, exist_ok=True)
        super().__init__(os.path.join(folder, str(size)),
                         {"HOME": home, "PATH": os.pathsep.join((os.path.dirname(python), os.environ["PATH"]))})
        self.size, self.store = size, os.path.join(self.folder, ".agents", ".engram")
        os.makedirs(os.path.join(self.folder, ".git"))
        os.makedirs(self.store)
        subprocess.run([python, os.path.join(SHARED, "gen_store.py"), self.store, str(size), "7"], check=True, stdout=subprocess.DEVNULL)


def speed(built, sizes, runs, peers, session):
    """Print the speed table; `peers` and `session` tell whether it has rows of peers and of the session notes."""
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
                row(what, beside(seconds, base) + (f", exit {code}" if code else ""), target, memory)
            served(place, built, bare, runs)
            edited(place, built, runs)
            committed(place, python, runs)
            if peers:
                peer_speed.rows(place, bare, os.path.join(folder, "peers"))
            shutil.rmtree(place.folder)
    if session:
        session_notes(built)
    if peers:
        missing = [name for name, command, _ in peer_speed.peers() if not command]
        if missing:
            print(f"\nskipped, not here: {', '.join(missing)}", flush=True)


def served(place, built, bare, runs):
    """Print the rows of the server."""
    argv = [built, "mcp", "--surface", "engram"]
    base, seconds = place.started(bare, argv, runs)
    row(f"server start to initialize, {place.size:,}", beside(seconds, base), TARGETS["initialize"])
    with Served(place, argv) as server:
        server.initialize()
        for tool, query in (("engram_load", QUERY), ("engram_search", SHORT)):
            times = [server.call(tool, {"query": query}) for _ in range(max(runs, 30))]
            row(f"{tool}, {place.size:,}", f"{1000 * statistics.median(times):.1f} ms (first {1000 * times[0]:.0f} ms)",
                TARGETS[tool].get(place.size, ""), server.memory())


def session_notes(built):
    """Print the rows of `mem_save` and `mem_search` over many observations."""
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        session_memory.fill(folder, OBSERVATIONS)
        for tool, milliseconds in session_memory.medians(built, folder).items():
            row(f"{tool}, {OBSERVATIONS:,} observations", f"{milliseconds:.1f} ms", f"{session_memory.TARGETS[tool]} ms")


def edited(place, built, runs):
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


def committed(place, python, runs):
    """Print how long the commit of one memory takes beyond its fsyncs."""
    made = subprocess.run([python, os.path.join(HERE, "committing.py"), place.folder, str(runs)], env=place.env, capture_output=True,
                          text=True)
    row(f"commit of one memory, beyond its fsyncs, {place.size:,}", f"{made.stdout.strip()} ms" if made.returncode == 0 else
        f"failed: {(made.stderr or made.stdout).strip().splitlines()[-1]}", "30 ms" if place.size == 10_000 else "")


def retrieval(sets, peers):
    """Print nDCG@10 and R@5: peers, ours without related words, ours. `sets` as evaluate.py takes them, None for all."""
    print("\n## Retrieval\n", flush=True)
    ours = [sys.executable, os.path.join(HERE, "ranker.py")]
    rankers = {"lexical": [*ours, "--lexical"], "engram": ours}
    if peers:
        other, python = os.path.join(HERE, "peer_rankers.py"), peer_tools.minilm()
        rankers = {f"FTS5 {kind}": [sys.executable, other, kind] for kind in ("unicode61", "porter", "trigram")} \
            | ({"MiniLM-L6": [python, other, "minilm"]} if python else {}) | rankers
        if python is None:
            print("skipped, not here: MiniLM-L6\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        made = []
        for name, command in rankers.items():
            out = os.path.join(folder, name + ".json")
            asked = [*EVALUATE, "run", "--data", os.path.join(SHARED, "data"), "--name", name, "--cmd", shlex.join(command), "--out", out]
            try:
                subprocess.run([*asked, *(("--sets", sets) if sets else ())], check=True, cwd=ROOT, stdout=subprocess.DEVNULL,
                               timeout=RANKER_LIMIT)
                made.append(out)
            except subprocess.SubprocessError as error:
                if name in ("lexical", "engram"):
                    raise
                reason = f"more than {RANKER_LIMIT} s" if isinstance(error, subprocess.TimeoutExpired) else "see above"
                print(f"skipped, failed ({reason}): {name}\n", flush=True)
        for metric in ("nDCG@10", "R@5"):
            subprocess.run([*EVALUATE, "table", "--metric", metric, *made], check=True)
            print(flush=True)


def main(argv):
    parser = argparse.ArgumentParser(prog="build.py bench", description=__doc__.splitlines()[0])
    parser.add_argument("built", help="the built file (build.py gives it)")
    parser.add_argument("--sizes", default="10,1000,10000", help="store sizes (default: 10,1000,10000; 100000 takes minutes)")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", choices=("speed", "retrieval"))
    parser.add_argument("--sets", help="benchmark sets by name, with commas (default: all)")
    parser.add_argument("--session", action=argparse.BooleanOptionalAction,
                        help="also time mem_save and mem_search with 100,000 observations (default: when a size is 10,000 or more)")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="compare with peers (default: yes)")
    parser.add_argument("--install-peers", nargs="*", metavar="NAME", choices=peer_tools.NAMES,
                        help=f"install peers and end: {', '.join(peer_tools.NAMES)} (default: all; minilm is big)")
    args = parser.parse_args(argv)
    if args.install_peers is not None:
        missing = peer_tools.install(args.install_peers)
        print(f"peers that could not be had: {', '.join(missing)}" if missing else "the peers are here")
        return int(bool(missing))
    if not os.path.isdir(SHARED):
        print("skipped: no ../shared/bench beside this checkout, which has the generator of stores and the sets.")
        return 0
    sizes = [int(size) for size in args.sizes.split(",")]
    if args.only != "retrieval":
        session = max(sizes) >= 10_000 if args.session is None else args.session
        speed(os.path.abspath(args.built), sizes, args.runs, args.peers, session)
    if args.only != "speed":
        retrieval(args.sets, args.peers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
