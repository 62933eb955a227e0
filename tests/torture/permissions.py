"""Another user on the machine, places that can't be written or read, no home: clear errors, nothing opened up."""

from __future__ import annotations

import os
import shutil
import stat
import sys

import build
from tests.torture.limits import READS, clear
from tests.torture.place import NOBODY, Place, statement

AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def run(trial):
    if os.geteuid():
        return "skipped: needs root to become another user", []
    lost, tried = [], 0
    for function in (foreign_store, unreadable_files, foreign_home, modes_kept, private_modes):
        tried += function(trial, lost)
    return f"{tried} commands", lost


def open_up(place):
    """Let another user pass to the workspace, and read the built file and a Python."""
    os.chmod(place.root, 0o755)
    copy = os.path.join(place.root, "engram")
    shutil.copy(place.built, copy)
    os.chmod(copy, 0o755)
    place.built = copy
    place.python = open_python()


def open_python():
    """Return a Python that every user may start; the one that runs us may lie in root's own folder."""
    for path in [sys.executable, *build.pythons().values(), "/usr/bin/python3"]:
        real = os.path.realpath(path)
        folders = [real[:at] for at in range(1, len(real)) if real[at] == "/"]
        if all(os.stat(folder).st_mode & 0o001 for folder in folders):
            return real
    raise RuntimeError("no Python here that another user may start")


def foreign_store(trial, lost):
    """A store that belongs to somebody else and can't be written: reads work, a save says why not."""
    with Place(trial.built) as place:
        place.save(*(statement(number) for number in range(5)))
        open_up(place)
        env = {"HOME": "/nonexistent"}
        for words in READS:
            done = place.run(*words, code=None, env=env, **AS_NOBODY)
            clear(done, f"foreign store: {words[0]}", lost)
        before = place.memories()
        for words in (
            ("save", "--force", "--scope", "workspace", f"TYPE: knowledge | TEXT: {statement(77)}"),
            ("link", "claude"),
            ("archive", "--reason", "x", os.path.basename(min(before))[:-3]),
        ):
            done = place.run(*words, code=None, env=env, **AS_NOBODY)
            clear(done, f"foreign store: {words[0]}", lost)
            if done.returncode == 0:
                lost.append(f"foreign store: {words[0]} claims to have written")
        if place.memories() != before:
            lost.append("foreign store: files changed")
        return len(READS) + 3


def unreadable_files(trial, lost):
    """One file and one folder that this user may not read: named, and the rest works."""
    with Place(trial.built) as place:
        place.save("The harbour crane is painted yellow.", "The lighthouse lamp is serviced in May.")
        open_up(place)
        shutil.chown(place.workspace, NOBODY, NOBODY)
        for folder, folders, names in os.walk(place.workspace):
            for name in folders + names:
                os.chown(os.path.join(folder, name), NOBODY, NOBODY)
        first, second = sorted(place.memories())
        os.chown(place.store(first), 0, 0)
        os.chmod(place.store(first), 0o600)
        hidden = "crane" if "crane" in first else "lighthouse"
        seen = "lighthouse" if hidden == "crane" else "crane"
        env = {"HOME": place.workspace}
        for words in READS:
            clear(place.run(*words, code=None, env=env, **AS_NOBODY), f"unreadable file: {words[0]}", lost)
        done = place.run("verify", code=None, env=env, **AS_NOBODY)
        if done.returncode != 1 or first not in done.stdout + done.stderr:
            lost.append(f"verify does not name the unreadable file: {(done.stdout + done.stderr)[-200:]}")
        found = place.run("search", seen, code=None, env=env, **AS_NOBODY)
        if seen not in found.stdout:
            lost.append("the readable memory is not found beside an unreadable one")
        return len(READS) + 2


def foreign_home(trial, lost):
    """A user folder that belongs to somebody else: a proposal is refused, reads and the handshake work."""
    with Place(trial.built) as place:
        place.save(statement(1))
        open_up(place)
        os.chmod(place.home, 0o755)
        for folder, folders, names in os.walk(place.workspace):
            for name in [".", *folders, *names]:
                os.chown(os.path.join(folder, name), NOBODY, NOBODY)
        for words in (("list",), ("search", "unit"), ("load", "unit")):
            clear(place.run(*words, **AS_NOBODY), f"foreign home: {words[0]}", lost)
        server = place.server(**AS_NOBODY)
        answer = server.call(
            "engram_save", {"text": f"TYPE: rule | TEXT: {statement(2)}", "scope": "workspace"}, ok=False
        )
        if not answer.get("isError") or "approval_token" in answer["structuredContent"]["data"]:
            lost.append("a proposal without a user folder was not refused")
        if server.close() != 0:
            lost.append("the server did not exit 0")
        return 5


def modes_kept(trial, lost):
    """A config keeps its mode through link and unlink, whatever the umask (case CF-03)."""
    tried = 0
    for mode in (0o600, 0o640, 0o664, 0o644):
        for umask in (0o022, 0o077, 0o000):
            with Place(trial.built) as place:
                os.makedirs(os.path.join(place.home, ".gemini"))
                path = os.path.join(place.home, ".gemini", "settings.json")
                with open(path, "w") as file:
                    file.write('{"a": 1}\n')
                os.chmod(path, mode)
                for word in ("link", "unlink"):
                    place.run(word, "--global", "gemini", umask=umask)
                    tried += 1
                    if stat.S_IMODE(os.stat(path).st_mode) != mode:
                        lost.append(
                            f"{word} under umask {umask:03o} made {mode:03o} into {stat.S_IMODE(os.stat(path).st_mode):03o}"
                        )
    return tried


def private_modes(trial, lost):
    """Keys, pending proposals, notes' database and kept copies are for their owner alone, even under umask 0."""
    with Place(trial.built, inject=False) as place:
        place.run("inject", umask=0)
        with place.server(umask=0) as server:
            server.call("engram_save", {"text": f"TYPE: rule | TEXT: {statement(3)}", "scope": "workspace"})
        with place.server("mcp", "--project", "trial", umask=0) as server:
            server.call("mem_save", {"title": "a", "content": statement(4)})
        private = [place.store("pending-approvals.json")]
        for folder, folders, names in os.walk(os.path.join(place.home, ".engram")):
            private += [os.path.join(folder, name) for name in folders + names]
        for path in private:
            if os.path.exists(path) and stat.S_IMODE(os.stat(path).st_mode) & 0o077 and not passable(path):
                lost.append(f"{os.path.relpath(path, place.root)} has mode {stat.S_IMODE(os.stat(path).st_mode):03o}")
        return len(private)


def passable(path):
    """A file inside a folder of mode 700 can't be reached, whatever its own mode."""
    folder = os.path.dirname(path)
    while os.path.basename(folder) != "home" and len(folder) > 1:
        if not stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
            return True
        folder = os.path.dirname(folder)
    return False
