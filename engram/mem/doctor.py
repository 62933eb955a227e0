"""Checks of the session tier: the database, and what in it doesn't fit together (mem_doctor, mem-tools.md 1.4).

Reads; takes the write lock for a moment to see whether it can be had, and writes nothing. Must not know MCP or terminals.
"""

from __future__ import annotations

import os
from contextlib import suppress

from engram.errors import Busy, EngramError, StorageError
from engram.mem import answers, detection, filesystem, names, projects, stamps
from engram.mem.refusals import Refusal

MOST_FINDINGS = 20
MOST_FOLDERS = 200
OK, WARNING, BLOCKED, ERROR = "ok", "warning", "blocked", "error"


def report(tier, *, project="", check=""):
    """Run all checks or one and return the report. Raises Refusal for a check that doesn't exist."""
    check = check.strip()
    if check and check not in CHECKS:
        raise Refusal("invalid_argument", f"there is no check {check}.", hint=f"Checks: {', '.join(CHECKS)}.", argument="check")
    rows, found = [], projects.Resolved("", "", "")
    try:
        with tier.database.reading() as connection:
            found = projects.for_reading(tier, connection, project=project) if project else projects.current(tier, connection)[0]
            for name in [check] if check else CHECKS:
                if name != "sqlite_lock_contention":
                    rows.append(_row(name, *CHECKS[name](tier, connection)))
    except (Refusal, Busy):
        raise
    except StorageError as error:
        rows.append(
            _row("database_integrity", ERROR, "database_unusable", {"problem": str(error)}, error.hint or "Move the database away.", [])
        )
    if check in ("", "sqlite_lock_contention") and tier.database.path:
        rows.append(_row("sqlite_lock_contention", *_lock(tier)))
    counts = {result: sum(row["result"] == result for row in rows) for result in (OK, WARNING, BLOCKED, ERROR)}
    status = next((result for result in (ERROR, BLOCKED, WARNING) if counts[result]), OK)
    summary = {"total": len(rows), "ok": counts[OK], "warnings": counts[WARNING], "blocked": counts[BLOCKED], "errors": counts[ERROR]}
    lines = [f"Session memory: {status} ({summary['ok']} of {summary['total']} checks ok)."]
    for row in rows:
        if row["result"] != OK:
            lines.append(f"- {row['check_id']}: {row['result']} ({row['reason_code']}). {row['safe_next_step']}")
            lines += [f"    {finding}" for finding in row.get("findings", ())]
    result = answers.answer(found, "\n".join(lines), status=status, summary=summary, checks=rows, database=tier.database.path)
    if status == ERROR:
        result.error, result.exit_code = ("doctor_error", lines[0]), 1
    return result


def _row(name, result, reason, evidence, step="", findings=()):
    row = {
        "check_id": name,
        "result": result,
        "severity": {OK: "info", WARNING: "warning"}.get(result, "error"),
        "reason_code": reason,
        "evidence": evidence,
        "safe_next_step": step or "Nothing to do.",
        "requires_confirmation": result != OK,
    }
    if findings:
        row["findings"] = [str(finding) for finding in findings[:MOST_FINDINGS]]
    return row


def _judged(findings, reason, step, *, evidence=None):
    if not findings:
        return OK, "none_found", evidence or {}
    return WARNING, reason, {**(evidence or {}), "count": len(findings)}, step, findings


def _integrity(tier, connection):
    problems = [row[0] for row in connection.execute("PRAGMA quick_check(20)") if row[0] != "ok"]
    if problems:
        return (
            ERROR,
            "damaged",
            {"problems": problems},
            "Export what can be read (engram mem export), then move the database away.",
            problems,
        )
    return OK, "quick_check", {"journal_mode": connection.execute("PRAGMA journal_mode").fetchone()[0]}


def _index(tier, connection):
    live = connection.execute("SELECT count(*) FROM observations WHERE deleted_at IS NULL").fetchone()[0]
    indexed = connection.execute("SELECT count(*) FROM terms").fetchone()[0]
    if live != indexed:
        return WARNING, "out_of_step", {"live": live, "indexed": indexed}, "Export and import into a new database."
    return OK, "complete", {"live": live}


def _file_system(tier, connection):
    kind = filesystem.kind(tier.database.folder)
    if kind and kind not in filesystem.LOCAL:
        return (
            WARNING,
            "unknown_file_system",
            {"type": kind},
            "If several machines share it, set ENGRAM_DATA_DIR to a folder on a local disk.",
        )
    return OK, "local", {"type": kind}


def _folders(tier, connection):
    findings = []
    for row in connection.execute(
        "SELECT id, project, directory FROM sessions WHERE directory <> '' AND project <> '' ORDER BY started_at DESC LIMIT ?",
        (MOST_FOLDERS,),
    ):
        if not os.path.isdir(row["directory"]):
            continue
        with suppress(EngramError):
            found = detection.detect(row["directory"], common=tier.common_folders, children=False)
            if (
                found.source in ("config", "git_remote", "git_root")
                and projects.follow(connection, found.project) != row["project"]
                and not _bound(connection, found, row["project"])
            ):
                findings.append(f"{answers.one_line(row['id'])}: {row['project']}, but its folder is {found.project}")
    return _judged(findings, "folder_is_of_another_project", "Look whether these sessions were meant for the other project.")


def _bound(connection, found, project):
    row = connection.execute("SELECT project FROM bindings WHERE git_dir = ?", (found.git_dir or "",)).fetchone()
    return row is not None and row[0] == project


def _manual(tier, connection):
    findings = [
        f"{row['id']}: {row['project']}"
        for row in connection.execute("SELECT id, project FROM sessions WHERE id LIKE 'manual-save-%'")
        if projects.follow(connection, names.canonical(row["id"][12:])) != row["project"]
    ]
    return _judged(findings, "name_says_another_project", "Look whether their rows were meant for the project of the name.")


def _active(tier, connection):
    rows = connection.execute(
        "SELECT project, directory, count(*) AS number FROM sessions WHERE ended_at IS NULL AND runtime_lease_expires_at > ? "
        "GROUP BY project, directory HAVING number > 1",
        (stamps.write(tier.clock()),),
    ).fetchall()
    return OK, "each_process_has_its_own_session", {"folders_with_several": len(rows)}


def _orphans(tier, connection):
    findings = [
        f"#{row[0]}: session {answers.one_line(row[1])}"
        for row in connection.execute(
            "SELECT o.id, o.session_id FROM observations o LEFT JOIN sessions s ON s.id = o.session_id WHERE s.id IS NULL LIMIT ?",
            (MOST_FINDINGS,),
        )
    ]
    return _judged(findings, "session_missing", "Export and import: the import makes the missing sessions.")


def _pending(tier, connection):
    findings = [
        row[0]
        for row in connection.execute(
            "SELECT r.sync_id FROM relations r LEFT JOIN observations a ON a.sync_id = r.source_id AND a.deleted_at IS NULL "
            "LEFT JOIN observations b ON b.sync_id = r.target_id AND b.deleted_at IS NULL "
            "WHERE r.judgment_status = 'pending' AND (a.id IS NULL OR b.id IS NULL) LIMIT ?",
            (MOST_FINDINGS,),
        )
    ]
    return _judged(findings, "end_is_deleted", "Judge them not_conflict, or leave them: they are not shown for deleted rows.")


def _unowned(tier, connection):
    findings = [row[0] for row in connection.execute("SELECT id FROM sessions WHERE project = '' LIMIT ?", (MOST_FINDINGS,))]
    return _judged(findings, "session_without_project", "Save to one with an explicit project: the first save gives it its project.")


def _identities(tier, connection):
    findings = [repr(row[0]) for row in connection.execute("SELECT id FROM sessions") if not row[0].strip() or not row[0].isprintable()]
    return _judged(findings, "id_is_blank_or_unprintable", "Such sessions came by import; they can be read and not written to.")


def _no_sync(tier, connection):
    return OK, "no_cloud_sync_here", {}


def _lock(tier):
    if not tier.database.exists():
        return OK, "no_database_yet", {}
    busy = False
    try:
        with tier.database.writing(given_up=lambda: True):
            pass
    except Refusal:
        busy = True
    except EngramError as error:
        return BLOCKED, "not_writable", {"problem": str(error)}, error.hint or "Check the permissions of the data folder."
    if busy:
        return WARNING, "another_process_is_writing", {}, "Try again; writers wait their turn."
    return OK, "free", {}


CHECKS = {
    "database_integrity": _integrity,
    "term_index": _index,
    "file_system": _file_system,
    "session_project_directory_mismatch": _folders,
    "manual_session_name_project_mismatch": _manual,
    "ambiguous_active_runtime_sessions": _active,
    "sync_mutation_required_fields": _no_sync,
    "orphaned_observation_session": _orphans,
    "orphaned_pending_relations": _pending,
    "unowned_session_project": _unowned,
    "invalid_session_identity": _identities,
    "sync_target_closed_space": _no_sync,
    "sqlite_lock_contention": None,
}
