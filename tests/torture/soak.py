"""Hours' worth of mixed calls compressed into minutes: memory, open files and threads of the server stay flat."""

from __future__ import annotations

import os
import time

from tests.torture.place import Place, statement

SHARE = 0.05  # of growth that counts as flat


def run(trial):
    lost, told = [], []
    for surface, calls, total in (
        ("engram", engram_calls, trial.size(3000, 10_000)),
        ("mem", mem_calls, trial.size(3000, 10_000)),
    ):
        with Place(trial.built) as place:
            place.save(*(statement(number) for number in range(20)))
            with place.server("mcp", "--surface", surface, "--tools=all", "--project", "trial") as server:
                begin = time.monotonic()
                warm = None
                for number in range(total):
                    calls(trial.dice, server, place, number)
                    if number == total // 2:  # memory is taken by then that is kept, such as patterns on first use
                        warm = measure(server.process.pid)
                end = measure(server.process.pid)
                took = time.monotonic() - begin
                told.append(
                    f"{surface}: {total:,} calls in {took:.0f} s, {warm['rss'] >> 10} → {end['rss'] >> 10} MiB, "
                    f"{end['files']} files, {end['threads']} threads"
                )
                if end["rss"] > warm["rss"] * (1 + SHARE) + 1024:
                    lost.append(f"{surface}: memory grew from {warm['rss']} to {end['rss']} KiB")
                for what in ("files", "threads"):
                    if end[what] > warm[what] + 1:
                        lost.append(f"{surface}: {what} grew from {warm[what]} to {end[what]}")
            for number in range(5):
                if os.path.exists(place.store("knowledge", f"hand{number}.md")):
                    os.unlink(place.store("knowledge", f"hand{number}.md"))  # edited by hand, so never approved
            if place.run("verify", code=None).returncode:
                lost.append(f"{surface}: verify is not clean")
    return "; ".join(told), lost


def measure(pid):
    with open(f"/proc/{pid}/status") as file:
        rows = dict(line.split(":", 1) for line in file)
    return {
        "rss": int(rows["VmRSS"].split()[0]),
        "threads": int(rows["Threads"]),
        "files": len(os.listdir(f"/proc/{pid}/fd")),
    }


def engram_calls(dice, server, place, number):
    kind = dice.random()
    if kind < 0.4:
        server.call("engram_load", {"query": statement(dice.randrange(40))})
    elif kind < 0.7:
        server.call("engram_search", {"query": dice.choice(("queue", "worker host", "every minutes", "設定", ""))})
    elif kind < 0.8:
        server.call(dice.choice(("engram_status", "engram_verify")))
    elif kind < 0.85:
        server.request("resources/read", {"uri": "engram://index"})
    elif kind < 0.9:
        server.call("engram_load", {"id": "no-such-memory"}, ok=False)
    elif kind < 0.93:
        server.request("tools/list")
    elif kind < 0.98:
        # what is there already: a proposal that waits is kept for 30 minutes, and hours are minutes here
        text = f"TYPE: knowledge | TEXT: {statement(dice.randrange(20))}"
        server.call("engram_save", {"text": text, "scope": "workspace"}, ok=False)
    else:
        # a fixed set of files that change under the server
        path = place.store("knowledge", f"hand{number % 5}.md")
        with open(path, "w") as file:
            file.write(f"---\nid: hand{number % 5}\ntype: knowledge\n---\n# x\n\n## Content\n{statement(number)}\n")


def mem_calls(dice, server, place, number):
    kind = dice.random()
    if kind < 0.4:
        server.call(
            "mem_save",
            {"title": f"note {number % 200}", "content": statement(number % 200), "topic_key": f"key/{number % 200}"},
            ok=False,
        )
    elif kind < 0.7:
        server.call("mem_search", {"query": dice.choice(("queue", "worker host", "設定", ""))}, ok=False)
    elif kind < 0.85:
        server.call("mem_context", {}, ok=False)
    elif kind < 0.95:
        server.call("mem_get_observation", {"id": dice.randrange(1, 300)}, ok=False)
    else:
        server.call(dice.choice(("mem_stats", "mem_current_project", "mem_list_projects")), ok=False)
