"""Take what others wrote into the session tier: all of it or nothing, and twice the same is once.

Knows our rows and the one form of `foreign`; must not know files. Texts are redacted as on any other way in. Rows are told
apart by their sync id; rows without one (export 0.1.0, old databases) get one that the same row gets again.
"""

from __future__ import annotations

from engram.files import sha256
from engram.mem import export, index, names, observations, privacy, stamps
from engram.mem.foreign import Malformed
from engram.mem.refusals import Refusal

STEP = 500  # rows between two signs of progress
STATUSES = ("pending", "judged", "orphaned", "ignored")


class Import:
    """One import: `rows` in the form of `foreign`, `now` for what has no date; `counts` says what happened."""

    def __init__(self, connection, rows, now):
        self.connection = connection
        self.rows = rows
        self.stamp = stamps.write(now)
        self.counts = dict.fromkeys(("sessions", "observations", "updated", "unchanged", "prompts", "relations", "revisions", "skipped"), 0)
        self.redacted = 0
        self._known = {}

    def run(self, progress=lambda label, done, total: None):
        """Write all rows, inside the caller's transaction. Raises Malformed; the caller rolls back."""
        for work, kind in (
            (self._session, "sessions"),
            (self._observation, "observations"),
            (self._prompt, "prompts"),
            (self._relation, "relations"),
            (self._revision, "revisions"),
            (self._alias, "aliases"),
            (self._deletion, "deletions"),
        ):
            for number, row in enumerate(self.rows[kind], 1):
                if kind == "observations" and (number % STEP == 0 or number == len(self.rows[kind]) > STEP):
                    progress("Importing", number, len(self.rows[kind]))
                try:
                    work(row)
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    raise Malformed(f"entry {number} of `{kind}` is not as it should be ({type(error).__name__}: {error}).") from None

    # -- one row each

    def _session(self, row):
        id = _name(row["id"])
        if "directory" in row and row["directory"] is None:
            raise ValueError("the directory is null")
        done = self.connection.execute(
            "INSERT OR IGNORE INTO sessions (id, project, directory, started_at, ended_at, summary, ownership_mode) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                id,
                _project(row),
                _line(row.get("directory")),
                stamps.tidy(row.get("started_at"), self.stamp),
                self._date(row.get("ended_at")),
                self._clean(row.get("summary")) or None,
                "project_owned" if row.get("ownership_mode") == "project_owned" else "shared",
            ),
        ).rowcount
        self.counts["sessions"] += done

    def _observation(self, row):
        values = self._columns(row)
        sync_id, legacy = _identity(row, "obs", values)
        values["sync_id"] = sync_id
        old = self.connection.execute("SELECT * FROM observations WHERE sync_id = ?", (sync_id,)).fetchone() or self._twin(values, legacy)
        self._known[row.get("sync_id") or sync_id] = old["sync_id"] if old is not None else sync_id
        if old is None:
            self._need_session(values["session_id"], values["project"], values["created_at"])
            self._add(values, row.get("id"))
            self.counts["observations"] += 1
        elif values["updated_at"] > old["updated_at"]:
            for name in ("review_after", "pinned", "prompt_id"):  # what the older form doesn't have is no news
                if legacy and name not in row:
                    values[name] = old[name]
            self._replace(old, values)
            self.counts["updated"] += 1
        elif values["updated_at"] < old["updated_at"]:
            self.counts["skipped"] += 1
        else:
            self.counts["unchanged"] += 1

    def _columns(self, row):
        created = stamps.tidy(row.get("created_at"), self.stamp)
        content = self._clean(_text(row, "content"))
        return {
            "session_id": _name(row.get("session_id") or "") or f"manual-save-{_project(row)}",
            "type": _line(row.get("type")) or "manual",
            "title": self._clean(_text(row, "title")),
            "content": content,
            "tool_name": _line(row.get("tool_name")) or None,
            "project": _project(row),
            "scope": observations.scope_of(_line(row.get("scope"))),
            "topic_key": _line(row.get("topic_key")) or None,
            "normalized_hash": observations.content_hash(content),
            "revision_count": _count(row.get("revision_count")),
            "duplicate_count": _count(row.get("duplicate_count")),
            "last_seen_at": self._date(row.get("last_seen_at")),
            "review_after": self._date(row.get("review_after")),
            "pinned": int(bool(row.get("pinned"))),
            "prompt_id": _line(row.get("prompt_id")) or None,
            "created_at": created,
            "updated_at": stamps.tidy(row.get("updated_at"), created),
            "deleted_at": self._date(row.get("deleted_at")),
        }

    def _twin(self, values, legacy):
        # the same row under another sync id: one of the two came without one, through an export 0.1.0
        for other in self.connection.execute(
            "SELECT * FROM observations WHERE normalized_hash = ? AND created_at = ? AND project = ? AND scope = ? "
            "AND title = ? AND type = ?",
            tuple(values[name] for name in ("normalized_hash", "created_at", "project", "scope", "title", "type")),
        ):
            if legacy or _was_made(other["sync_id"]):
                return other
        return None

    def _add(self, values, id):
        # numbers are kept where they are free, so that `mem:12` stays what it was
        if (
            isinstance(id, int)
            and not isinstance(id, bool)
            and 0 < id < 1 << 53
            and self.connection.execute("SELECT 1 FROM observations WHERE id = ?", (id,)).fetchone() is None
        ):
            values = {"id": id, **values}
        done = self.connection.execute(
            f"INSERT INTO observations ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
        )
        if values["deleted_at"] is None:
            index.add(self.connection, {**values, "id": done.lastrowid})

    def _replace(self, old, values):
        if any(old[name] != values[name] for name in ("type", "title", "content")) and not values["deleted_at"]:
            self.connection.execute(
                "INSERT OR IGNORE INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    old["id"],
                    old["revision_count"],
                    old["session_id"],
                    old["type"],
                    old["title"],
                    old["content"],
                    old["updated_at"],
                    values["updated_at"],
                ),
            )
        self._need_session(values["session_id"], values["project"], values["created_at"])
        del values["sync_id"]
        self.connection.execute(
            f"UPDATE observations SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?", (*values.values(), old["id"])
        )
        index.put(self.connection, {**values, "id": old["id"]})

    def _prompt(self, row):
        content = self._clean(_text(row, "content"))
        created, project = stamps.tidy(row.get("created_at"), self.stamp), _project(row)
        session = _name(row.get("session_id") or "") or f"manual-save-{project}"
        sync_id, legacy = _identity(row, "prompt", {"created_at": created, "project": project, "scope": ""})
        if self.connection.execute("SELECT 1 FROM prompts WHERE sync_id = ?", (sync_id,)).fetchone():
            return
        for other in self.connection.execute(
            "SELECT sync_id FROM prompts WHERE session_id = ? AND content = ? AND created_at = ?", (session, content, created)
        ):
            if legacy or _was_made(other["sync_id"]):
                return
        self._need_session(session, project, created)
        values = {"sync_id": sync_id, "session_id": session, "content": content, "project": project, "created_at": created}
        id = row.get("id")
        if (
            isinstance(id, int)
            and not isinstance(id, bool)
            and 0 < id < 1 << 53
            and self.connection.execute("SELECT 1 FROM prompts WHERE id = ?", (id,)).fetchone() is None
        ):
            values["id"] = id
        self.connection.execute(
            f"INSERT INTO prompts ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
        )
        self.counts["prompts"] += 1

    def _relation(self, row):
        ends = [self._known.get(_line(row[name]), _line(row[name])) for name in ("source_id", "target_id")]
        status = row.get("judgment_status") if row.get("judgment_status") in STATUSES else "pending"
        for end in ends:
            if status != "orphaned" and not self.connection.execute("SELECT 1 FROM observations WHERE sync_id = ?", (end,)).fetchone():
                raise Refusal(
                    "dangling_relation", f"the relation {_line(row.get('sync_id'))} names {end}, which is not there; nothing was imported."
                )
        created = stamps.tidy(row.get("created_at"), self.stamp)
        values = {name: _line(row.get(name)) or None for name in export.RELATION if name != "confidence"}
        values |= {
            "sync_id": _line(row["sync_id"]),
            "source_id": ends[0],
            "target_id": ends[1],
            "relation": _line(row.get("relation")) or "pending",
            "reason": self._clean(row.get("reason")) or None,
            "evidence": self._clean(row.get("evidence")) or None,
            "confidence": None if row.get("confidence") is None else float(row["confidence"]),
            "judgment_status": status,
            "superseded_at": self._date(row.get("superseded_at")),
            "created_at": created,
            "updated_at": stamps.tidy(row.get("updated_at"), created),
        }
        old = self.connection.execute("SELECT id, updated_at FROM relations WHERE sync_id = ?", (values["sync_id"],)).fetchone()
        if old is None:
            self.connection.execute(
                f"INSERT INTO relations ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
            )
            self.counts["relations"] += 1
        elif values["updated_at"] > old["updated_at"]:
            self.connection.execute(
                f"UPDATE relations SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?", (*values.values(), old["id"])
            )

    def _revision(self, row):
        sync_id = self._known.get(row["observation_sync_id"], row["observation_sync_id"])
        owner = self.connection.execute("SELECT id FROM observations WHERE sync_id = ?", (sync_id,)).fetchone()
        if owner is None:
            return
        self.counts["revisions"] += self.connection.execute(
            "INSERT OR IGNORE INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                owner["id"],
                int(row["revision"]),
                _line(row.get("session_id")) or None,
                _line(row.get("type")) or "manual",
                self._clean(_text(row, "title")),
                self._clean(_text(row, "content")),
                stamps.tidy(row.get("written_at"), self.stamp),
                stamps.tidy(row.get("replaced_at"), self.stamp),
            ),
        ).rowcount

    def _alias(self, row):
        alias, project = names.from_folder(row["alias"]), names.from_folder(row["project"])
        if alias and project and alias != project:
            self.connection.execute("INSERT OR IGNORE INTO aliases VALUES (?, ?)", (alias, project))

    def _deletion(self, row):
        kind, key, at = row["kind"], _line(row["key"]), stamps.tidy(row.get("at"), self.stamp)
        if kind == "observations":
            old = self.connection.execute(
                "SELECT * FROM observations WHERE sync_id = ? AND deleted_at IS NULL AND updated_at <= ?", (key, at)
            ).fetchone()
            if old is not None:
                self.connection.execute("UPDATE observations SET deleted_at = ?, updated_at = ? WHERE id = ?", (at, at, old["id"]))
                index.remove(self.connection, old["id"])
        elif kind in ("prompts", "relations"):
            self.connection.execute(f"DELETE FROM {kind} WHERE sync_id = ?", (key,))

    # -- values

    def _need_session(self, id, project, started):
        # rows whose session is in no file get one, so that nothing hangs in the air
        self.connection.execute(
            "INSERT OR IGNORE INTO sessions (id, project, directory, started_at) VALUES (?, ?, '', ?)", (id, project, started)
        )

    def _clean(self, value):
        if value is None:
            return None
        text, notes = privacy.clean(_line(value))
        self.redacted += bool(notes)
        return text

    def _date(self, value):
        seconds = stamps.read(value)
        return None if seconds is None else stamps.write(seconds)


MADE = "-1e6ac7"  # in the sync ids that we made for rows without one


def _was_made(sync_id):
    return MADE in sync_id[:14]


def _identity(row, kind, values):
    """Return (sync id, whether we made it): the row's own, or one from what never changes of a row within its database."""
    own = row.get("sync_id")
    if isinstance(own, str) and own.strip():
        return own.strip(), _was_made(own.strip())
    known = "\0".join(map(str, (kind, row.get("id"), values["created_at"], values["project"], values["scope"])))
    return f"{kind}{MADE}{sha256(known.encode('utf-8', 'surrogatepass'))[:10]}", True


def _project(row):
    return names.from_folder(_line(row.get("project")))


def _name(value):
    if not isinstance(value, str):
        raise ValueError("an id is not a text")
    return value


def _line(value):
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is not a text")
    return value


def _text(row, name):
    value = row.get(name)
    return "" if value is None else _line(value)


def _count(value):
    return max(1, int(value)) if value is not None else 1
