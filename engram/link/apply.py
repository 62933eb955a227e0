"""Carry out plans: through the one door for files, under one lock per user. Must not know formats or hosts.

The order makes a crash harmless: the copy, then the record of what is about to be done, then the file, whole or not
at all; an undoing goes the other way round. A record of something that did not happen is told by the file's content.
"""
from __future__ import annotations

import os

from engram import files
from engram.errors import Refused, StorageError
from engram.link import launcher, plan, records

LARGEST = 64 * 1024 * 1024
WAIT = 60  # seconds: a dozen linkers on a busy machine take their turns
TRIES = 20  # a host may write its own file at any time; each of these starts anew from what it wrote


def read(path):
    """Return a host file's bytes, None when there is none. Raises StorageError, also for what is no regular file."""
    return files.read_regular(path, limit=LARGEST)


def preview(planned, user_dir, *, undo=False, overlay=None):
    """Return the changes that a plan comes to now. Writes nothing; `overlay` {path: bytes | None} is what earlier plans
    of the same run would have made of files."""
    known = records.Records(user_dir)
    look = lambda path: overlay[path] if overlay and path in overlay else read(path)
    return plan.changes(planned, look, _rows(planned, known), undo=undo)


def link(planned, site):
    """Do what a plan says and return its changes and their copies as [(Change, copy path | None)].

    Raises what planning raises, before anything is written; StorageError and Busy.
    """
    if not preview(planned, site.user_dir) and not _lacks_copy(planned, site):
        return []
    return _in_turn(_link, planned, site)


def unlink(planned, site):
    """Take out what a plan puts in and return [(Change, copy path | None)]. Nothing to do writes nothing (case CR-01)."""
    if not preview(planned, site.user_dir, undo=True):
        return []
    return _in_turn(_unlink, planned, site)


def _in_turn(work, planned, site):
    """Do the work under the user's lock; when a host writes one of its files meanwhile, start anew from what it wrote."""
    done = []
    files.ensure_dir(site.user_dir, mode=0o700)
    with files.lock(os.path.join(site.user_dir, "links.lock"), timeout=WAIT):
        for left in reversed(range(TRIES)):
            try:
                work(planned, site, done)
                return done
            except files.Changed:
                if not left:
                    raise


def _link(planned, site, done):
    known = records.Records(site.user_dir)
    made = plan.changes(planned, read, _rows(planned, known))
    _refuse_outside(made, site)
    if planned.copy:
        _keep_program(site)
    copies = {}
    for change in made:
        row = known.get(change.path) or {}
        copy = row.get("copy")
        if change.before not in (None, change.after) and not row.get("created") and not (copy and os.path.exists(copy)):
            copy = known.keep_copy(change.path, change.before)
        known.files[records.key(change.path)] = change.record | {"copy": copy}
        known.folders += _missing_folders(os.path.dirname(change.path))
        copies[change.path] = copy if change.before is not None else None
    known.save(ahead=True)
    for change in made:
        _write(change, site)
        done.append((change, copies[change.path]))
    known.save()


def _unlink(planned, site, done):
    known = records.Records(site.user_dir)
    made = plan.changes(planned, read, _rows(planned, known), undo=True)
    _refuse_outside(made, site)
    for change in made:
        row = known.get(change.path) or {}
        if change.after is None:
            files.remove(os.path.realpath(change.path) if os.path.islink(change.path) else change.path, expected=change.before)
        elif change.after != change.before:
            files.replace(change.path, change.after, expected=change.before)
        if change.record is None:
            known.files.pop(records.key(change.path), None)
        else:
            known.files[records.key(change.path)] = change.record | {"copy": row.get("copy")}
        done.append((change, row.get("copy")))
    for change, _ in done:
        if change.after is None:
            _remove_folders(os.path.dirname(records.key(change.path)), set(known.folders))
    known.save()


def _refuse_outside(made, site):
    """Refuse a project's file that a link in the project leads out of it: a repository could aim it at the user's own.

    A user's file may be a link to anywhere (case CF-01). Raises Refused.
    """
    for change in made:
        if site.user or not _inside(change.path, site.workspace):
            continue
        real = os.path.realpath(change.path)
        if not _inside(real, os.path.realpath(site.workspace)):
            raise Refused(f"a link leads out of this project, to {real}; nothing was written.", file=change.path,
                          hint="Make it a file of the project, or edit it by hand.")


def _rows(planned, known):
    return {edit.path: known.get(edit.path) for edit in planned.edits}


def _write(change, site):
    if change.after == change.before:
        return
    folder = os.path.dirname(change.path)
    private = site.user or not _inside(change.path, site.workspace)
    files.ensure_dir(folder, mode=0o700 if private else 0o777)
    files.sweep(folder)
    # a new config under the home folder is its owner's alone; in a project the umask decides (case CF-03)
    files.replace(change.path, change.after, expected=change.before, mode=0o600 if private else None)


def _inside(path, folder):
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _missing_folders(folder):
    missing = []
    while folder and not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        missing.append(records.key(folder))
        folder = os.path.dirname(folder)
    return missing


def _remove_folders(folder, ours):
    while folder in ours:
        try:
            os.rmdir(folder)
        except OSError:  # somebody keeps something there
            return
        folder = os.path.dirname(folder)


def _lacks_copy(planned, site):
    return planned.copy and not os.path.exists(launcher.kept_copy(site, "engram"))


def _keep_program(site):
    """Keep the single file under both its names in the user folder, for the version that runs."""
    data = files.read(site.archive)
    if data is None:
        raise StorageError("the single file that runs is no longer there.", file=site.archive)
    path = launcher.kept_copy(site)
    if files.read(path) != data:
        files.ensure_dir(os.path.dirname(path), mode=0o700)
        files.replace(path, data, mode=0o755)
    other = launcher.kept_copy(site, "engram")
    if not os.path.exists(other):
        try:
            os.symlink(os.path.basename(path), other)
        except OSError:  # a system or a file system without symlinks
            files.replace(other, data, mode=0o755)
