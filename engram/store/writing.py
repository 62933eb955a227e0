"""Writing into a store: several files as one commit, under the store's lock.

The only writer of memory files, the hashes file and what lies beside them. Must not know why something is
written: whoever calls has the human's approval. Steps go to the journal first (`journal`), then to the files,
then to the hashes file; then the journal goes. A crash before the journal is whole leaves nothing, one after
it leaves work that readers count as done and the next writer finishes.
"""
from __future__ import annotations

import os

from engram import files
from engram.errors import StorageError
from engram.store import hashes, journal, memory
from engram.store.journal import Step


class Writer:
    """Hold a store's lock in a `with` block, collect steps, and `commit` them as one.

    On entry an unfinished commit of somebody who died is finished. Leaving the block without `commit` writes
    nothing. Raises Busy, StorageError, Refused.
    """

    def __init__(self, store, *, timeout=10.0):
        self.store = store
        self.steps = []
        self._lock = store.lock(timeout=timeout)

    def __enter__(self):
        self.store.prepare_local()
        self._lock.__enter__()
        try:
            finish(self.store)
        except BaseException:
            self._lock.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._lock.__exit__()

    def put(self, rel, data, *, hashed=True):
        """Write a file; `hashed` records its content as approved."""
        self.steps.append(Step("write", rel, data, files.sha256(data) if hashed else None))

    def drop(self, rel):
        """Remove a file and its recorded hash."""
        self.steps.append(Step("drop", rel, None, None))

    def approve(self, rel, sha256):
        """Record the hash of content that is on disk already; None forgets the path."""
        self.steps.append(Step("approve", rel, None, sha256))

    def commit(self):
        """Carry out the steps, all or none. Returns the paths."""
        if not self.steps:
            return []
        for step in self.steps:
            self.store.path(step.rel)  # refused before anything is written
        if any(step.op != "approve" for step in self.steps):
            files.replace(self.store.path(journal.FILE), journal.dump(self.steps), mode=0o600)
            finish(self.store)
        else:
            record(self.store, self.steps)  # hashes alone are one file: no journal needed
        made, self.steps = [step.rel for step in self.steps], []
        return made


def finish(store):
    """Finish the commit in the journal, if one is there; call with the lock held."""
    path = store.path(journal.FILE)
    if not os.path.lexists(path):
        return
    steps = store.read_journal()
    for step in sorted(steps, key=lambda step: step.op == "drop"):  # nothing goes before what replaces it is there
        target = store.path(step.rel)
        if step.op == "drop":
            files.remove(target)
        elif step.op == "write" and files.read(target) != step.data:
            files.ensure_dir(os.path.dirname(target))
            files.replace(target, step.data, mode=0o600 if step.rel in journal.LOOSE else None)
    record(store, steps)
    files.remove(path)
    for folder in {os.path.dirname(store.path(step.rel)) for step in steps}:
        files.sweep(folder)


def record(store, steps):
    """Bring the hashes file up to date with steps; call with the lock held.

    A file with conflict markers or damage is written whole here: each path keeps the hash that fits its file,
    else the first one read.
    """
    changes = {step.rel: step.sha256 for step in steps if step.sha256 or step.op != "write"}
    raw = store.raw_hashes()
    known = hashes.parse(raw)
    if not changes and known.whole:
        return
    entries = known.entries
    for rel, others in known.extra.items():
        found = files.read_regular(store.path(rel), limit=memory.LARGEST)
        fits = files.sha256(found) if found is not None else None
        if fits in others:
            entries[rel] = fits
    made = hashes.rewritten(raw if known.whole else None, entries, changes)
    if made != raw:
        if not known.whole:
            _keep_damaged(store, raw)
        files.replace(store.path(hashes.FILE), made, expected=raw)


def _keep_damaged(store, raw):
    if b"<<<<<<< " not in raw:  # a conflict's two sides are in Git; damage may be all there is
        files.replace(store.path(f".damaged-hashes-{files.sha256(raw)[:8]}.tmp"), raw)


def archive(store, id, reason, stamp):
    """Move a memory to archive/, with its hash. Returns (old path, new path). Raises NotFound, Refused.

    `stamp` is the present instant as text. The three comment lines in front are those that the earlier
    implementation writes (upstream-format.md, "Archive"); the rest of the file stays byte for byte.
    """
    with Writer(store) as writer:
        found = store.find(id)
        reason = " ".join(reason.split()).replace("--", "- -") or "No reason provided"
        banner = f"<!-- Archived by Engram on {stamp} -->\n<!-- Original: {found.key} -->\n<!-- Reason: {reason} -->\n\n"
        goal = _free(store, f"archive/{stamp[:10]}/{found.rel}")
        bom = b"\xef\xbb\xbf" if found.raw.startswith(b"\xef\xbb\xbf") else b""
        writer.put(goal, banner.encode() + found.raw[len(bom):])
        writer.drop(found.rel)
        writer.commit()
    return found.rel, goal


def make(store):
    """Make the store's folders and its `.gitignore`. Returns whether anything was new. Raises StorageError."""
    fresh = not os.path.isdir(store.root)
    files.ensure_dir(store.root)
    if not store.exists:
        raise StorageError("the store could not be made.", file=store.root)
    before = files.read(store.path(".gitignore"))
    store.prepare_local()
    return fresh or before is None


def _free(store, rel):
    if not os.path.lexists(store.path(rel)):
        return rel
    stem, number = rel.removesuffix(".md"), 2
    while os.path.lexists(store.path(f"{stem}-{number}.md")):
        number += 1
    return f"{stem}-{number}.md"


