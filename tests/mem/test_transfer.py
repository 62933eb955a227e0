"""Export and import: the known exports, databases of both generations, chunk folders; twice is once, and the way there and back."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sqlite3

import pytest

import build
from engram.errors import EngramError, UsageError
from engram.mem import care, noting, reading, transfer, writing
from engram.mem.foreign import Malformed
from tests.mem.conftest import rows
from tests.trials import count, dice

DATA = os.path.join(build.ROOT, "tests", "data", "mem")
NEW, OLD = os.path.join(DATA, "sample-export.json"), os.path.join(DATA, "sample-export-legacy.json")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def exported(tier, path, **more):
    transfer.export_to(tier, str(path), **more)
    made = load(path)
    made.pop("exported_at")
    return made


def everything(tier):
    found = {
        table: rows(tier, f"SELECT * FROM {table} ORDER BY 1, 2")
        for table in ("observations", "prompts", "relations", "revisions", "aliases")
    }
    found["sessions"] = rows(tier, "SELECT id, project, directory, started_at, ended_at, summary, ownership_mode FROM sessions ORDER BY id")
    for row in found["relations"]:
        del row["id"]
    return found


# -- exports


@pytest.mark.parametrize(("path", "relations"), [(NEW, 2), (OLD, 0)])
def test_a_known_export_is_read_whole_and_twice_is_once(tiers, path, relations):
    tier = tiers()
    counts = transfer.import_from(tier, path).data
    assert (counts["sessions"], counts["observations"], counts["prompts"], counts["relations"]) == (2, 11, 2, relations)
    before = everything(tier)
    again = transfer.import_from(tier, path).data
    assert (again["sessions"], again["observations"], again["prompts"], again["relations"], again["unchanged"]) == (0, 0, 0, 0, 11)
    assert everything(tier) == before
    given = {row["id"]: row for row in load(path)["observations"]}
    for row in before["observations"]:
        for name, value in given[row["id"]].items():
            assert row[name] == value, name
    assert [
        hit["id"] for hit in reading.search(tier, query="timezone UTC", project="orchard-api", match_mode="any").structured["results"]
    ] == [7]
    assert reading.search(tier, query="時刻", project="orchard-api").structured["results"][0]["id"] == 7
    assert 10 not in [hit["id"] for hit in reading.search(tier, query="fixed window", project="orchard-api").structured["results"]]


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_both_exports_of_one_store_double_nothing(tiers, order):
    tier = tiers()
    for path in order:
        transfer.import_from(tier, path)
    assert (len(rows(tier)), len(rows(tier, "SELECT * FROM prompts")), len(rows(tier, "SELECT * FROM relations"))) == (11, 2, 2)


def test_the_shared_samples_and_their_chunk_folder_double_nothing(tiers, shared):
    tier = tiers()
    interop = os.path.join(shared, "interop")
    for name in ("sync", "sample-export.json", "sample-export-legacy.json", "sync"):
        transfer.import_from(tier, os.path.join(interop, name))
    assert (len(rows(tier)), len(rows(tier, "SELECT * FROM prompts")), len(rows(tier, "SELECT * FROM relations"))) == (11, 2, 2)


def test_what_was_exported_and_imported_is_equal(tiers, tmp_path, clock):
    tier = tiers(override="orchard-api")
    transfer.import_from(tier, NEW)
    for number in range(3):
        clock.now += 10_000
        writing.save(tier, title="Cache lifetime", content=f"{number} seconds, é語🚀\0.", topic_key="cache", type="decision")
    noting.save_prompt(tier, content="Why is it slow?")
    writing.save(tier, title="Slow", content="Because of the index.")
    writing.save(tier, title="Slow as well", content="Because of the other index.")
    writing.pin(tier, id=2, pinned=True)
    writing.delete(tier, id=5, expected_project="orchard-api")
    care.compare(tier, memory_id_a=1, memory_id_b=2, relation="scoped", confidence=0.5, reasoning="They are of two parts.", model="m")
    writing.save(tiers(override="orchard_api"), title="Spelt otherwise", content="Elsewhere.")
    care.merge_projects(tier, sources="orchard_api", to="orchard-api")
    noting.session_start(tier, id="s-9")
    noting.session_end(tier, id="s-9", summary="Done.")
    first = exported(tier, tmp_path / "one.json")
    other = tiers(data="other")
    transfer.import_from(other, str(tmp_path / "one.json"))
    assert exported(other, tmp_path / "two.json") == first
    assert everything(other) == everything(tier)
    transfer.import_from(other, tier.database.path)
    assert everything(other) == everything(tier)


def test_one_project_is_exported_alone(tiers, tmp_path):
    writing.save(tiers(override="one"), title="t", content="c one")
    tier = tiers(override="two")
    writing.save(tier, title="t", content="c two")
    made = exported(tier, tmp_path / "x.json", project="one")
    assert [row["content"] for row in made["observations"]] == ["c one"]
    assert len(made["sessions"]) == 1
    with pytest.raises(EngramError):
        transfer.export_to(tier, str(tmp_path / "y.json"), project="three")


def test_an_export_replaces_no_file_unasked_and_is_for_its_owner_alone(tier, tmp_path):
    path = tmp_path / "x.json"
    path.write_text("mine")
    with pytest.raises(UsageError):
        transfer.export_to(tier, str(path))
    assert path.read_text() == "mine"
    transfer.export_to(tier, str(tmp_path / "y.json"))
    assert os.stat(tmp_path / "y.json").st_mode & 0o077 == 0
    transfer.export_to(tier, str(path), force=True)
    assert load(path)["version"] == "0.2.0"
    writing.save(tier, title="t", content="c")
    transfer.export_to(tier, str(path))
    assert len(load(path)["observations"]) == 1
    (tmp_path / "z.json").touch()
    transfer.export_to(tier, str(tmp_path / "z.json"))
    assert len(load(tmp_path / "z.json")["observations"]) == 1


# -- newer, older, broken


def test_the_newer_text_wins_and_the_older_is_kept_or_skipped(tiers, tmp_path):
    tier = tiers()
    transfer.import_from(tier, NEW)
    value = load(NEW)
    value["observations"][0] |= {"content": "Sliding window now.", "updated_at": "2026-11-01 08:00:00", "revision_count": 4}
    value["observations"][1] |= {"content": "Stale.", "updated_at": "2026-01-01 08:00:00"}
    path = tmp_path / "newer.json"
    path.write_text(json.dumps(value))
    counts = transfer.import_from(tier, str(path)).data
    assert (counts["updated"], counts["skipped"], counts["observations"]) == (1, 1, 0)
    assert rows(tier)[0]["content"] == "Sliding window now."
    assert "monotonic" in reading.get_observation(tier, id=1).structured["revisions"][0]["content"]
    assert rows(tier)[1]["content"] != "Stale."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda value: value.update(version="9.9.9"), "9.9.9"),
        (lambda value: value.pop("version"), "version"),
        (lambda value: value.update(observations={}), "observations"),
        (lambda value: value["sessions"][0].update(directory=None), "directory"),
        (lambda value: value["observations"][3].update(title=7), "entry 4"),
        (lambda value: value["observations"][3].update(content=["x"]), "entry 4"),
        (lambda value: value["relations"][0].update(target_id="obs-nowhere"), "obs-nowhere"),
        (lambda value: value["sessions"].append({}), "entry 3"),
        (lambda value: value["relations"][0].update(confidence="high"), "entry 1"),
    ],
)
def test_a_broken_export_changes_nothing_and_says_where(tiers, tmp_path, change, words):
    tier = tiers()
    writing.save(tier, title="t", content="c")
    before = everything(tier)
    value = load(NEW)
    change(value)
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(value))
    with pytest.raises(EngramError) as caught:
        transfer.import_from(tier, str(path))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert everything(tier) == before


def test_an_orphaned_relation_may_dangle(tiers, tmp_path):
    value = load(NEW)
    value["relations"][0] |= {"target_id": "obs-gone", "judgment_status": "orphaned"}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value))
    assert transfer.import_from(tiers(), str(path)).data["relations"] == 2


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"version": "0.2.0", "observations": [1]}', b"[" * 100_000, b"\0" * 100])
def test_what_is_no_export_is_refused(tiers, tmp_path, data):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(Malformed):
        transfer.import_from(tiers(), str(path))


def test_what_is_not_there_or_is_the_database_itself_is_refused(tier, tmp_path):
    writing.save(tier, title="t", content="c")
    for path in (tmp_path / "none.json", tmp_path, tier.database.path):
        with pytest.raises(UsageError):
            transfer.import_from(tier, str(path))


# -- databases


OBSERVATION = (
    "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, type TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, "
    "tool_name TEXT, project TEXT, scope TEXT NOT NULL DEFAULT 'project', topic_key TEXT, normalized_hash TEXT, "
    "revision_count INTEGER NOT NULL DEFAULT 1, "
    "duplicate_count INTEGER NOT NULL DEFAULT 1, last_seen_at TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted_at TEXT"
)
PROMPT = "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, content TEXT NOT NULL, project TEXT, created_at TEXT"
FIRST = [
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, project TEXT, directory TEXT, started_at TEXT, ended_at TEXT, summary TEXT)",
    f"CREATE TABLE observations ({OBSERVATION}, FOREIGN KEY (session_id) REFERENCES sessions(id))",
    f"CREATE TABLE user_prompts ({PROMPT})",
    "CREATE VIRTUAL TABLE observations_fts USING fts5(title, content, tool_name, type, project, "
    "content='observations', content_rowid='id')",
    "CREATE TABLE sync_chunks (chunk_id TEXT PRIMARY KEY, imported_at TEXT)",
]
THIRD = [
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, project TEXT, directory TEXT, started_at TEXT, ended_at TEXT, summary TEXT, "
    "ownership_mode TEXT DEFAULT 'shared', runtime_lease_expires_at TEXT, local_creation_project TEXT)",
    f"CREATE TABLE observations ({OBSERVATION}, sync_id TEXT, pinned BOOLEAN NOT NULL DEFAULT 0, "
    "review_after TEXT, expires_at TEXT, embedding BLOB, embedding_model TEXT, embedding_created_at TEXT)",
    f"CREATE TABLE user_prompts ({PROMPT}, "
    "sync_id TEXT, source_inbox_id TEXT, local_creation_session_id TEXT, local_creation_inbox_id TEXT, local_creation_project TEXT)",
    "CREATE TABLE memory_relations (id INTEGER PRIMARY KEY AUTOINCREMENT, sync_id TEXT UNIQUE, source_id TEXT, target_id TEXT, "
    "relation TEXT DEFAULT 'pending', reason TEXT, evidence TEXT, confidence REAL, judgment_status TEXT DEFAULT 'pending', "
    "marked_by_actor TEXT, marked_by_kind TEXT, marked_by_model TEXT, session_id TEXT, superseded_at TEXT, "
    "superseded_by_relation_id INTEGER, created_at TEXT, updated_at TEXT)",
    "CREATE TABLE prompt_tombstones (sync_id TEXT)",
    "CREATE TABLE sync_state (target_key TEXT)",
    "PRAGMA user_version = 1",
]


def foreign(path, tables, value, *, keep_open=False):
    """Build a database of another generation with the rows of an export; `keep_open` leaves them in the log."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    for statement in tables:
        connection.execute(statement)
    names = {"sessions": "sessions", "observations": "observations", "prompts": "user_prompts", "relations": "memory_relations"}
    for kind, table in names.items():
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for row in value.get(kind, ()):
            row = {name: cell for name, cell in row.items() if name in columns}
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    if keep_open:
        return connection
    connection.close()
    return None


def beside(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(("tables", "path", "relations"), [(FIRST, OLD, 0), (THIRD, NEW, 2)], ids=["first", "third"])
@pytest.mark.parametrize("live", [False, True], ids=["closed", "live"])
def test_a_database_of_either_generation_is_read_and_left_as_it_is(tiers, tmp_path, tables, path, relations, live):
    folder = tmp_path / "theirs"
    os.makedirs(folder)
    connection = foreign(folder / "engram.db", tables, load(path), keep_open=live)
    before = beside(folder)
    if not live:
        os.chmod(folder, 0o555)
    tier = tiers()
    counts = transfer.import_from(tier, str(folder / "engram.db")).data
    os.chmod(folder, 0o755)
    assert (counts["sessions"], counts["observations"], counts["prompts"], counts["relations"]) == (2, 11, 2, relations)
    assert beside(folder) == before
    assert transfer.import_from(tier, str(folder / "engram.db")).data["observations"] == 0
    assert transfer.import_from(tier, NEW).data["observations"] == 0
    if connection:
        connection.close()
    assert [row["pinned"] for row in rows(tier)][2] == (1 if relations else rows(tier)[2]["pinned"])


def test_a_very_old_database_is_read_too(tiers, tmp_path):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, project TEXT, directory TEXT, started_at TEXT, ended_at TEXT, summary TEXT)"
    )
    connection.execute(
        "CREATE TABLE observations (id INT, session_id TEXT, type TEXT, title TEXT, content TEXT, tool_name TEXT, project, scope TEXT, "
        "sync_id TEXT, created_at TEXT, updated_at TEXT)"
    )
    connection.execute("INSERT INTO sessions (id, started_at) VALUES ('s', '2025-01-01 00:00:00')")
    connection.execute(
        "INSERT INTO observations VALUES (1, 's', 'manual', 'a', 'one', NULL, ?, '', '', '2025-01-01 00:00:00', '')", (b"Blobbed",)
    )
    connection.execute(
        "INSERT INTO observations VALUES (1, 'lost', 'manual', 'b', 'two', NULL, NULL, NULL, NULL, '2025-01-02 00:00:00', NULL)"
    )
    connection.commit()
    connection.close()
    tier = tiers()
    for expected in (2, 0):
        assert transfer.import_from(tier, str(path)).data["observations"] == expected
    found = rows(tier)
    assert [(row["project"], row["scope"], row["session_id"]) for row in found] == [("blobbed", "project", "s"), ("", "project", "lost")]
    assert {row["id"] for row in rows(tier, "SELECT id FROM sessions")} == {"s", "lost"}


def test_a_database_of_something_else_is_refused(tiers, tmp_path):
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE things (x)")
    connection.close()
    with pytest.raises(Malformed):
        transfer.import_from(tiers(), str(path))
    path.write_bytes(path.read_bytes()[:1000] + b"\xff" * 3000)
    with pytest.raises(EngramError):
        transfer.import_from(tiers(), str(path))


# -- chunk folders


def chunk_folder(folder, *chunks, missing=()):
    os.makedirs(folder / ".engram" / "chunks")
    listed = []
    for value in chunks:
        data = json.dumps(value).encode()
        id = hashlib.sha256(data).hexdigest()[:8]
        listed.append({"id": id, "created_by": "sample", "created_at": "2026-10-03T09:00:00Z", "sessions": 0, "memories": 0, "prompts": 0})
        (folder / ".engram" / "chunks" / f"{id}.jsonl.gz").write_bytes(gzip.compress(data))
    listed += [{"id": id} for id in missing]
    (folder / ".engram" / "manifest.json").write_text(json.dumps({"version": 2, "chunks": listed}))


def test_chunks_are_read_with_their_mutations_and_a_missing_one_is_skipped_and_said(tiers, tmp_path):
    value = load(NEW)
    relation = value["relations"][0]
    first = {
        "sessions": value["sessions"],
        "observations": value["observations"][:9] + value["observations"][10:],
        "prompts": value["prompts"],
        "mutations": [{"seq": 0, "entity": "relation", "entity_key": relation["sync_id"], "op": "upsert", "payload": json.dumps(relation)}],
    }
    second = {
        "sessions": [],
        "observations": [],
        "prompts": [],
        "mutations": [
            {
                "seq": 1,
                "entity": "observation",
                "entity_key": "obs-0000000000000002",
                "op": "delete",
                "payload": "{}",
                "occurred_at": "2026-11-01 00:00:00",
            },
            {
                "seq": 2,
                "entity": "prompt",
                "entity_key": "prompt-0000000000000001",
                "op": "delete",
                "payload": "{}",
                "occurred_at": "2026-11-01 00:00:00",
            },
            {"seq": 3, "entity": "something", "op": "upsert", "payload": "{}"},
        ],
    }
    chunk_folder(tmp_path / "w", first, second, missing=("00aa00aa",))
    tier = tiers()
    for _ in range(2):
        done = transfer.import_from(tier, str(tmp_path / "w"))
        assert "00aa00aa" in done.diagnostics[0]["message"]
        assert len(rows(tier)) == 10
        assert [row["id"] for row in rows(tier) if row["deleted_at"]] == [2]
        assert len(rows(tier, "SELECT * FROM prompts")) == 1
        assert [row["relation"] for row in rows(tier, "SELECT * FROM relations")] == ["supersedes"]
    transfer.import_from(tier, str(tmp_path / "w" / ".engram"))
    assert len(rows(tier)) == 10


@pytest.mark.parametrize("change", ["version", "id", "gzip", "json"])
def test_a_broken_chunk_folder_changes_nothing(tiers, tmp_path, change):
    chunk_folder(
        tmp_path / "w", {"observations": [{"id": 1, "session_id": "s", "type": "x", "title": "t", "content": "c", "sync_id": "obs-1"}]}
    )
    folder = tmp_path / "w" / ".engram"
    manifest = load(folder / "manifest.json")
    chunk = folder / "chunks" / f"{manifest['chunks'][0]['id']}.jsonl.gz"
    if change == "version":
        manifest["version"] = 3
    elif change == "id":
        manifest["chunks"].append({"id": "../../../etc/passwd"})
    elif change == "gzip":
        chunk.write_bytes(chunk.read_bytes()[:-9])
    else:
        chunk.write_bytes(gzip.compress(b"{} {}"))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    tier = tiers()
    with pytest.raises(Malformed):
        transfer.import_from(tier, str(tmp_path / "w"))
    assert rows(tier) == []


def test_no_mutation_of_an_export_is_a_fault_of_ours_or_half_an_import(tiers, tmp_path):
    chance = dice("imports")
    odd = [None, "", 7, -1, 1.5, True, [], {}, [None], "x" * 300, "\ud800", "2026-13-45", "obs-0000000000000001", 1 << 70]
    path = tmp_path / "x.json"
    for number in range(count(60, 1500)):
        value = load(chance.choice([NEW, OLD]))
        for _ in range(chance.randrange(1, 4)):
            rows_of = chance.choice([value[kind] for kind in ("sessions", "observations", "prompts", "relations") if value.get(kind)])
            row = chance.choice(rows_of)
            if chance.random() < 0.2:
                rows_of[rows_of.index(row)] = chance.choice(odd)
            elif isinstance(row, dict):
                name = chance.choice([*row, "extra", "sync_id"])
                if chance.random() < 0.3:
                    row.pop(name, None)
                else:
                    row[name] = chance.choice(odd)
        path.write_text(json.dumps(value))
        tier = tiers(data=f"data-{number}")
        try:
            transfer.import_from(tier, str(path))
        except EngramError:
            assert rows(tier) == []
        else:
            again = transfer.import_from(tier, str(path)).data
            assert again["observations"] == 0
