"""The functions under the tools that show the whole: context, counts, projects, topic keys.

Each takes the Tier and plain arguments and returns a Result; nothing is written. Must not know MCP or terminals
(mem-tools.md 1.4, 2.8, 2.15).
"""

from __future__ import annotations

from engram.errors import Busy, StorageError
from engram.mem import answers, durable, limits, observations, privacy, projects, prompts, searching, sessions, topics
from engram.mem.refusals import Refusal

# counting what is left over is cheap, counting what is live would read every row
LIVE = "SELECT (SELECT count(*) FROM observations) - (SELECT count(*) FROM observations WHERE deleted_at IS NOT NULL)"


def context(tier, *, project="", scope="", max_bytes=limits.CONTEXT_BYTES, compact=False):
    """Show what is worth knowing at the start of work, within a budget of bytes (mem_context)."""
    budget = max(limits.CONTEXT_LEAST_BYTES, min(max_bytes, limits.CONTEXT_MOST_BYTES)) if max_bytes > 0 else limits.CONTEXT_BYTES
    now = tier.clock()
    with tier.database.reading() as connection:
        found = projects.for_reading(tier, connection, project=project)
        wide = scope.strip().lower() == "personal" and not project
        filters = searching.Filters(None if wide else found.name, observations.scope_of(scope) if scope.strip() else None)
        shown = _context_rows(connection, filters, found.name)
        names = projects.known(connection)
        totals = _totals(connection)
        folder = durable.folder(tier, connection, found)
    head, approved, warnings = durable.matching(tier, folder, "") if folder else ([], [], [])
    sections = [(head[0], [[card] for card in head[1:-1]])] if head else []
    sections += _context_sections(*shown, now, compact)
    if not any(rows for _, rows in sections):
        return answers.answer(found, "No memories yet.", warnings=warnings, results=[], omitted=0)
    foot = (
        f"Totals: {answers.counted(totals['sessions'], 'session')}, {answers.counted(totals['observations'], 'observation')}, "
        f"{answers.counted(totals['prompts'], 'prompt')}"
    )
    listed = f" in: {', '.join(names[:8])}" + (f" (+{len(names) - 8})" if len(names) > 8 else "")
    foot += listed if len(listed.encode()) < budget // 3 else f" in {answers.counted(len(names), 'project')}"
    rows = [*shown[2], *shown[3]]
    warnings = [warning for warning in (*found.warnings, *warnings, answers.nudge(tier, now), answers.orders_warning(rows)) if warning]
    spare = len("\n".join([answers.project_line(found), foot, *(f"Warning: {warning}" for warning in warnings)]).encode()) + 150
    lines, omitted = _within(budget - spare, [f"# Memory of {found.name or 'all projects'}", answers.LABEL, ""], sections)
    if omitted:
        lines.append(
            f"{answers.counted(omitted, 'more entry', 'more entries')} left out for the budget of {budget:,} bytes; mem_search finds them."
        )
    return answers.answer(
        found._replace(warnings=()),
        "\n".join([*lines, foot]),
        warnings=warnings,
        durable=approved or None,
        results=[answers.summary(row, now) for row in rows],
        omitted=omitted,
        max_bytes=budget,
    )


def stats(tier, *, project=""):
    """Count sessions, observations, prompts and projects (mem_stats)."""
    with tier.database.reading() as connection:
        found = projects.for_reading(tier, connection, project=project) if project else projects.current(tier, connection)[0]
        totals = _totals(connection)
        names = [
            row[0]
            for row in connection.execute(
                "SELECT project FROM observations WHERE deleted_at IS NULL AND project <> '' "
                "GROUP BY project ORDER BY max(created_at) DESC, project"
            )
        ]
    listed = f" ({', '.join(names[:20])}{', …' if len(names) > 20 else ''})" if names else ""
    text = "\n".join(
        [
            f"Sessions: {totals['sessions']:,}",
            f"Observations: {totals['observations']:,}",
            f"Prompts: {totals['prompts']:,}",
            f"Projects: {len(names):,}{listed}",
        ]
    )
    return answers.answer(found, text, **totals, projects=names)


def suggest_topic_key(tier, *, type="", title="", content=""):
    """Suggest the key for a subject (mem_suggest_topic_key)."""
    title, content = privacy.clean(title)[0], privacy.clean(content)[0]
    if not title.strip() and not content.strip():
        raise Refusal("missing_argument", "`title` or `content` is required.", argument="title")
    key = topics.suggest(type, title, content)
    with tier.database.reading() as connection:
        found = projects.current(tier, connection)[0]
        taken = connection.execute(
            "SELECT id, title FROM observations WHERE topic_key = ? AND project = ? AND deleted_at IS NULL ORDER BY id DESC LIMIT 1",
            (key, found.name),
        ).fetchone()
    text = f"Suggested topic_key: {key}" + (
        f"\nIn use by #{taken['id']} ({answers.one_line(taken['title'])}): a save with this key updates it." if taken else ""
    )
    return answers.answer(found, text, topic_key=key, used_by=taken["id"] if taken else None)


def current_project(tier):
    """Say which project a call without one is about, and why; never fails, not even without a database (mem_current_project)."""
    trouble = None
    try:
        with tier.database.reading() as connection:
            found, available, error = projects.current(tier, connection)
    except (Busy, StorageError) as error_of_database:
        trouble = error_of_database
        with tier.database.nothing() as connection:
            found, available, error = projects.current(tier, connection)
    lines = [f"Working folder: {tier.folder}"]
    if available:
        lines.append(f"Projects: {', '.join(available)}")
    error = trouble or error
    if error is not None:
        lines.append(f"Hint: {error}")
    return answers.answer(
        found,
        "\n".join(lines),
        cwd=tier.folder,
        available_projects=available,
        session_id=tier.session_id or None,
        error_hint=None if error is None else str(error),
        error_code=None if error is None else error.code,
    )


def list_projects(tier):
    """List all projects with what they hold (mem_list_projects)."""
    with tier.database.reading() as connection:
        found = projects.current(tier, connection)[0]
        rows = []
        for name in projects.known(connection):
            live, newest = connection.execute(
                "SELECT count(*), max(updated_at) FROM observations WHERE project = ? AND deleted_at IS NULL", (name,)
            ).fetchone()
            row = {
                "name": name,
                "observations": live,
                "sessions": _count(connection, "sessions", name),
                "prompts": _count(connection, "prompts", name),
                "aliases": [
                    alias[0] for alias in connection.execute("SELECT alias FROM aliases WHERE project = ? ORDER BY alias", (name,))
                ],
            }
            rows.append({**row, **({"last_activity": newest} if newest else {})})
    lines = [
        f"- {row['name']}: {answers.counted(row['observations'], 'observation')}, {answers.counted(row['sessions'], 'session')}, "
        f"{answers.counted(row['prompts'], 'prompt')}"
        + (f", last {row['last_activity']}" if "last_activity" in row else "")
        + (f" (also: {', '.join(row['aliases'])})" if row["aliases"] else "")
        for row in rows
    ]
    return answers.answer(found, "\n".join(lines) or "No projects yet.", projects=rows)


def _context_rows(connection, filters, project):
    where, values = searching.where(filters)
    pinned = connection.execute(
        f"SELECT o.* FROM observations o INDEXED BY observations_pinned WHERE o.pinned AND o.deleted_at IS NULL{where} "
        "ORDER BY o.created_at DESC, o.id DESC LIMIT ?",
        (*values, limits.CONTEXT_PINNED),
    ).fetchall()
    newest = connection.execute(
        f"SELECT o.* FROM observations o WHERE NOT o.pinned AND o.deleted_at IS NULL{where} ORDER BY o.created_at DESC, o.id DESC LIMIT ?",
        (*values, limits.CONTEXT_ROWS),
    ).fetchall()
    return (
        sessions.recent(connection, project, limits.CONTEXT_SESSIONS),
        prompts.recent(connection, project, limits.CONTEXT_PROMPTS),
        pinned,
        newest,
    )


def _context_sections(recent, asked, pinned, newest, now, compact):
    def entry(row):
        lines = [f"- {answers.heading(row)}", f"  {answers.facts(row, now)}"]
        return lines if compact else [*lines, f"  > {answers.preview(row['content'])[0]}"]

    def session(row):
        state = f"ended {row['ended_at']}" if row["ended_at"] else "open"
        line = f"- {row['project']}, {row['started_at']}, {state}: {answers.counted(row['observations'], 'observation')}"
        return [line] + ([f"  > {answers.preview(row['summary'], limits.SHORT_PREVIEW)[0]}"] if row["summary"] else [])

    return [
        ("## Recent sessions", [session(row) for row in recent]),
        (
            "## Recent prompts",
            [[f"- {row['created_at']}", f"  > {answers.preview(row['content'], limits.SHORT_PREVIEW)[0]}"] for row in asked],
        ),
        ("## Pinned", [entry(row) for row in pinned]),
        ("## Recent observations", [entry(row) for row in newest]),
    ]


def _within(budget, lines, sections):
    """Return (lines, omitted): whole entries of the sections as long as they fit the budget of bytes."""
    used = sum(len(line.encode()) + 1 for line in lines)
    omitted = 0
    for title, entries in sections:
        opened = False
        for entry in entries:
            made = [*([] if opened else [title]), *entry]
            size = sum(len(line.encode()) + 1 for line in made)
            if used + size > budget:
                omitted += 1
                continue
            lines, used, opened = lines + made, used + size, True
    return lines, omitted


def _totals(connection):
    return {
        "sessions": connection.execute("SELECT count(*) FROM sessions").fetchone()[0],
        "observations": connection.execute(LIVE).fetchone()[0],
        "prompts": connection.execute("SELECT count(*) FROM prompts").fetchone()[0],
    }


def _count(connection, table, project):
    return connection.execute(f"SELECT count(*) FROM {table} WHERE project = ?", (project,)).fetchone()[0]
