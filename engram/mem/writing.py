"""The functions under the writing tools of the session tier and under `engram mem save`.

Each takes the Tier and plain arguments, checks everything before it writes, writes in one transaction and returns a Result
with the project envelope. Must not know MCP or terminals. Order of checks: mem-tools.md 1.4.
"""

from __future__ import annotations

import re

from engram.mem import answers, echo, intake, limits, observations, privacy, projects, relations, topics
from engram.mem.names import spoken
from engram.mem.refusals import Refusal


def save(
    tier,
    *,
    title,
    content,
    type="manual",
    session_id="",
    scope="project",
    topic_key="",
    project="",
    project_choice_reason="",
    recovery_token="",
    capture_prompt=True,
    given_up=lambda: False,
):
    """Save an observation, or update the one of the same topic or the same text (mem_save)."""
    content, notes = intake.text("content", content, limits.CONTENT)
    title, more = intake.text("title", title, limits.TITLE)
    title, notes = title.strip(), notes + more
    type = intake.word("type", type) or "manual"
    scope = observations.scope_of(scope)
    key = topics.canonical(privacy.clean(topic_key)[0]) or None
    now = tier.clock()
    with tier.database.writing(given_up) as connection:
        found = projects.for_writing(
            tier, connection, project=project, session_id=session_id, reason=project_choice_reason, token=recovery_token
        )
        warnings = intake.name_warnings(connection, found, project)
        session = intake.session(tier, connection, found, session_id)
        given, (content, original) = content, echo.unwrap(connection, content)
        if original is None and content != given:
            notes.append("content: lines of an earlier answer of Engram left out")
        before = original or (observations.same_topic(connection, key, found.name, scope) if key else None)
        if original is not None:
            row, did = observations.seen_again(connection, now, original["id"]), "already"
        elif before is not None:
            row, did = observations.revise(connection, now, before, session_id=session, type=type, title=title, content=content), "updated"
        else:
            before = observations.same_text(connection, now, content, title, type, found.name, scope)
            if before is not None:
                row, did = observations.seen_again(connection, now, before["id"]), "already"
            else:
                row = observations.insert(
                    connection,
                    now,
                    session_id=session,
                    type=type,
                    title=title,
                    content=content,
                    project=found.name,
                    scope=scope,
                    topic_key=key,
                    prompt_id=_prompt(tier, session, capture_prompt),
                )
                did = "saved"
        candidates = relations.find_candidates(connection, now, row) if did == "saved" else []
        projects.bind(connection, found)
    tier.activity.saves += 1
    tier.activity.last_save = now
    return _saved(found, row, did, notes, warnings, candidates, now, key)


def update(
    tier,
    *,
    id,
    expected_project,
    title=None,
    content=None,
    find=None,
    replace=None,
    type=None,
    scope=None,
    topic_key=None,
    given_up=lambda: False,
):
    """Change fields of an observation; the earlier text is kept (mem_update)."""
    from_call = {"title": title, "content": content, "find": find, "replace": replace, "type": type, "scope": scope, "topic_key": topic_key}
    fields = {name: value for name, value in from_call.items() if value is not None}
    if not fields:
        raise Refusal(
            "missing_argument", "nothing to change: give at least one of title, content, find with replace, type, scope, topic_key."
        )
    if ("find" in fields) != ("replace" in fields) or ("find" in fields and "content" in fields):
        raise Refusal("invalid_argument", "`find` and `replace` go together, and not with `content`.", argument="find")
    if fields.get("find") == "":
        raise Refusal("invalid_argument", "`find` is empty.", argument="find")
    changes, notes = {}, []
    for name, most in (("title", limits.TITLE), ("content", limits.CONTENT)):
        if name in fields:
            changes[name], more = intake.text(name, fields[name], most)
            notes += more
    if "title" in changes:
        changes["title"] = changes["title"].strip()
    if "type" in fields:
        changes["type"] = intake.word("type", fields["type"]) or "manual"
    if "scope" in fields:
        changes["scope"] = observations.scope_of(fields["scope"])
    if "topic_key" in fields:
        changes["topic_key"] = topics.canonical(privacy.clean(fields["topic_key"])[0]) or None
    now = tier.clock()
    with tier.database.writing(given_up) as connection:
        row, found = _owned(tier, connection, id, expected_project)
        if "find" in fields:
            if fields["find"] not in row["content"]:
                return answers.answer(
                    found,
                    f"`find` does not occur in {answers.heading(row)}; nothing was changed.",
                    id=row["id"],
                    sync_id=row["sync_id"],
                    changed=False,
                    revision_count=row["revision_count"],
                )
            changes["content"], more = intake.text("content", row["content"].replace(fields["find"], fields["replace"]), limits.CONTENT)
            notes += more
        row = observations.revise(connection, now, row, **changes)
    lines = [f"Updated {answers.heading(row)} (revision {row['revision_count']})."]
    return answers.answer(
        found,
        "\n".join(lines + intake.noted(notes)),
        id=row["id"],
        sync_id=row["sync_id"],
        changed=True,
        revision_count=row["revision_count"],
        state=observations.state(row, now),
    )


def delete(tier, *, id, expected_project, hard_delete=False, given_up=lambda: False):
    """Delete an observation: marked as deleted, or gone for good with `hard_delete` (mem_delete).

    `expected_project` None is for a person at a terminal, who means the observation of that number.
    """
    with tier.database.writing(given_up) as connection:
        if expected_project is None:
            row = observations.get(connection, id, deleted=hard_delete)
            found = projects.stored(row)
        else:
            row, found = _owned(tier, connection, id, expected_project, deleted=hard_delete)
        observations.delete(connection, tier.clock(), id, hard=hard_delete)
    return answers.answer(
        found, f"{'Deleted for good' if hard_delete else 'Deleted'}: {answers.heading(row)}.", id=id, hard_delete=hard_delete
    )


def pin(tier, *, id, pinned, given_up=lambda: False):
    """Pin or unpin an observation: pinned ones come first in mem_context (mem_pin, mem_unpin)."""
    with tier.database.writing(given_up) as connection:
        row = observations.pin(connection, id, pinned)
    return answers.answer(
        projects.stored(row), f"{'Pinned' if pinned else 'Unpinned'} {answers.heading(row)}.", id=id, sync_id=row["sync_id"], pinned=pinned
    )


def _saved(found, row, did, notes, warnings, candidates, now, key):
    verb = {"saved": "Saved", "updated": f"Updated (revision {row['revision_count']})", "already": "Already saved as"}[did]
    lines = [f"{verb} {answers.heading(row)}"]
    if did == "updated":
        lines.append("The earlier text is kept; mem_get_observation shows it.")
    if not key and did == "saved" and row["type"] != "session_summary":
        lines.append(f"Suggested topic_key for later updates: {topics.suggest(row['type'], row['title'], row['content'])}")
    lines += intake.noted(notes)
    if candidates:
        lines.append(f"{answers.counted(len(candidates), 'possible conflict')}; judge each with mem_judge:")
        lines += [f"- {answers.heading(other)} judgment_id={sync_id}" for other, _, sync_id in candidates]
    size = len(row["content"].encode("utf-8", "surrogatepass"))
    # two projects that are near in name or a path in a text are worth a word, never a refusal
    warnings = [*warnings, _absolute_path(row["content"]) if did != "already" else None, _orders(row)]
    made = {"judgment_required": bool(candidates)}
    if candidates:
        made |= {
            "judgment_status": "pending",
            "judgment_id": candidates[0][2],
            "candidates": [
                {
                    "id": other["id"],
                    "sync_id": other["sync_id"],
                    "title": answers.visible(other["title"]),
                    "type": other["type"],
                    "score": score,
                    "judgment_id": sync_id,
                    **({"topic_key": other["topic_key"]} if other["topic_key"] else {}),
                }
                for other, score, sync_id in candidates
            ],
        }
    return answers.answer(
        found,
        "\n".join(lines),
        warnings=warnings,
        id=row["id"],
        sync_id=row["sync_id"],
        state=observations.state(row, now),
        review_after=row["review_after"],
        status=did,
        revision_count=row["revision_count"],
        duplicate_count=row["duplicate_count"],
        session_id=row["session_id"],
        scope=row["scope"],
        topic_key=row["topic_key"],
        truncation={"original_bytes": size, "limit_bytes": 4 * limits.CONTENT, "limit_characters": limits.CONTENT, "truncated": False},
        **made,
    )


def _prompt(tier, session, wanted):
    return tier.prompts.pop(session, None) if wanted else None


def _owned(tier, connection, id, expected_project, *, deleted=False):
    """Return (row, Resolved) of a row that the caller may change. Raises Refusal (project_mismatch, project_required, not_found)."""
    expected = projects.follow(connection, spoken(expected_project, argument="expected_project"))
    row = observations.get(connection, id, deleted=deleted)
    found = projects.stored(row)
    if not row["project"]:
        raise Refusal(
            "project_required",
            f"observation #{id} has no project.",
            hint="Import it anew, or save it under a project.",
            **projects.origin(found),
        )
    here = projects.current(tier, connection)[0]
    surely = here.name and not (here.source == "dir_basename" and here.warnings)
    for name, who in (
        (here.name if surely else row["project"], f"this process works on {here.name}"),
        (expected, f"expected_project is {expected}"),
    ):
        if name != row["project"]:
            raise Refusal(
                "project_mismatch",
                f"observation #{id} belongs to {row['project']}, and {who}; nothing was changed.",
                hint="Work in that project, or start the server with --project.",
                id=id,
                actual_project=row["project"],
                expected_project=expected,
                **projects.origin(here if surely else found),
            )
    return row, found


def _absolute_path(content):
    found = re.search(r"(?<![\w:/.\\~<])(?:/[\w.@-]+/[\w.@/-]+|[A-Za-z]:\\[\w.\\-]+|\\\\[\w.-]+\\[\w.\\-]+)", content)
    return (
        f"the text has an absolute path ({found[0][:80]}), which another machine doesn't have; "
        "a path from the project's root travels better."
        if found
        else None
    )


def _orders(row):
    lines = privacy.orders(row["content"])
    if not lines:
        return None
    listed = ", ".join(map(str, lines[:5]))
    return f"line {listed} reads like an instruction to the reader; it is kept as a quotation and shown with this warning."
