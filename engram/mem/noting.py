"""The functions under the tools that keep what a session is about: sessions, summaries, prompts, learnings.

Each takes the Tier and plain arguments, writes in one transaction and returns a Result. Must not know MCP or terminals
(mem-tools.md 2.9, 2.10).
"""

from __future__ import annotations

from engram.mem import answers, echo, intake, limits, observations, passive, projects, prompts, sessions
from engram.mem.refusals import too_long


def session_start(tier, *, id, directory="", given_up=lambda: False):
    """Register a session of the caller's id for this process (mem_session_start)."""
    id = sessions.checked_id(id)
    with tier.database.writing(given_up) as connection:
        row = sessions.find(connection, id)
        if row is not None and row["ended_at"] is None and row["project"] and not directory:
            found = projects.Resolved(row["project"], "session", row["directory"])
        else:
            found = projects.for_writing(tier, connection, directory=directory or None)
        new = sessions.start(tier, connection, id, found.name, directory or found.path or tier.folder)
        projects.bind(connection, found)
    return answers.answer(
        found, f"{'Started' if new else 'Continued'} session {id}. Saves of this process now go to it.", session_id=id, created=new
    )


def session_end(tier, *, id, summary="", given_up=lambda: False):
    """End a session by id; an unknown id is fine (mem_session_end)."""
    id = sessions.checked_id(id)
    summary, notes = intake.text("summary", summary, limits.CONTENT, blank=True)
    with tier.database.writing(given_up) as connection:
        row = sessions.find(connection, id)
        if row is not None and row["project"]:
            found = projects.Resolved(row["project"], "session", row["directory"])
        else:
            found = projects.current(tier, connection)[0]
        done = sessions.end(tier, connection, id, summary.strip())
    text = f"Ended session {id}." if done else f"There was no open session {id}; nothing to end."
    return answers.answer(found, "\n".join([text, *intake.noted(notes)]), session_id=id, ended=done)


def session_summary(tier, *, content, session_id="", project="", project_choice_reason="", recovery_token="", given_up=lambda: False):
    """Keep a summary of the session as an observation (mem_session_summary)."""
    content, notes = intake.text("content", content, limits.CONTENT)
    now = tier.clock()
    with tier.database.writing(given_up) as connection:
        found = projects.for_writing(
            tier, connection, project=project, session_id=session_id, reason=project_choice_reason, token=recovery_token
        )
        warnings = intake.name_warnings(connection, found, project)
        session = intake.session(tier, connection, found, session_id)
        title = f"Session summary: {found.name}"
        content, original = echo.unwrap(connection, content)
        before = original or observations.same_text(connection, now, content, title, "session_summary", found.name, "project")
        if before is not None:
            row = observations.seen_again(connection, now, before["id"])
        else:
            row = observations.insert(
                connection,
                now,
                session_id=session,
                type="session_summary",
                title=title,
                content=content,
                project=found.name,
                scope="project",
            )
        projects.bind(connection, found)
    lines = [
        f"{'Already saved as' if before is not None else 'Saved'} {answers.heading(row)}.",
        f"Activity: {answers.counted(tier.activity.calls, 'tool call')}, {answers.counted(tier.activity.saves, 'save')}.",
    ]
    tier.activity.saves += 1
    tier.activity.last_save = now
    return answers.answer(
        found, "\n".join(lines + intake.noted(notes)), warnings=warnings, id=row["id"], sync_id=row["sync_id"], session_id=session
    )


def save_prompt(tier, *, content, session_id="", project="", project_choice_reason="", recovery_token="", given_up=lambda: False):
    """Keep what the user asked; the next save of this session refers to it (mem_save_prompt)."""
    content, notes = intake.text("content", content, limits.CONTENT)
    with tier.database.writing(given_up) as connection:
        found = projects.for_writing(
            tier, connection, project=project, session_id=session_id, reason=project_choice_reason, token=recovery_token
        )
        warnings = intake.name_warnings(connection, found, project)
        session = intake.session(tier, connection, found, session_id)
        row, new = prompts.save(connection, tier.clock(), session_id=session, content=content, project=found.name)
        projects.bind(connection, found)
    tier.prompts[session] = row["sync_id"]
    shown, _ = answers.preview(row["content"], 80)
    return answers.answer(
        found,
        "\n".join([f"{'Saved' if new else 'Already saved'} prompt #{row['id']}: {shown}", *intake.noted(notes)]),
        warnings=warnings,
        id=row["id"],
        sync_id=row["sync_id"],
        session_id=session,
    )


def capture_passive(tier, *, content, session_id="", source="mcp-passive", given_up=lambda: False):
    """Save the items below a heading such as `## Key Learnings` (mem_capture_passive)."""
    if len(content) > limits.PASSIVE:
        raise too_long("`content`", len(content), limits.PASSIVE)
    content, notes = intake.text("content", content, limits.PASSIVE)
    source = intake.word("source", source) or "mcp-passive"
    items, short = passive.items(content)
    now, saved, rows = tier.clock(), 0, []
    with tier.database.writing(given_up) as connection:
        found = projects.for_writing(tier, connection, session_id=session_id)
        session = intake.session(tier, connection, found, session_id) if items else ""
        for item in items:
            before = connection.execute(
                "SELECT * FROM observations WHERE normalized_hash = ? AND project = ? AND deleted_at IS NULL LIMIT 1",
                (observations.content_hash(item), found.name),
            ).fetchone()
            if before is None:
                rows.append(
                    observations.insert(
                        connection,
                        now,
                        session_id=session,
                        type="passive",
                        title=passive.title(item),
                        content=item,
                        project=found.name,
                        scope="project",
                        tool_name=source,
                    )
                )
                saved += 1
            else:
                observations.seen_again(connection, now, before["id"])
        projects.bind(connection, found)
    lines = [f"{len(items)} extracted, {saved} saved, {len(items) - saved} duplicates."]
    if short:
        lines.append(
            f"{answers.counted(short, 'item')} left out: shorter than {passive.LEAST_CHARACTERS} characters or {passive.LEAST_WORDS} words."
        )
    if not items and not short:
        lines.append("There was no list below a heading `## Key Learnings`.")
    if saved:
        tier.activity.saves += 1
        tier.activity.last_save = now
    return answers.answer(
        found,
        "\n".join(lines + intake.noted(notes)),
        extracted=len(items),
        saved=saved,
        duplicates=len(items) - saved,
        too_short=short,
        ids=[row["id"] for row in rows],
    )
