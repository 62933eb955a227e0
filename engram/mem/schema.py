"""The tables of `sessions.db`.

Nothing but SQL and its version. Column names follow the databases that hosts already have (mem-tools.md 3), so that a
row looks the same everywhere; `revisions`, `aliases` and `bindings` are ours. `terms` holds texts that went through
`engram.text.terms`; FTS5 only splits them at blanks again.
"""

from __future__ import annotations

APPLICATION = 0x456E6772  # "Engr"
VERSION = 1
TERMS_VERSION = "1"  # another tokeniser needs another number: the index is then built anew

TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, project TEXT NOT NULL DEFAULT '', directory TEXT NOT NULL DEFAULT '',
    started_at TEXT NOT NULL, ended_at TEXT, summary TEXT,
    ownership_mode TEXT NOT NULL DEFAULT 'shared', runtime_lease_expires_at TEXT
) WITHOUT ROWID;
CREATE INDEX sessions_by_project ON sessions (project, started_at);
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sync_id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL REFERENCES sessions (id),
    type TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, tool_name TEXT,
    project TEXT NOT NULL DEFAULT '', scope TEXT NOT NULL DEFAULT 'project', topic_key TEXT, normalized_hash TEXT NOT NULL,
    revision_count INTEGER NOT NULL DEFAULT 1, duplicate_count INTEGER NOT NULL DEFAULT 1, last_seen_at TEXT,
    review_after TEXT, pinned INTEGER NOT NULL DEFAULT 0, prompt_id TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted_at TEXT
);
CREATE INDEX observations_by_project ON observations (project, deleted_at, created_at);
CREATE INDEX observations_by_session ON observations (session_id, deleted_at);
CREATE INDEX observations_by_hash ON observations (normalized_hash);
CREATE INDEX observations_by_topic ON observations (topic_key, project) WHERE topic_key IS NOT NULL;
CREATE INDEX observations_by_review ON observations (review_after) WHERE review_after IS NOT NULL;
CREATE INDEX observations_deleted ON observations (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX observations_pinned ON observations (project) WHERE pinned;
CREATE TABLE revisions (
    observation_id INTEGER NOT NULL REFERENCES observations (id) ON DELETE CASCADE, revision INTEGER NOT NULL,
    session_id TEXT, type TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, written_at TEXT NOT NULL,
    replaced_at TEXT NOT NULL, PRIMARY KEY (observation_id, revision)
) WITHOUT ROWID;
CREATE TABLE prompts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sync_id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL REFERENCES sessions (id),
    content TEXT NOT NULL, project TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL
);
CREATE INDEX prompts_by_project ON prompts (project, created_at);
CREATE INDEX prompts_by_session ON prompts (session_id);
CREATE TABLE relations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sync_id TEXT NOT NULL UNIQUE, source_id TEXT NOT NULL, target_id TEXT NOT NULL,
    relation TEXT NOT NULL DEFAULT 'pending', reason TEXT, evidence TEXT, confidence REAL,
    judgment_status TEXT NOT NULL DEFAULT 'pending', marked_by_actor TEXT, marked_by_kind TEXT, marked_by_model TEXT,
    session_id TEXT, superseded_at TEXT, superseded_by_relation_sync_id TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
);
CREATE INDEX relations_by_source ON relations (source_id);
CREATE INDEX relations_by_target ON relations (target_id);
CREATE TABLE aliases (alias TEXT PRIMARY KEY, project TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE bindings (git_dir TEXT PRIMARY KEY, identity TEXT NOT NULL, project TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE terms USING fts5 (title, content, topic, facets, tokenize = 'ascii');
"""
