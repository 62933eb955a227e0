"""What `doctor` finds in this machine's Engram and in the stores. Must not know hosts.

Ids: python.version, python.sqlite, path.engram, path.version, user.folder, user.private, store.missing,
store.global-missing, store.ignore, store.unfinished, store.leftover, store.not-a-file, store.ignore-file,
hash.mismatch, hash.ok, index.state,
memory.flagged, approval.pending, approval.changed, approval.unreadable, trust.workspace, trust.changed, and those of
diagnostics that other rooms make: hashes.*, memory.* and config.*.
"""
from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys

from engram import __version__, files, propose
from engram.cli import trust as looks
from engram.errors import EngramError, diagnostic
from engram.propose import approvals
from engram.store import ignore, index_rows, integrity, places, trust, vault

# Names that Engram reads or writes in a store, where a clone could bring a link or a folder.
OWN_FILES = ("memory.hashes.json", "engram.config.json", ".gitignore", "pending-approvals.json", "journal.json", "index.sqlite",
             "index.lock", "uses.sqlite", "store.lock")
SECONDS = 10  # for a program on PATH to say its version


def findings(context):
    """Return the diagnostics of interpreter, PATH, user folder, settings and stores."""
    place = context.place
    found = [*_machine(context), *_user_folder(place), *place.all_diagnostics()]
    missing = places.no_global_note(place)
    found += [missing] if missing else []
    if not place.stores:
        found.append(diagnostic("store.missing", "info", f"there is no store in {place.root}.",
                                remediation="Run engram inject to make one."))
    for store in place.stores:
        found += _store(store)
    if place.workspace.exists and not place.global_only:
        found += looks.findings(place)
    return found + (_pending(place) if place.stores else [])


def _machine(context):
    version = ".".join(map(str, sys.version_info[:3]))
    yield diagnostic("python.version", "info", f"Python {version}, {sys.executable}")
    yield diagnostic("python.sqlite", "info", f"SQLite {sqlite3.sqlite_version}")
    for name in ("engram", "engram-mcp"):
        path = shutil.which(name, path=context.env.get("PATH", os.defpath))
        if path is None:
            yield diagnostic("path.engram", "warning", f"`{name}` is not on PATH; hosts can start Engram only by a path or through npx.",
                             remediation="Run engram install.")
            continue
        said = _version(path, context)
        if said == __version__:
            yield diagnostic("path.engram", "info", f"`{name}` is {said}", file=path)
        else:
            yield diagnostic("path.version", "warning", f"`{name}` on PATH {f'is {said}' if said else 'does not say its version'}; "
                             f"this is {__version__}.", file=path, remediation="Run engram install, or mend the order on PATH.")


def _version(path, context):
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=SECONDS,
                              stdin=subprocess.DEVNULL, env=dict(context.env), check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()[:40]


def _user_folder(place):
    if place.user_dir is None:
        yield diagnostic("user.folder", "error", "no home folder can be told; proposals and trust can't be recorded.",
                         remediation="Set HOME or ENGRAM_DATA_DIR.")
        return
    there = place.user_dir
    while not os.path.exists(there) and os.path.dirname(there) != there:
        there = os.path.dirname(there)
    if not (os.path.isdir(there) and os.access(there, os.W_OK)):
        yield diagnostic("user.folder", "warning", "can't be written: proposals and trust can't be recorded.", file=place.user_dir,
                         remediation="Make it writable, or set ENGRAM_DATA_DIR.")
    record = os.path.join(place.user_dir, trust.FILE)
    if os.path.exists(record) and os.name == "posix" and stat.S_IMODE(os.stat(record).st_mode) & 0o022:
        yield diagnostic("user.private", "error", "others can write it, and it says which workspaces you trust.", file=record,
                         remediation=f"chmod 600 {record}")


def _store(store):
    count, problems, notes = integrity.check(store)
    yield from notes
    faults = []
    for found in store.memories(faults):
        why = index_rows.scanned(found)  # not from the index: doctor writes nothing
        if why:
            yield diagnostic("memory.flagged", "warning", f"left out of what agents get: {why}", file=found.key,
                             remediation="Mend the memory (engram edit), or archive it.")
    yield from faults
    for rel, problem in problems:
        yield diagnostic("hash.mismatch", "error", problem, file=f"{store.scope}:{rel}",
                         remediation="Look at the change, then engram rehash it or restore the file.")
    if not problems:
        yield diagnostic("hash.ok", "info", f"{count} memories, all as approved", file=store.root)
    yield from _index(store)
    if store.read_journal():
        yield diagnostic("store.unfinished", "info", "a commit was interrupted; reads see it as done, the next write finishes it.",
                         file=store.root)
    odd = [name for name in OWN_FILES if os.path.lexists(os.path.join(store.root, name)) and not _is_file(store, name)]
    for name in odd:
        yield diagnostic("store.not-a-file", "error", "a link that leads out of the store, or no file at all; it is not used.",
                         file=os.path.join(store.root, name), remediation="Find out who put it there, and delete it.")
    try:
        files.read_regular(store.ignore_file, limit=ignore.LARGEST)
    except EngramError as error:
        yield diagnostic("store.ignore-file", "warning", f"{error.message} It hides nothing.", file=store.ignore_file,
                         remediation="Make it a file of at most 64 KiB.")
    ignored = os.path.join(store.root, ".gitignore")
    lines = (None if ".gitignore" in odd else files.read(ignored)) or b""
    lines = lines.decode("utf-8", "replace").splitlines()
    missing = [line for line in vault.LOCAL if line not in lines]
    if missing and store.scope == "workspace":
        yield diagnostic("store.ignore", "warning", f"Git is not told to ignore {', '.join(missing)}.", file=ignored,
                         remediation="Run engram inject.")
    for name in sorted(os.listdir(store.root)):
        if name.startswith(".") and name.endswith(files.SUFFIX):
            yield diagnostic("store.leftover", "info", "a temporary file that an interrupted write left; it harms nothing.",
                             file=os.path.join(store.root, name), remediation="Delete it.")


def _is_file(store, name):
    try:
        return stat.S_ISREG(os.stat(store.path(name)).st_mode)
    except (OSError, EngramError):
        return False


def _index(store):
    path = os.path.join(store.root, "index.sqlite")
    if os.path.lexists(path) and not _is_file(store, "index.sqlite"):
        return  # named already
    if not os.path.exists(path):
        yield diagnostic("index.state", "info", "no index yet; the next load builds it", file=store.root)
        return
    try:
        connection = sqlite3.connect(path, timeout=2)
        try:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        said = str(error)
    if said == "ok":
        yield diagnostic("index.state", "info", "the index is sound", file=path)
    else:
        yield diagnostic("index.state", "warning", f"the index is damaged ({said}); the next load builds it anew.", file=path,
                         remediation="Run engram rebuild-index to do so now.")


def _pending(place):
    for store in place.stores:
        try:
            _, raw = approvals.read(store)
        except EngramError:
            continue  # what is no file was named already
        if raw and raw.strip() and approvals.whole(raw) is None:
            return [diagnostic("approval.unreadable", "warning", "not a file of pending proposals; the next proposal begins it anew.",
                               file=store.path(approvals.FILE), remediation="Delete it.")]
    try:
        waiting = propose.pending(place)
    except EngramError as error:
        return [diagnostic("approval.changed", "error", error.message, file=error.file, remediation=error.hint)]
    if not waiting:
        return []
    return [diagnostic("approval.pending", "info", f"{len(waiting)} proposals wait for your answer.", remediation="Run engram pending.")]
