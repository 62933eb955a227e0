"""What others wrote, as one form: exports, databases of both generations, chunk folders (mem-tools.md 2.13, 2.14, 3).

Reads and never writes beside what it reads; must not know our database. Returns `{sessions, observations, prompts, relations,
revisions, aliases, deletions}`: lists of mappings with the columns of `schema`, missing members left out.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from contextlib import closing

from engram import files
from engram.errors import EngramError, StorageError, UsageError

LARGEST = 1 << 30  # bytes of one document, also unpacked
VERSIONS = ("0.1.0", "0.2.0")
KINDS = ("sessions", "observations", "prompts", "relations", "revisions", "aliases")
MAGIC = b"SQLite format 3\0"
TABLES = {
    "sessions": "sessions",
    "observations": "observations",
    "user_prompts": "prompts",
    "prompts": "prompts",
    "memory_relations": "relations",
    "relations": "relations",
}
NAMES = {"relation": "relations", "observation": "observations", "prompt": "prompts", "session": "sessions"}


class Malformed(EngramError):
    """A file that is not what an import can read."""

    code = "ENG_IMPORT"


def read(path):
    """Return (rows by kind, diagnostics as texts) of an export, a database or a chunk folder. Raises Malformed, StorageError."""
    if os.path.isdir(path):
        return _chunks(path)
    start = _start(path)
    if start == MAGIC:
        return _database(path), []
    return _document(files.read_regular(path, limit=LARGEST), path), []


def is_export(data):
    """Tell whether bytes are an export that an import would read."""
    try:
        _document(data, "")
    except Malformed:
        return False
    return True


def _start(path):
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC))
    except FileNotFoundError:
        raise UsageError(f"there is no {path}.") from None
    except OSError as error:
        raise StorageError(f"can't be read: {error.strerror}.", file=path) from None


def _document(data, path):
    value = _json(data, path)
    version = value.get("version")
    if version not in VERSIONS:
        raise Malformed(f"the export version {version!r:.40} is not known; known are {', '.join(VERSIONS)}.", file=path)
    return _rows(value, path)


def _json(data, path):
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 at byte {error.start}.", file=path) from None
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg}.", file=path, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise Malformed("nested too deeply.", file=path) from None
    if not isinstance(value, dict):
        raise Malformed("the top level is not an object.", file=path)
    return value


def _rows(value, path):
    made = {"deletions": []}
    for kind in KINDS:
        found = value.get(kind)
        found = [] if found is None else found
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise Malformed(f"`{kind}` is not a list of objects.", file=path)
        made[kind] = found
    return made


# -- chunk folders


def _chunks(folder):
    root = folder
    if not os.path.isfile(os.path.join(root, "manifest.json")):
        root = os.path.join(folder, ".engram")
    path = os.path.join(root, "manifest.json")
    data = files.read_regular(path, limit=LARGEST)
    if data is None:
        raise UsageError(f"{folder} has no .engram/manifest.json.")
    manifest = _json(data, path)
    if manifest.get("version") not in (1, 2):
        raise Malformed(f"the manifest version {manifest.get('version')!r:.40} is not known; known are 1 and 2.", file=path)
    made, notes = {kind: [] for kind in (*KINDS, "deletions")}, []
    for entry in manifest.get("chunks") or []:
        id = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(id, str) or not id.isalnum():
            raise Malformed("a chunk has no id of letters and digits.", file=path)
        chunk = os.path.join(root, "chunks", f"{id}.jsonl.gz")
        data = files.read_regular(chunk, limit=LARGEST)
        if data is None:
            notes.append(f"the chunk {id} is missing and was skipped.")
            continue
        value = _json(_unpacked(data, chunk), chunk)
        for kind, rows in _rows(value, chunk).items():
            made[kind] += rows
        _mutations(value.get("mutations") or [], made, chunk)
    return made, notes


def _unpacked(data, path):
    unpacker = zlib.decompressobj(wbits=31)
    try:
        out = unpacker.decompress(data, LARGEST)
    except zlib.error as error:
        raise Malformed(f"not a gzip file: {error}.", file=path) from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise Malformed("cut off, or larger than an import reads.", file=path)
    return out


def _mutations(rows, made, path):
    # changes in order: rows written again, and deletions, which name what is gone
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or row.get("entity") not in NAMES:
            continue
        kind = NAMES[row["entity"]]
        if row.get("op") == "delete":
            made["deletions"].append({"kind": kind, "key": row.get("entity_key"), "at": row.get("occurred_at")})
        elif row.get("op") == "upsert":
            payload = row.get("payload")
            value = _json(payload.encode("utf-8", "surrogatepass"), path) if isinstance(payload, str) else payload
            if isinstance(value, dict):
                made[kind].append(value)


# -- databases


def _database(path):
    with tempfile.TemporaryDirectory(prefix="engram-import-") as scratch:
        try:
            with closing(_opened(path, scratch)) as connection:
                return _tables(connection)
        except sqlite3.Error as error:
            raise Malformed(f"the database can't be read: {error}.", file=path) from None


def _opened(path, scratch):
    """Return a connection to a database that is not ours, without a trace beside it.

    One without a log is opened as it is. One with a log is copied together with it: even a reader would make files beside it,
    and the log may hold rows that the file doesn't have yet.
    """
    source = path
    log = path + "-wal"
    if os.path.exists(log) and os.path.getsize(log):
        source = os.path.join(scratch, "copy.db")
        for _ in range(5):
            before = _seen(path, log)
            shutil.copyfile(path, source)
            shutil.copyfile(log, source + "-wal")
            if _seen(path, log) == before:  # nobody wrote meanwhile
                break
        connection = sqlite3.connect(source, isolation_level=None)
    else:
        name = "".join(
            chr(byte) if byte < 128 and chr(byte) not in "%?#" else f"%{byte:02X}" for byte in os.fsencode(os.path.abspath(source))
        )
        connection = sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")  # nothing that a prepared database defines may run
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _seen(*paths):
    return [(found.st_size, found.st_mtime_ns) for found in map(os.stat, paths)]


def _tables(connection):
    present = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"sessions", "observations"} <= present:
        raise Malformed("this database has no sessions and observations.")
    made = {kind: [] for kind in (*KINDS, "deletions")}
    for table, kind in TABLES.items():
        if table in present:
            made[kind] += [
                _values(row)
                for row in connection.execute(
                    f"SELECT * FROM {table} ORDER BY rowid" if _has_rowid(connection, table) else f"SELECT * FROM {table}"
                )
            ]
    if "revisions" in present:  # one of ours
        made["revisions"] = [
            _values(row)
            for row in connection.execute(
                "SELECT o.sync_id AS observation_sync_id, r.* FROM revisions r JOIN observations o ON o.id = r.observation_id"
            )
        ]
        made["aliases"] = [_values(row) for row in connection.execute("SELECT * FROM aliases")]
    relations = {row.get("id"): row.get("sync_id") for row in made["relations"]}
    for row in made["relations"]:
        if row.get("superseded_by_relation_id") in relations:
            row["superseded_by_relation_sync_id"] = relations[row["superseded_by_relation_id"]]
    return made


def _has_rowid(connection, table):
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 1")
    except sqlite3.OperationalError:
        return False
    return True


def _values(row):
    # very old files keep some texts as blobs
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) and name != "embedding" else value
        for name, value in zip(row.keys(), row)
        if value is not None and name != "embedding"
    }
