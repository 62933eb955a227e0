"""Stores made for a test: memories as files with their hashes, as an approved commit leaves them."""
from __future__ import annotations

import json
import os

from engram import files
from engram.store import index, memory, places

FOLDERS = {"rule": "rules", "skill": "skills", "knowledge": "knowledge"}


class Shelf:
    """A workspace with a store. `put` writes a memory and approves it; `place` is made anew at each look."""

    def __init__(self, root, env=None):
        self.root = str(root)
        self.env = dict(os.environ if env is None else env)
        os.makedirs(os.path.join(self.root, ".git"), exist_ok=True)
        self.folder = os.path.join(self.root, ".agents", ".engram")
        os.makedirs(self.folder, exist_ok=True)

    @property
    def place(self):
        return places.find(self.root, env=self.env)

    @property
    def store(self):
        return self.place.workspace

    def path(self, rel):
        return os.path.join(self.folder, *rel.split("/"))

    def text(self, id, content, title=None, type="knowledge", **header):
        """Return the bytes of a memory file."""
        made = {"id": id, "type": type, "schema_version": 3, "created": "2026-01-01", "updated": "2026-01-01", "revision": 1,
                "valid_from": "2026-01-01", "last_confirmed": "2026-01-01", "author_name": "Sam Field",
                "author_email": "sam.field@example.com", "authority": "reference" if type == "knowledge" else "instruction", **header}
        return memory.new(made, title or id.replace("-", " ").capitalize(), [("Content", content)])

    def put(self, id, content, title=None, type="knowledge", rel=None, approve=True, **header):
        """Write a memory; return its path."""
        rel = rel or f"{FOLDERS[type]}/{id}.md"
        self.write(rel, self.text(id, content, title, type, **header), approve=approve)
        return rel

    def write(self, rel, data, *, approve=False):
        """Write bytes over a file, in place as an editor may."""
        os.makedirs(os.path.dirname(self.path(rel)), exist_ok=True)
        with open(self.path(rel), "wb") as file:
            file.write(data)
        if approve:
            self.approve(rel)

    def approve(self, *rels):
        """Put the present hashes of files into the hashes file; all files when none is named."""
        hashes = self.hashes()
        for rel in rels or [rel for rel, _ in self.store.files()]:
            with open(self.path(rel), "rb") as file:
                hashes[rel] = files.sha256(file.read())
        self.set_hashes(hashes)

    def hashes(self):
        try:
            with open(self.path("memory.hashes.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def set_hashes(self, hashes):
        with open(self.path("memory.hashes.json"), "w", encoding="utf-8") as file:
            json.dump(hashes, file, indent=2)

    def fill(self, texts):
        """Put many memories at once: {id: content}."""
        for id, content in texts.items():
            self.put(id, content, approve=False)
        self.approve()


def forget_indexes():
    """Close the indexes that this process keeps open, as if it had ended."""
    index.close_all()
