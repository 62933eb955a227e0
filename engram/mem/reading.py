"""The functions under the reading tools of the session tier and under `engram mem search|context|timeline|stats`.

Each takes the Tier and plain arguments and returns a Result with the project envelope; nothing is written. Must not know
MCP or terminals. Details: mem-tools.md 1.4, 2.7, 2.8.
"""

from __future__ import annotations

from engram.mem import answers, durable, limits, names, observations, privacy, projects, prompts, relations, searching, sessions
from engram.mem.refusals import Refusal

MODES = ("all", "any")
FORMATS = ("compact",)


def search(
    tier, *, query="", type="", project="", all_projects=False, scope="", match_mode="all", response_format="", limit=limits.SEARCH_DEFAULT
):
    """Find observations for words; a blank query lists the newest (mem_search)."""
    mode, form = match_mode.strip().lower() or "all", response_format.strip().lower()
    if mode not in MODES:
        raise Refusal("invalid_argument", "`match_mode` is neither all nor any.", argument="match_mode")
    if form and form not in FORMATS:
        raise Refusal("invalid_argument", "`response_format` is not compact; leave it out for the full form.", argument="response_format")
    limit = min(limit, limits.SEARCH_MOST) if limit > 0 else limits.SEARCH_DEFAULT
    query, now = privacy.clean(query)[0].strip(), tier.clock()
    with tier.database.reading() as connection:
        if all_projects:
            found = projects.Resolved("", "all_projects", "")
        else:
            found = projects.for_reading(tier, connection, project=project)
        wide = all_projects or (scope.strip().lower() == "personal" and not project)
        filters = searching.Filters(
            None if wide else found.name, observations.scope_of(scope) if scope.strip() else None, type.strip() or None
        )
        parsed = searching.parse(query)
        hits = _hits(connection, query, parsed, filters, mode, limit, now)
        hint = _hint(tier, connection, query, parsed, filters, mode, found, now) if not hits else None
        related = {row["id"]: relations.of(connection, row["sync_id"]) for row in hits}
        folder = durable.folder(tier, connection, found)
    lines, approved, warnings = durable.matching(tier, folder, query) if query and folder else ([], [], [])
    text, results = _listed(hits, query, found, related, now, hint, lines)
    if form == "compact":
        for made, row in zip(results, hits):
            made["relations"] = related[row["id"]]
    warnings = [*warnings, answers.orders_warning(hits), answers.nudge(tier, now)]
    return answers.answer(
        found,
        text,
        warnings=warnings,
        result=answers.counted(len(hits), "memory", "memories") + " found." if form else None,
        results=results,
        durable=approved or None,
        count=len(hits),
    )


def get_observation(tier, *, id, project=""):
    """Show an observation whole, with its earlier revisions and relations (mem_get_observation)."""
    now = tier.clock()
    with tier.database.reading() as connection:
        row = observations.get(connection, id)
        if project:
            found = projects.for_reading(tier, connection, project=project)
        else:
            found = projects.current(tier, connection)[0]
            if not found.name:
                found = projects.Resolved(row["project"], "stored_project", "")
        earlier = observations.revisions(connection, id)
        related = relations.of(connection, row["sync_id"])
        prompt = prompts.find(connection, row["prompt_id"]) if row["prompt_id"] else None
    content = answers.visible(row["content"])
    mark = observations.content_hash(row["content"])[:8]
    lines = [
        f"Memory {answers.heading(row)}",
        f"  {answers.facts(row, now)}",
        f"Session: {row['session_id']}" + (f" | tool: {answers.one_line(row['tool_name'])}" if row["tool_name"] else ""),
        f"Seen {row['duplicate_count']} times, revision {row['revision_count']}, created {row['created_at']}",
        answers.LABEL,
        f"=== content {mark} ===",
        content,
        f"=== end {mark} ===",
        *relations.lines(related),
    ]
    if prompt is not None:
        lines.append(f"Asked for by: {answers.preview(prompt['content'])[0]}")
    history, room = [], limits.HISTORY
    for old in earlier:
        room -= len(old["content"])
        made = {
            "revision": old["revision"],
            "type": old["type"],
            "title": answers.visible(old["title"]),
            "written_at": old["written_at"],
            "replaced_at": old["replaced_at"],
        }
        lines.append(f"Earlier, revision {old['revision']} of {old['written_at']}: {answers.one_line(old['title'])}")
        if room >= 0:
            made["content"] = answers.visible(old["content"])
            mark = observations.content_hash(old["content"])[:8]
            lines += [f"=== content {mark} ===", made["content"], f"=== end {mark} ==="]
        else:
            lines.append("  (too long to show here; engram mem export has it)")
        history.append(made)
    observation = {
        **answers.summary(row, now),
        "content": content,
        "session_id": row["session_id"],
        "tool_name": row["tool_name"],
        "duplicate_count": row["duplicate_count"],
        "revision_count": row["revision_count"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "prompt": prompt["content"] if prompt is not None else None,
    }
    return answers.answer(
        found,
        "\n".join(lines),
        warnings=[answers.orders_warning([row])],
        id=row["id"],
        sync_id=row["sync_id"],
        observation={name: value for name, value in observation.items() if value is not None},
        version_count=len(history) + 1,
        revisions=history,
        relations=related,
    )


def timeline(tier, *, observation_id, before=limits.TIMELINE_DEFAULT, after=limits.TIMELINE_DEFAULT, project=""):
    """Show what was noted around an observation in its session (mem_timeline)."""
    now = tier.clock()
    before, after = (min(number, limits.TIMELINE_MOST) if number > 0 else limits.TIMELINE_DEFAULT for number in (before, after))
    with tier.database.reading() as connection:
        row = observations.get(connection, observation_id)
        found = projects.for_reading(tier, connection, project=project) if project else projects.current(tier, connection)[0]
        if not found.name:
            found = projects.Resolved(row["project"], "stored_project", "")
        if row["project"] != found.name:
            raise Refusal(
                "project_mismatch",
                f"observation #{observation_id} belongs to {row['project'] or 'no project'}, not to {found.name}.",
                hint=f"Pass project={row['project']}." if row["project"] else None,
                actual_project=row["project"],
                **projects.origin(found),
            )
        query = "SELECT * FROM observations WHERE session_id = ? AND deleted_at IS NULL AND id {} ? ORDER BY id {} LIMIT ?"
        earlier = connection.execute(query.format("<", "DESC"), (row["session_id"], row["id"], before)).fetchall()[::-1]
        later = connection.execute(query.format(">", "ASC"), (row["session_id"], row["id"], after)).fetchall()
        total = connection.execute(
            "SELECT count(*) FROM observations WHERE session_id = ? AND deleted_at IS NULL", (row["session_id"],)
        ).fetchone()[0]
        session = sessions.find(connection, row["session_id"])
    started = session["started_at"] if session is not None else "unknown"
    lines = [f"Session {row['session_id']}, started {started}: {answers.counted(total, 'observation')}. {answers.LABEL}"]
    entries = []
    for other in (*earlier, row, *later):
        focus = other["id"] == row["id"]
        shown, cut = answers.preview(other["content"], limits.TIMELINE_FOCUS if focus else limits.TIMELINE_ENTRY)
        lines += [f"{'=> ' if focus else '- '}{answers.heading(other)}", f"  {answers.facts(other, now)}", f"  > {shown}"]
        entries.append(
            {**answers.summary(other, now), "preview": shown, "truncated": cut, "focus": focus, "created_at": other["created_at"]}
        )
    return answers.answer(
        found,
        "\n".join(lines),
        warnings=[answers.orders_warning([*earlier, row, *later])],
        session_id=row["session_id"],
        total=total,
        results=entries,
    )


def _hits(connection, query, parsed, filters, mode, limit, now):
    if not query:
        return searching.newest(connection, filters, limit)
    exact = []
    if "/" in query:
        key = "-".join(query.lower().split())
        exact = [
            row
            for row in connection.execute(
                "SELECT * FROM observations WHERE topic_key = ? AND deleted_at IS NULL ORDER BY updated_at DESC, id DESC LIMIT ?",
                (key, limit),
            )
            if searching.fits(row, filters)
        ]
    rows = {row["id"]: row for row in exact}
    for row, _ in searching.search(connection, parsed, filters, any_word=mode == "any", limit=limit, now=now):
        rows.setdefault(row["id"], row)
    return list(rows.values())[:limit]


def _hint(tier, connection, query, parsed, filters, mode, found, now):
    # what to try when nothing was found; a search never fails for want of words in common (case QS-05)
    hints = []
    if query and mode == "all" and len(parsed.groups) > 1:
        some = searching.search(connection, parsed, filters, any_word=True, limit=limits.SEARCH_MOST, now=now)
        if some:
            hints.append(
                f"{answers.counted(len(some), 'memory has', 'memories have')} some of the words: search again with match_mode any."
            )
    if filters.project:
        others = projects.known(connection)
        if not projects.is_known(connection, filters.project):
            near = names.similar(filters.project, others)
            hints.append(f"Nothing is stored for {filters.project} yet." + (f" Similar projects: {', '.join(near)}." if near else ""))
        elif query and searching.search(connection, parsed, filters._replace(project=None), limit=1, now=now):
            hints.append("Other projects have matches: search again with all_projects.")
    return " ".join(hints)


def _listed(hits, query, found, related, now, hint, head):
    where = f" in {found.name}" if found.name else ""
    what = f' for "{answers.preview(query, 80)[0]}"' if query else ", the newest first,"
    if not hits:
        count = f"0 memories{what if query else ''}{where}." + (f" {hint}" if hint else "")
        return "\n".join([*head, count]), []
    lines, results, any_cut = [*head, f"{answers.counted(len(hits), 'memory', 'memories')}{what}{where}.", answers.LABEL, ""], [], False
    for number, row in enumerate(hits, 1):
        made, cut = answers.hit(number, row, now, related[row["id"]])
        lines += made
        any_cut = any_cut or cut
        shown, cut = answers.preview(row["content"])
        results.append({**answers.summary(row, now), "preview": shown, "truncated": cut})
    if any_cut:
        lines.append(answers.FOOTER)
    return "\n".join(lines), results
