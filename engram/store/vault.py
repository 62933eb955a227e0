"""One store on disk: its layout, containment, memory files, hashes and ignore rules.

Reads and checks; `writing` writes. Must not know ranking, approval or settings. Layout: store.md.
"""
from __future__ import annotations

import os
import stat

from engram import files
from engram.errors import MemoryFileError, NotFound, Refused, StorageError, diagnostic
from engram.store import hashes, ids, ignore, journal, memory

DURABLE = ("rules", "skills", "knowledge")
LOCAL = (  # what Git is told to ignore: notes, pending proposals, private evidence, derived files, locks
    "working/",
    "pending-approvals.json",
    "traces/tr_private_*",
    "inbox/private-*",
    "journal.json",
    "index.sqlite*",
    "uses.sqlite*",
    "*.lock",
    ".*.tmp",
)
IGNORE_HEADER = "# Engram: derived and local files; the memories themselves belong into Git."


class Store:
    """A workspace or global store. `boundary` is the folder that must hold its real path."""

    def __init__(self, scope, root, *, boundary):
        self.scope = scope
        self.root = root
        self.boundary = boundary
        self.user_dir = None  # set by the Place: where the key of the derived index lies

    def __repr__(self):
        return f"<Store {self.scope} {self.root}>"

    @property
    def exists(self):
        """Whether the store's folder is there. Raises Refused when a link leads it out of the workspace."""
        if not os.path.isdir(self.root):
            return False
        if _leads_out(self.root, self.boundary):
            raise Refused(f"{self.root} is a link that leads out of {self.boundary}; it is not used.",
                          hint="Make it a folder, or set ENGRAM_GLOBAL_DIR for a store elsewhere.")
        return True

    def path(self, rel):
        """Return the absolute path of a relative one with `/`. Raises Refused if it could lead outside.

        Both the words and the links on disk are looked at (cases SE-01, SE-02).
        """
        parts = rel.split("/")
        if not rel or os.path.isabs(rel) or "\\" in rel or "\0" in rel or any(part in ("", ".", "..") for part in parts) \
                or ":" in parts[0][1:2]:
            raise Refused(f"`{rel[:80]}` is not a path inside the store.")
        path = os.path.join(self.root, *parts)
        if _leads_out(path, self.root):
            raise Refused("a link leads out of the store; it is not followed.", file=path)
        return path

    def lock(self, *, timeout=10.0):
        """Return the store's writer lock, to be held in a `with` block."""
        return files.lock(self.path("store.lock"), timeout=timeout)

    def files(self, faults=None):
        """Yield (rel, stat result) of each memory file under rules/, skills/, knowledge/, in path order.

        What can't be a memory (links out, devices, files over 1 MiB) is appended to `faults` as diagnostics
        when a list is given, and left out.
        """
        for folder in DURABLE:
            yield from self._walk(folder, faults)

    def _walk(self, folder, faults):
        try:
            with os.scandir(os.path.join(self.root, folder)) as rows:
                found = sorted(rows, key=lambda row: row.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            _fault(faults, self.scope, folder, "unreadable", f"can't be listed: {error.strerror}")
            return
        for row in found:
            rel = f"{folder}/{row.name}"
            if row.name.startswith("."):
                continue
            if not row.name.isascii() and any("\ud800" <= c <= "\udfff" for c in row.name):
                shown = rel.encode("utf-8", "backslashreplace").decode()
                _fault(faults, self.scope, shown, "name", "a name that is not UTF-8; not read")
                continue
            try:
                if row.is_symlink():
                    if _leads_out(row.path, self.root):
                        _fault(faults, self.scope, rel, "link", "a link that leads out of the store; not read")
                        continue
                    if row.is_dir():
                        _fault(faults, self.scope, rel, "link", "a link to a folder; not followed")
                        continue
                if row.is_dir():
                    yield from self._walk(rel, faults)
                    continue
                if not row.name.endswith(".md"):
                    continue
                found_stat = row.stat()
            except OSError as error:
                _fault(faults, self.scope, rel, "unreadable", f"can't be read: {error.strerror}")
                continue
            if not stat.S_ISREG(found_stat.st_mode):
                _fault(faults, self.scope, rel, "not-a-file", "not a regular file; not read")
            elif found_stat.st_size > memory.LARGEST:
                _fault(faults, self.scope, rel, "too-large", f"larger than 1 MiB ({found_stat.st_size:,} bytes); not read")
            else:
                yield rel, found_stat

    def read_bytes(self, rel):
        """Return the bytes of a file of the store. Raises NotFound, Refused, StorageError."""
        raw = files.read_regular(self.path(rel), limit=memory.LARGEST)
        if raw is None:
            raise NotFound("there is no such file.", file=f"{self.scope}:{rel}")
        return raw

    def read(self, rel):
        """Return the Memory in a file. Raises MemoryFileError, NotFound, Refused, StorageError."""
        return memory.parse(self.read_bytes(rel), rel, self.scope)

    def memories(self, faults=None):
        """Yield every memory that can be read, in path order; the others go to `faults` as diagnostics.

        Two files with one id: the first by path counts, the other is a fault (case ST-17).
        """
        seen = {}
        for rel, _ in self.files(faults):
            try:
                found = self.read(rel)
            except (MemoryFileError, StorageError, NotFound, Refused) as error:
                faults is not None and faults.append(fault_of(error, self.scope, rel))
                continue
            first = seen.setdefault(found.id.lower(), rel)
            if first != rel:
                _fault(faults, self.scope, rel, "duplicate-id", f"has the id `{found.id}` of {first}; only that one is used")
                continue
            yield found

    def find(self, id):
        """Return the durable memory with an id, without regard to case. Raises NotFound, Refused.

        The usual file names are looked at first; a file whose name is not its id costs a pass over all.
        """
        ids.check(id)
        for folder in DURABLE:
            try:
                found = self.read(f"{folder}/{id}.md")
            except (MemoryFileError, NotFound, StorageError):
                continue
            if found.id.lower() == id.lower():
                return found
        for found in self.memories():
            if found.id.lower() == id.lower():
                return found
        raise NotFound(f"there is no memory `{id}` in the {self.scope} store.")

    def hashes(self):
        """Return the approved Hashes; an unfinished commit counts as done (`journal`)."""
        found = hashes.parse(self.raw_hashes())
        for rel, sha256 in journal.approved(self.read_journal()):
            found.add(rel, sha256)
        return found

    def raw_hashes(self):
        """Return the bytes of the hashes file, or None."""
        return files.read_regular(self.path(hashes.FILE), limit=64 * memory.LARGEST)

    def read_journal(self):
        """Return the steps of an unfinished commit, or an empty list; what is no file of ours has none."""
        try:
            return journal.parse(files.read_regular(self.path(journal.FILE), limit=64 * memory.LARGEST))
        except (Refused, StorageError):  # a link or a folder of that name must not stop reads; a write will name it
            return []

    def approved(self, found, known=None):
        """Whether a Memory's content is what was approved; a CRLF checkout of it counts (case GT-03)."""
        known = self.hashes() if known is None else known
        return known.approves(found.rel, found.sha256) or self.crlf_of_approved(found.rel, found.raw, known)

    @staticmethod
    def crlf_of_approved(rel, raw, known):
        """Whether bytes are an approved content with its line ends turned to CRLF."""
        return b"\r\n" in raw and known.approves(rel, files.sha256(raw.replace(b"\r\n", b"\n")))

    def ignored(self):
        """Return a function of a path that tells whether `.engramignore` hides it.

        A workspace's file lies in the workspace folder, a global store's in the store (store.md, Settings).
        """
        raw = None
        try:
            if not _leads_out(self.ignore_file, self.boundary):
                raw = files.read_regular(self.ignore_file, limit=ignore.LARGEST)
        except StorageError:
            pass
        return ignore.compile(raw.decode("utf-8-sig", "replace") if raw else "")

    @property
    def ignore_file(self):
        """The path of the `.engramignore` that counts for this store."""
        return os.path.join(self.boundary, ignore.FILE)

    def prepare_local(self):
        """Add the missing lines to the store's `.gitignore`, before a first local file is written there.

        Raises StorageError, Refused.
        """
        path = self.path(".gitignore")
        for last_try in (False, False, True):
            before = files.read_regular(path, limit=memory.LARGEST)
            have = (before or b"").decode("utf-8", "replace").splitlines()
            missing = [line for line in LOCAL if line not in have]
            if not missing:
                return
            header = [] if IGNORE_HEADER in have else [IGNORE_HEADER]
            glue = b"\n" if before and not before.endswith(b"\n") else b""
            try:
                files.replace(path, (before or b"") + glue + "\n".join([*header, *missing, ""]).encode(), expected=before)
            except files.Changed:  # another process does the same just now
                if last_try:
                    raise


def fault_of(error, scope, rel):
    """Return the diagnostic of an error about one memory file."""
    kind = getattr(error, "kind", "unreadable")
    where = f" (line {error.line})" if error.line else ""
    return diagnostic(f"memory.{kind}", "warning", error.message + where, file=f"{scope}:{rel}",
                      remediation="Mend the file, then run engram rehash for it." if kind != "conflict" else "Resolve the conflict.")


def _fault(faults, scope, rel, kind, message):
    if faults is not None:
        faults.append(diagnostic(f"memory.{kind}", "warning", message, file=f"{scope}:{rel}"))


def _leads_out(path, root):
    """Whether a path that is written below a root lies elsewhere on disk: a link leads there."""
    at = root.rstrip(os.sep)
    if os.name != "nt" and (path + os.sep).startswith(at + os.sep):  # on Windows, junctions are no links to lstat
        for part in path[len(at) + 1:].split(os.sep):
            at += os.sep + part
            try:
                if stat.S_ISLNK(os.lstat(at).st_mode):
                    break
            except FileNotFoundError:
                return False
            except (OSError, ValueError):
                break
        else:
            return False  # without a link a path is what it says
    return not _inside(os.path.realpath(path), os.path.realpath(root))


def _inside(path, root):
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
