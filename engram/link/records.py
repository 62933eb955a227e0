"""What link remembers per user: files and folders that it made, how to undo an edit exactly, copies of what was there.

Everything is in the user folder: `links.json`, and `backups/`. Losing it costs exactness (an empty object that link
made stays behind), never a file: what is ours is judged by content. Must not know any format.
"""
from __future__ import annotations

import json
import os

from engram import files
from engram.errors import ConfigError

NAME = "links.json"


class Records:
    """`files` maps the key of a path to {"created", "marks", "copy"}; `folders` are those that link made."""

    __slots__ = ("before", "files", "folders", "user_dir")

    def __init__(self, user_dir):
        self.user_dir = user_dir
        self.before = files.read(os.path.join(user_dir, NAME))
        self.files, self.folders = {}, []
        if self.before is None:
            return
        try:
            found = json.loads(self.before)
            self.files, self.folders = dict(found["files"]), list(found["folders"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ConfigError("Engram's own notes of what it linked can't be read.", file=os.path.join(user_dir, NAME),
                              hint="Move the file away; links are then undone by what they look like.") from None

    def get(self, path):
        """Return the record of a file, or None."""
        return self.files.get(key(path))

    def save(self, *, ahead=False):
        """Write the records if they changed: `ahead` of a change, or after it, when rows of what is gone are left out."""
        rows = {path: row for path, row in sorted(self.files.items()) if ahead or os.path.lexists(path)}
        folders = sorted(path for path in set(self.folders) if ahead or os.path.isdir(path))
        data = (json.dumps({"version": 1, "files": rows, "folders": folders}, indent=1) + "\n").encode()
        if data != self.before:
            files.ensure_dir(self.user_dir, mode=0o700)
            files.replace(os.path.join(self.user_dir, NAME), data, mode=0o600)
            self.before = data

    def keep_copy(self, path, data):
        """Keep a copy of what a file holds before its first change, and return the copy's path."""
        folder = os.path.join(self.user_dir, "backups")
        files.ensure_dir(folder, mode=0o700)
        name = f"{files.sha256(key(path).encode('utf-8', 'surrogateescape'))[:8]}-{files.sha256(data)[:12]}-{os.path.basename(path)}"
        kept = os.path.join(folder, name)
        if files.read(kept) != data:
            files.replace(kept, data, mode=0o600)
        return kept


def key(path):
    """Return what a path is recorded under: its folder resolved, its own name kept (a linked dotfile is still itself)."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
