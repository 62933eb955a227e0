"""No room: a file-size limit, a full disk, a read-only disk. A clear error, the old content intact, reads still work."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile

from tests.torture.place import Place, bytes_below, leftovers, statement

READS = (
    ("load", "how does the billing queue retry"),
    ("search", "billing"),
    ("list",),
    ("status",),
    ("verify",),
    ("doctor",),
)
CLEAR = (0, 1, 3, 5)  # done, the answer is no, a human is needed, I/O


def run(trial):
    lost, tried = [], 0
    for limit in (
        (0, 64, 512, 4096, 16384) if not trial.long else (0, 1, 64, 100, 256, 512, 1000, 2048, 4096, 8192, 16384, 32768)
    ):
        tried += file_size(trial, limit, lost)
    tried += full_disk(trial, lost)
    tried += read_only(trial, lost)
    return f"{tried} commands without room", lost


def snapshot(*folders):
    return dict(bytes_below(*folders))


def clear(done, what, lost):
    """Hold one finished command to: a known exit code, one clear message, no traceback."""
    if done.returncode not in CLEAR:
        lost.append(f"{what}: exit {done.returncode}: {done.stderr.strip()[-200:]}")
    if "Traceback" in done.stderr or "internal error" in done.stderr:
        lost.append(f"{what}: {done.stderr.strip()[-200:]}")
    if done.returncode == 5 and not done.stderr.strip():
        lost.append(f"{what}: says nothing")


def file_size(trial, limit, lost):
    """RLIMIT_FSIZE: a write fails half-way with EFBIG, as on a full disk (case CF-05)."""
    with Place(trial.built) as place:
        place.save(*(statement(number) for number in range(10)))
        config = os.path.join(place.workspace, ".gemini", "settings.json")
        os.makedirs(os.path.dirname(config))
        with open(config, "w") as file:
            file.write('{"mcpServers": {}, "padding": "' + "x" * 20000 + '"}\n')
        before = snapshot(place.workspace)
        files = place.memories()
        capped = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
        writes = (
            ("save", "--force", "--scope", "workspace", f"TYPE: knowledge | TEXT: {statement(900)}"),
            ("link", "gemini"),
            ("config", "set", "load.limit", "5"),
            ("archive", "--reason", "x", os.path.basename(min(files))[:-3]),
            ("inject",),
        )
        for words in writes:
            done = place.run(*words, code=None, **capped)
            clear(done, f"limit {limit}: {words[0]}", lost)
            now = place.memories()
            lost += [
                f"limit {limit}: {words[0]} damaged {name}"
                for name, data in files.items()
                if name in now and now[name] != data or name not in now and done.returncode
            ]
            files = now
            if done.returncode:
                after = snapshot(place.workspace)
                changed = [path for path in before if before[path] != after.get(path) and not derived(path)]
                lost += [f"limit {limit}: {words[0]} failed and changed {path}" for path in changed]
            before = snapshot(place.workspace)
        for words in READS:
            clear(place.run(*words, code=None, **capped), f"limit {limit}: {words[0]}", lost)
        if place.run("verify", code=None).returncode:
            lost.append(f"limit {limit}: verify is not clean afterwards")
        lost += [f"limit {limit}: left over {path}" for path in leftovers(place.root)]
        place.save("The disk has room again, so this walrus is kept.")
        return len(writes) + len(READS)


def derived(path):
    """Return whether a file is derived or local state, which may lag."""
    name = os.path.basename(path)
    return (
        name.startswith((".index", "index"))
        or name.endswith((".db", ".sqlite", "-wal", "-shm", ".lock", ".journal", ".db-journal"))
        or "use" in name
    )


def full_disk(trial, lost):
    """A file system of 2 MB filled to the brim; needs the right to mount."""
    folder = tempfile.mkdtemp(prefix="engram-full-")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs", folder], capture_output=True
    ).returncode:
        shutil.rmtree(folder)
        return 0
    tried = 0
    try:
        place = Place(trial.built, root=folder)
        place.save(*(statement(number) for number in range(10)))
        before = place.memories()
        for spare in (0, 1, 2, 6, 12):
            filler = os.path.join(folder, "filler")
            with open(filler, "wb", buffering=0) as file:
                fill(file)
            os.truncate(filler, max(0, os.path.getsize(filler) - spare * 4096))
            for words in (
                ("save", "--force", "--scope", "workspace", f"TYPE: knowledge | TEXT: {statement(700 + spare)}"),
                ("link", "claude"),
                *READS,
            ):
                done = place.run(*words, code=None)
                tried += 1
                clear(done, f"full disk, {spare} pages: {words[0]}", lost)
                if words in READS[:2] and done.returncode:
                    lost.append(f"full disk, {spare} pages: {words[0]} does not read: {done.stderr.strip()[-200:]}")
            now = place.memories()
            lost += [f"full disk: {name} changed" for name, data in before.items() if now.get(name) != data]
            os.unlink(filler)
            if place.run("verify", code=None).returncode:
                lost.append(f"full disk, {spare} pages: verify is not clean afterwards")
        lost += [f"full disk: left over {path}" for path in leftovers(folder)]
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
    return tried


def fill(file):
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass


def read_only(trial, lost):
    """A read-only mount of a whole project and home: reads work, writes say so; needs the right to mount."""
    with Place(trial.built) as place:
        place.save(*(statement(number) for number in range(10)))
        if subprocess.run(["mount", "--bind", place.root, place.root], capture_output=True).returncode:
            return 0
        try:
            if subprocess.run(["mount", "-o", "remount,bind,ro", place.root], capture_output=True).returncode:
                return 0
            for words in READS:
                done = place.run(*words, code=None)
                clear(done, f"read-only: {words[0]}", lost)
                if done.returncode and words[0] != "doctor":
                    lost.append(f"read-only: {words[0]} does not work: {done.stderr.strip()[-200:]}")
            writes = (
                ("save", "--force", f"TYPE: knowledge | TEXT: {statement(600)}"),
                ("link", "claude"),
                ("inject",),
                ("config", "set", "load.limit", "5"),
                ("note", "--force", "half way"),
            )
            for words in writes:
                done = place.run(*words, code=None)
                clear(done, f"read-only: {words[0]}", lost)
                if words[0] in ("save", "link") and done.returncode == 0:
                    lost.append(f"read-only: {words[0]} claims to have written")
            with place.server() as server:
                if (
                    "tools" not in server.request("tools/list")["result"]
                    or not server.data("engram_search", {"query": "unit"})["entries"]
                ):
                    lost.append("read-only: the server does not search")
            return len(READS) + len(writes) + 2
        finally:
            subprocess.run(["umount", "-l", place.root], capture_output=True)
