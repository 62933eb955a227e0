"""Approval tokens and the pending file (propose.md, Approval tokens).

A token is 256 random bits behind a tag of its workspace and its expiry time; only its SHA-256 is kept. Each
entry of `pending-approvals.json` is under an HMAC with a key that lies in the user's own folder, so
that what a human saw can't be exchanged for something else by whoever can write into the workspace.
A token is no proof of a human: it shows that the proposal exists, is whole, and was not used. Must not
know what a proposal means.
"""

from __future__ import annotations

import json
import os
import time
from binascii import a2b_base64, b2a_base64

from engram import files
from engram.errors import EngramError, IntegrityError, NotFound, StorageError

FILE = "pending-approvals.json"
KEY_FILE = "approvals.key"
SPENT_FILE = "approvals.spent"
LIFETIME = 30 * 60
WAITING, USED, REVOKED = "waiting", "used", "revoked"
LARGEST = 64 * 1024 * 1024
_VERSION = 1


class TokenUsed(EngramError):
    """The token was good once, and that was earlier."""

    code, exit_code = "ENG_APPROVAL_USED", 1


class TokenExpired(EngramError):
    """The token is older than 30 minutes."""

    code, exit_code = "ENG_APPROVAL_EXPIRED", 1


class TokenRevoked(EngramError):
    """A human said no, or the proposal was withdrawn."""

    code, exit_code = "ENG_APPROVAL_REVOKED", 1


class TokenUnknown(NotFound):
    """No proposal of this store has this token."""

    code = "ENG_APPROVAL_UNKNOWN"


class TokenForeign(IntegrityError):
    """The token was made for another workspace or by another user."""

    code = "ENG_APPROVAL_FOREIGN"


class PendingChanged(IntegrityError):
    """The pending proposal is not what was shown to the human."""

    code = "ENG_APPROVAL_CHANGED"


class Key:
    """The per-user key, and what it seals for one store. Nothing is made in the user's folder before `key`."""

    __slots__ = ("_key", "folder", "identity")

    def __init__(self, place, store):
        self.folder, self.identity, self._key = place.user_dir, os.path.realpath(store.root), None

    def check(self):
        """Raise StorageError when there is no user folder that can be written (exit 5), making nothing."""
        if self.folder is None:
            raise StorageError(
                "no home folder can be told, so there is nowhere to keep the approval key.",
                hint="Set ENGRAM_DATA_DIR. Reading works without.",
            )
        there = self.folder
        while not os.path.lexists(there) and os.path.dirname(there) != there:
            there = os.path.dirname(there)
        if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK) or _read_only(there):
            raise StorageError(
                "Engram's user folder can't be written, so a proposal can't be protected.",
                file=self.folder,
                hint="Make it writable or set ENGRAM_DATA_DIR. Reading works without.",
            )

    def key(self):
        """Return the key's bytes; made, once, with mode 600. Raises StorageError."""
        if self._key is None:
            made = self._present()
            if made is None:
                self.check()
                files.ensure_dir(self.folder, mode=0o700)
                try:
                    files.create(os.path.join(self.folder, KEY_FILE), os.urandom(32).hex().encode() + b"\n", mode=0o600)
                except files.Changed:
                    pass  # another process was first: its key counts
                made = self._present()
            self._key = made
        return self._key

    @property
    def made(self):
        """Whether there is a key already: without one no entry can be whole."""
        return self._present() is not None

    def _present(self):
        path = os.path.join(self.folder, KEY_FILE) if self.folder else None
        made = files.read(path) if path else None
        if made is not None and len(made.strip()) != 64:
            raise StorageError("this is not an approval key.", file=path, hint="Remove it: a new one is made, and pending proposals end.")
        return made.strip() if made is not None else None

    def mac(self, entry):
        """Return the HMAC over an entry and the store it is for, as hex."""
        body = {name: value for name, value in entry.items() if name != "mac"}
        return self._seal("entry", json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hex()

    def tag(self):
        """Return the four bytes that tell this user and store in a token."""
        return self._seal("token", b"")[:4]

    def _seal(self, purpose, data):
        return _hmac(self.key(), f"engram {purpose}\0{self.identity}\0".encode("utf-8", "surrogateescape") + data)

    def spend(self, token_sha256, until):
        """Note in the user's folder that a token is done, so that an old pending file put back does not revive it.

        The pending file has said so already: a folder that can't be written by now loses this second guard only.
        """
        path = os.path.join(self.folder, SPENT_FILE)
        try:
            with files.lock(path + ".lock"):
                rows = [row for row in _rows(path) if row[1] > time.time()] + [(token_sha256, until)]
                files.replace(path, "".join(f"{sha} {end}\n" for sha, end in rows).encode(), mode=0o600)
        except StorageError:
            pass

    def spent(self, token_sha256):
        """Whether `spend` was told of the token."""
        return any(_same(sha, token_sha256) for sha, _ in _rows(os.path.join(self.folder, SPENT_FILE)))


def _hmac(key, data):
    import hmac  # here, since it loads OpenSSL: 5 ms of a server's start, which only an approval needs

    return hmac.digest(key, data, "sha256")


def _same(one, other):
    import hmac  # see above

    return hmac.compare_digest(one, other)


def new_token(key, expires):
    """Return (token, its SHA-256) for an expiry in seconds since 1970."""
    raw = key.tag() + int(expires).to_bytes(5, "big") + os.urandom(32)
    token = b2a_base64(raw, newline=False).decode().translate(_TO_URL).rstrip("=")
    return token, token_hash(token)


def token_hash(token):
    """Return the SHA-256 of a token as hex."""
    return files.sha256(token.encode("utf-8", "surrogatepass"))


def seal(entry, key):
    """Return the entry with its HMAC."""
    entry = {name: value for name, value in entry.items() if name != "mac"}
    entry["mac"] = key.mac(entry)
    return entry


def read(store):
    """Return (entries, raw bytes) of the pending file; ([], raw) when it is absent or can't be read as one."""
    raw = files.read_regular(store.path(FILE), limit=LARGEST)
    return (whole(raw) or [] if raw is not None else []), raw


def whole(raw):
    """Return the entries in the bytes of a pending file; None when they are not one."""
    try:
        found = json.loads(raw)
        entries = found["entries"]
        right = found["version"] == _VERSION and isinstance(entries, list) and all(_shaped(entry) for entry in entries)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entries if right else None


def dump(entries, now):
    """Return the bytes of a pending file, a line for each entry; expired ones go, but for one that still owes a store its files."""
    rows = [json.dumps(entry, ensure_ascii=False) for entry in entries if entry["expires"] > now or entry.get("owed")]
    return (f'{{"version": {_VERSION}, "entries": [\n' + ",\n".join(rows) + "\n]}\n").encode("utf-8", "surrogatepass")


def done(entry, key, state, reason=None):
    """Return what is kept of an entry that was used or revoked: no candidate, no text."""
    kept = {name: entry[name] for name in ("entry", "token_sha256", "kind", "created", "expires")}
    return seal({**kept, "state": state, "reason": reason}, key)


def find(entries, token, key, now):
    """Return the waiting entry of a token. Raises one of the five token errors, or PendingChanged."""
    token = token if isinstance(token, str) else ""
    wanted, found = token_hash(token), None
    for entry in entries:  # every entry is compared, each in constant time
        if _same(entry["token_sha256"], wanted):
            found = entry
    if found is None:
        raise _why_not(token, key, now)
    return check(found, key, now)


def by_name(entries, name, key, now):
    """Return the waiting entry of a name. Raises as `find`."""
    found = next((entry for entry in entries if entry["entry"] == name), None)
    if found is None:
        raise TokenUnknown("there is no such proposal waiting.", hint="engram pending lists those that are.")
    return check(found, key, now)


def check(entry, key, now):
    """Return the entry if it is whole, waiting and in time."""
    if not _same(str(entry.get("mac", "")), key.mac(entry)):
        raise PendingChanged(
            "the pending proposal was changed after it was shown, or belongs to another workspace; nothing was written.",
            hint="Propose again.",
        )
    if entry["expires"] <= now:
        raise _expired()
    if entry["state"] == REVOKED:
        raise TokenRevoked(entry["reason"] or "the proposal was withdrawn", hint="Nothing was written.")
    if entry["state"] == USED or key.spent(entry["token_sha256"]):
        raise TokenUsed("this approval token was already used; nothing more was written.", hint="Propose again for something new.")
    return entry


def _why_not(token, key, now):
    """Return the error for a token that no entry has: of another workspace, expired and swept, or never made."""
    try:
        raw = a2b_base64(token.translate(_FROM_URL) + "=" * (-len(token) % 4))
    except ValueError:
        raw = b""
    if len(raw) == 41:
        if not _same(raw[:4], key.tag()):
            return TokenForeign(
                "this approval token is for another workspace or another user; nothing was written.",
                hint="Commit it where it was proposed.",
            )
        if int.from_bytes(raw[4:9], "big") <= now:
            return _expired()
    return TokenUnknown("no proposal has this approval token; nothing was written.", hint="Propose again.")


def _expired():
    return TokenExpired("this approval token has expired (30 minutes); nothing was written.", hint="Propose again.")


def _shaped(entry):
    """Whether an entry has what `check` compares; the HMAC vouches for the rest."""
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str) for name in ("entry", "token_sha256", "state", "kind"))
        and all(isinstance(entry.get(name), int) for name in ("created", "expires"))
        and entry["token_sha256"].isascii()
        and str(entry.get("mac", "")).isascii()
    )


def _rows(path):
    made = []
    for line in (files.read(path) or b"").decode("ascii", "replace").splitlines():
        sha, _, end = line.partition(" ")
        if len(sha) == 64 and end.isdigit():
            made.append((sha, int(end)))
    return made


def _read_only(folder):
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except (OSError, AttributeError):
        return False


_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")
