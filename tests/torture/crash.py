"""kill -9 at random moments: every file old or new and whole, the next command works, no lock stays."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time

from tests.torture.place import Place, statement, whole


def run(trial):
    lost, counts = [], []
    for name, kills, function in (
        ("commits", trial.size(30, 200), commits),
        ("archives", trial.size(10, 100), archives),
        ("links", trial.size(10, 100), links),
        ("mem writes", trial.size(10, 100), mem_writes),
    ):
        alive, found = function(trial, kills)
        counts.append(f"{name} {alive}/{kills}")
        lost += [f"{name}: {problem}" for problem in found]
    return f"killed while running/started: {', '.join(counts)}", lost


def kill(trial, process, text, within):
    """Feed a process, kill it at a random moment within `within` seconds; return whether it still ran."""
    with contextlib.suppress(OSError):
        process.stdin.write(text.encode())
        process.stdin.close()
    time.sleep(trial.dice.uniform(0, within))
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return alive


def took(function):
    begin = time.monotonic()
    function()
    return time.monotonic() - begin


def check_store(place, before, lost, when):
    """Hold the store against `before`: every earlier memory there with its bytes, every file whole, verify clean."""
    now = place.memories()
    lost += [f"{when}: {name} is torn" for name, data in now.items() if not whole(data)]
    lost += [f"{when}: {name} is gone" for name in before if name not in now]
    done = place.run("verify", code=None)
    if done.returncode:
        lost.append(f"{when}: verify says {(done.stdout + done.stderr).strip()[-200:]}")
    return now


def commits(trial, kills):
    lost, alive = [], 0
    with Place(trial.built) as place:
        lines = lambda number: "\n".join(f"TYPE: knowledge | TEXT: {statement(number * 5 + row)}" for row in range(5))
        words = ("save-session", "--force", "--scope", "workspace")
        span = took(lambda: place.run(*words, text=lines(0))) * 1.1
        before = place.memories()
        for number in range(1, kills + 1):
            alive += kill(trial, place.start(*words), lines(number), span)
            if any(not whole(data) for data in place.memories().values()):
                lost.append(f"kill {number}: a torn file")
            if number % 10 == 0 or number == kills:
                before = check_store(place, before, lost, f"after kill {number}")
        place.save("The crash trial ends with a marmalade entry.")
        if "marmalade" not in place.run("load", "the marmalade entry of the trial").stdout:
            lost.append("the store does not serve a new memory after the kills")
    return alive, lost


def archives(trial, kills):
    lost, alive = [], 0
    with Place(trial.built) as place:
        for begin in range(0, kills + 1, 20):
            place.save(*(statement(5000 + number) for number in range(begin, min(begin + 20, kills + 1))))
        bodies = place.memories()
        span = took(lambda: place.run("verify")) * 2
        for number, name in enumerate(sorted(bodies)[:kills]):
            id = os.path.basename(name)[:-3]
            alive += kill(trial, place.start("archive", "--reason", "trial", id), "", span)
            if not os.path.exists(place.store(name)) and os.path.basename(name) not in archived(place):
                lost.append(f"archive {number}: {name} is in neither place")
        if place.run("verify", code=None).returncode:
            lost.append("verify is not clean after the kills")
        gone = archived(place)
        double = [name for name in place.memories() if os.path.basename(name) in gone]
        lost += [f"{name} is active and archived" for name in double]
    return alive, lost


def archived(place):
    return {name for _, _, names in os.walk(place.store("archive")) for name in names if name.endswith(".md")}


CONFIG = b'{\n    // mine\n    "mcpServers": {\n        "mine": {"command": "my-server"}\n    },\n    "text": "\xe2\x80\x94"\n}\n'


def links(trial, kills):
    lost, alive = [], 0
    with Place(trial.built) as place:
        os.makedirs(os.path.join(place.workspace, ".gemini"))
        path = os.path.join(place.workspace, ".gemini", "settings.json")
        write(path, CONFIG)
        span = took(lambda: place.run("link", "gemini")) * 1.1
        linked = read(path)
        place.run("unlink", "gemini")
        if read(path) != CONFIG:
            lost.append("unlink does not give the bytes back")
        for number in range(kills):
            word = ("link", "unlink")[number % 2]
            alive += kill(trial, place.start(word, "gemini"), "", span)
            if read(path) not in (CONFIG, linked):
                lost.append(f"kill {number}: the config is neither old nor new")
            place.run(word, "gemini", limit=30)
            if read(path) != (linked if word == "link" else CONFIG):
                lost.append(f"kill {number}: the next {word} did not finish the work")
    return alive, lost


def mem_writes(trial, kills):
    lost, alive = [], 0
    with Place(trial.built) as place:
        saved = []
        for number in range(kills):
            server = place.server("mcp", "--project", "trial")
            for row in range(5):
                server.call(
                    "mem_save", {"title": f"note {number}-{row}", "content": statement(9000 + number * 50 + row)}
                )
                saved.append(f"note {number}-{row}")
            for row in range(5, 40):
                server.number += 1
                with contextlib.suppress(OSError):
                    server.send(
                        {
                            "jsonrpc": "2.0",
                            "id": server.number,
                            "method": "tools/call",
                            "params": {
                                "name": "mem_save",
                                "arguments": {
                                    "title": f"note {number}-{row}",
                                    "content": statement(9000 + number * 50 + row),
                                },
                            },
                        }
                    )
            time.sleep(trial.dice.uniform(0, 0.1))
            alive += server.process.poll() is None
            server.process.kill()
            server.process.wait()
        path = os.path.join(place.home, ".engram", "sessions.db")
        with contextlib.closing(sqlite3.connect(path)) as database:
            if database.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                lost.append("the database is damaged")
            titles = {row[0] for row in database.execute("SELECT title FROM observations")}
        lost += [f"{title} was answered and is gone" for title in saved if title not in titles]
        with place.server("mcp", "--project", "trial") as server:
            server.call("mem_save", {"title": "afterwards", "content": "The database still takes a note."})
    return alive, lost


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
