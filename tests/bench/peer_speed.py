"""Rows of the speed table for peers, over the same memories as Engram's rows.

Each peer has folders of its own and sees no other home. A step that fails or takes longer than `measure.LIMIT` ends that peer's
rows for this size with one that says why. basic-memory searches by keywords here: its embedding model comes from the network when it
is first used. server-memory looks for the query as it stands, so it is asked for words that stand together in the generated memories.
"""
from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics

from measure import Place, Served, beside, row
from peer_tools import basic_memory, server_memory

RUNS = 3  # of what takes seconds each
CALLS = 30
QUERY = "change the retry policy of the log shipper with Redis"
SHORT = "retry policy log shipper"
PHRASE = "log shipper"
KINDS = ("rules", "skills", "knowledge")
FAILURES = (OSError, EOFError, ValueError, LookupError, TypeError)


def rows(workspace, bare, folder):
    """Print the rows of every peer that is here for the memories of a workspace; peers keep their files in `folder`."""
    for name, command, measured in peers():
        if command:
            try:
                measured(command, workspace, bare, os.path.join(folder, name.replace(" ", "-")))
            except FAILURES as error:
                row(f"{name}, {workspace.size:,}", f"failed: {error}")
            finally:
                shutil.rmtree(os.path.join(folder, name.replace(" ", "-")), ignore_errors=True)


def peers():
    """Return (name, words of its command or None when it isn't here, function that prints its rows) of each peer."""
    here = lambda path: path and [path]
    return (("server-memory", here(server_memory()), server_memory_rows), ("basic-memory", here(basic_memory()), basic_memory_rows),
            ("earlier implementation", shlex.split(os.environ.get("ENGRAM_BENCH_EARLIER", "")), earlier_rows))


def server_memory_rows(command, workspace, bare, folder):
    place = Place(os.path.join(folder, "work"), workspace.env | {"MEMORY_FILE_PATH": os.path.join(folder, "memory.jsonl")})
    with open(place.env["MEMORY_FILE_PATH"], "w", encoding="utf-8") as file:
        for path in memories(workspace.store):
            file.write(json.dumps(entity(path), ensure_ascii=False) + "\n")
    start_row("server-memory", workspace.size, place, bare, command)
    search_row("server-memory", workspace.size, place, command, "search_nodes", {"query": PHRASE},
               lambda result: result["structuredContent"]["entities"])


def memories(store):
    """Yield the paths of a generated store's memories."""
    for kind in KINDS:
        for name in sorted(os.listdir(os.path.join(store, kind))):
            yield os.path.join(store, kind, name)


def entity(path):
    """Return a generated memory as server-memory keeps it: an observation for its tags and for each line that says something."""
    with open(path, encoding="utf-8") as file:
        _, front, body = file.read().split("---\n", 2)
    meta = dict(line.split(": ", 1) for line in front.splitlines())
    lines = [line.strip("# ") if line.startswith("# ") else line.removeprefix("- ") for line in body.splitlines()
             if line and not line.startswith("##")]
    return {"type": "entity", "name": meta["id"], "entityType": meta["type"], "observations": [*lines, meta["tags"].strip("[]")]}


def basic_memory_rows(command, workspace, bare, folder):
    name, size, notes = "basic-memory", workspace.size, os.path.join(folder, "notes")
    home = os.path.join(folder, "home")
    place = Place(os.path.join(folder, "work"), workspace.env | {
        "HOME": home, "BASIC_MEMORY_HOME": os.path.join(home, "basic-memory"), "BASIC_MEMORY_CONFIG_DIR": os.path.join(folder, "config"),
        "BASIC_MEMORY_NO_PROMOS": "1", "BASIC_MEMORY_AUTO_UPDATE": "false", "BASIC_MEMORY_DEFAULT_SEARCH_TYPE": "text",
        "HF_HUB_OFFLINE": "1"})
    os.makedirs(home)
    for kind in KINDS:  # a copy: it writes into the files
        shutil.copytree(os.path.join(workspace.store, kind), os.path.join(notes, kind))
    place.done([*command, "project", "add", "bench", notes, "--default", "--local", "--no-wait"])
    seconds, memory = place.done([*command, "reindex", "--search", "--project", "bench"])
    row(f"{name}, first index of {size:,}", f"{seconds:.2f} s", "", memory)
    start_row(name, size, place, bare, [*command, "mcp", "--project", "bench"])
    search_row(name, size, place, [*command, "mcp", "--project", "bench"], "search_notes", {"query": SHORT, "output_format": "json"},
               lambda result: json.loads(result["content"][0]["text"])["results"])
    command_row(f"{name}, search by command, {size:,}", place, bare, [*command, "tool", "search-notes", SHORT, "--local", "--json"])


def earlier_rows(command, workspace, bare, folder):
    command_row(f"earlier implementation, load, {workspace.size:,}", workspace, bare, [*command, "load", QUERY])


def start_row(name, size, place, bare, argv):
    base, seconds = place.started(bare, argv, RUNS)
    row(f"{name}, start to initialize, {size:,}", beside(seconds, base))


def search_row(name, size, place, argv, tool, arguments, hits):
    """Print how long a search takes; `hits` takes the memories out of a result."""
    with Served(place, argv) as server:
        server.initialize()
        server.tell("notifications/initialized")
        times = [server.call(tool, arguments) for _ in range(CALLS)]
        found = len(hits(server.result))
        row(f"{name}, {tool}, {size:,}", f"{1000 * statistics.median(times):.1f} ms (first {1000 * times[0]:.0f} ms, found {found})",
            "", server.memory())


def command_row(what, place, bare, argv):
    place.done(argv)
    base, seconds, memory, _ = place.beside_bare(bare, argv, RUNS)
    row(what, beside(seconds, base), "", memory)
