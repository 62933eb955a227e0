"""Many writers at once: 8 processes × 25 commits, 8 linkers on one config, 8 × 50 notes; nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading

from tests.torture.place import Place, leftovers, statement


def run(trial):
    lost = []
    processes = trial.size(4, 8)
    each = trial.size(10, 25)
    rounds = trial.size(3, 20)
    notes = trial.size(15, 50)
    written = commits(trial, processes, each, lost)
    one_token(trial, trial.size(3, 20), lost)
    linked = links(trial, 8, rounds, lost)
    saved = mem_saves(trial, 8, notes, lost)
    return f"{written} commits by {processes} processes, {linked} links by 8, {saved} notes by 8", lost


def together(count, work):
    """Run work(number) in `count` threads; return their errors."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except Exception as error:
            errors.append(f"{number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def commits(trial, processes, each, lost):
    with Place(trial.built) as place:
        saved = set()

        def client(number):
            with place.server() as server:
                for row in range(each):
                    proposed = server.data(
                        "engram_save",
                        {"text": f"TYPE: knowledge | TEXT: {statement(number * each + row)}", "scope": "workspace"},
                    )
                    done = server.data(
                        "engram_commit", {"approval_token": proposed["approval_token"], "approve": "all"}
                    )
                    if not done["saved"]:
                        raise AssertionError(f"deferred: {done['deferred']}")
                    saved.update(entry["file"] for entry in done["saved"])

        lost += together(processes, client)
        files = place.memories()
        if len(files) != processes * each or len(saved) != processes * each:
            lost.append(f"{len(files)} files, {len(saved)} answers for {processes * each} commits")
        for number in range(processes * each):
            if sum(statement(number).encode() in data for data in files.values()) != 1:
                lost.append(f"statement {number} is not there exactly once")
        if place.run("verify", code=None).returncode:
            lost.append("verify is not clean")
        lost += [f"left over: {path}" for path in leftovers(place.root)]
        return len(files)


def one_token(trial, rounds, lost):
    """Two processes race with one token: exactly one writes."""
    with Place(trial.built) as place:
        for number in range(rounds):
            with place.server() as one, place.server() as two:
                text = f"TYPE: rule | TEXT: {statement(40000 + number)}"
                token = one.data("engram_save", {"text": text, "scope": "workspace"})["approval_token"]
                wrote = race((one, two), token, lost)
                if wrote != 1:
                    lost.append(f"round {number}: {wrote} of 2 racing commits wrote")
        if len(place.memories()) != rounds:
            lost.append(f"{len(place.memories())} files after {rounds} races")


def race(servers, token, lost):
    """Commit one token on several servers at once; return how many wrote."""
    answers = []
    commit = {"approval_token": token, "approve": "all"}
    lost += together(
        len(servers), lambda number: answers.append(servers[number].call("engram_commit", commit, ok=False))
    )
    return sum(not answer.get("isError") for answer in answers)


def links(trial, linkers, rounds, lost):
    for number in range(rounds):
        with Place(trial.built) as place:
            path = os.path.join(place.workspace, ".mcp.json")
            with open(path, "w") as file:
                file.write('{"mcpServers": {"mine": {"command": "my-server"}}}\n')
            lost += [f"round {number}: {error}" for error in together(linkers, lambda _: place.run("link", "claude"))]
            with open(path) as file:
                found = json.load(file)
            if set(found["mcpServers"]) != {"mine", "engram"}:
                lost.append(f"round {number}: servers {sorted(found['mcpServers'])}")
            lost += [f"left over: {left}" for left in leftovers(place.root)]
    return rounds * linkers


def mem_saves(trial, processes, each, lost):
    with Place(trial.built) as place:

        def client(number):
            with place.server("mcp", "--project", "trial") as server:
                for row in range(each):
                    server.call(
                        "mem_save", {"title": f"note {number}-{row}", "content": statement(20000 + number * each + row)}
                    )

        lost += together(processes, client)
        with contextlib.closing(sqlite3.connect(os.path.join(place.home, ".engram", "sessions.db"))) as database:
            rows = database.execute("SELECT count(*) FROM observations").fetchone()[0]
            if database.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                lost.append("the database is damaged")
        if rows != processes * each:
            lost.append(f"{rows} of {processes * each} notes")
        return rows
