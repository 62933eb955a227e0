"""The 23 tools of the session tier as a table: names, titles, profiles, hints, parameters (mem-tools.md 1.3).

Must not know what a tool does (mem_tools.py joins the rows to their functions). Schemas are plain objects, open, without
enums; a number may come as a string of digits, which the surface makes a number before it checks.
"""

from __future__ import annotations

from collections import namedtuple

AGENT, ADMIN = "agent", "admin"
READ, ADD, SAME, DESTROY = (True, False, True), (False, False, False), (False, False, True), (False, True, True)

# hints: (readOnly, destructive, idempotent); eager False is a hint to clients that search for tools
Row = namedtuple("Row", "name title profile eager hints description required properties")


def text(description):
    return {"type": "string", "description": description}


def number(description):
    return {"type": "number", "description": description}


def flag(description):
    return {"type": "boolean", "description": description}


PROJECT = text("Project, when not the one of this session or folder (mem_current_project says which that is).")
REASON = text("Only after an ambiguous_project error, once the user has chosen: user_selected_after_ambiguous_project.")
TOKEN = text("The recovery_token of that error.")
SESSION = text("Session id, when one was registered. Left out: the session of this process. Never invent one.")
ID = number("Number of the observation, as in #12.")
EXPECTED = text("The project the observation belongs to; another one is refused.")
SCOPE = text("project (default), personal or global.")
WITHIN = text("Only this scope: project, personal or global. Left out: all; personal without a project looks in all projects.")
VERBS = "related, compatible, scoped, conflicts_with, supersedes or not_conflict"
CHOICE = {"project": PROJECT, "project_choice_reason": REASON, "recovery_token": TOKEN}

ROWS = (
    Row(
        "mem_search",
        "Search session memory",
        AGENT,
        True,
        READ,
        "Find what agents noted earlier in this project: decisions, fixes, discoveries. Use it before work that may have been done before. "
        "Any words are a query; a blank query lists the newest. Approved memories of the project come first. Previews are cut: fetch a hit "
        "with mem_get_observation before you rely on it.",
        ("query",),
        {
            "query": text("Words to look for. Blank lists the newest."),
            "type": text("Only this type, for instance decision."),
            "project": PROJECT,
            "all_projects": flag("Look in all projects."),
            "scope": WITHIN,
            "match_mode": text("all (default): every word must occur; any: some of them."),
            "response_format": text("compact: a count as result, previews and relations in results. Left out: the full text."),
            "limit": number("How many hits, 10 by default, at most 20."),
        },
    ),
    Row(
        "mem_save",
        "Save to session memory",
        AGENT,
        True,
        ADD,
        "Save one thing worth knowing later, at once and unasked: a decision, a fix with its cause, a convention, a discovery, a "
        "preference. Content in four parts: what, why, where, learned. The same topic_key updates the earlier text, which is "
        "kept. Secrets are redacted.",
        ("title",),
        {
            "title": text("Short, verb first, for instance: Chose token bucket for rate limiting."),
            "content": text("What is worth knowing, up to 50,000 characters. Required."),
            "observation": text("Old name of content."),
            "type": text("bugfix, decision, architecture, discovery, pattern, config, preference; manual by default."),
            "session_id": SESSION,
            "scope": SCOPE,
            "topic_key": text("One key per subject, for instance decision/rate-limiting: a later save with it updates this one."),
            **CHOICE,
            "capture_prompt": flag("Link the prompt saved before with mem_save_prompt; true by default."),
        },
    ),
    Row(
        "mem_save_prompt",
        "Save the user's prompt",
        AGENT,
        True,
        ADD,
        "Keep what the user asked for, so that the reason of later saves is known.",
        ("content",),
        {"content": text("The prompt in the user's words."), "session_id": SESSION, **CHOICE},
    ),
    Row(
        "mem_context",
        "Context of the project",
        AGENT,
        True,
        READ,
        "Show approved memories, recent sessions, prompts, pinned and recent observations of the project. Call it first in a session and "
        "after a compaction.",
        (),
        {
            "project": PROJECT,
            "scope": WITHIN,
            "max_bytes": number("Budget for the answer, 16384 by default, at most 65536."),
            "compact": flag("Titles without texts."),
        },
    ),
    Row(
        "mem_get_observation",
        "Show an observation",
        AGENT,
        True,
        READ,
        "Show one observation whole, with its earlier revisions and its relations. A needs_review one is stale: check it first.",
        ("id",),
        {"id": ID, "project": text("Project to name in the answer; it filters nothing.")},
    ),
    Row(
        "mem_session_summary",
        "Save a session summary",
        AGENT,
        True,
        ADD,
        "Before you are done: keep goal, instructions, discoveries, what was accomplished, next steps and relevant files.",
        ("content",),
        {"content": text("The summary."), "session_id": SESSION, **CHOICE},
    ),
    Row(
        "mem_current_project",
        "Current project",
        AGENT,
        True,
        READ,
        "Say which project calls are about, where that comes from, and which projects there are. Never fails.",
        (),
        {},
    ),
    Row("mem_list_projects", "List projects", AGENT, True, READ, "List all projects and how much they hold.", (), {}),
    Row(
        "mem_judge",
        "Judge a possible conflict",
        AGENT,
        True,
        ADD,
        "Give the verdict on a pair that mem_save reported, each by its own judgment_id. Ask the user when you are less than 0.7 sure, or "
        "when a decision would be superseded.",
        ("judgment_id", "relation"),
        {
            "judgment_id": text("Id from the candidates of mem_save."),
            "relation": text(f"One of {VERBS}."),
            "reason": text("Why, in a sentence."),
            "evidence": text("What shows it."),
            "confidence": number("From 0 to 1."),
            "session_id": SESSION,
        },
    ),
    Row(
        "mem_compare",
        "Compare two observations",
        AGENT,
        True,
        SAME,
        "Keep a verdict on any two observations of a project; a not_conflict keeps the pair from being asked about again.",
        ("memory_id_a", "memory_id_b", "relation", "confidence", "reasoning"),
        {
            "memory_id_a": ID,
            "memory_id_b": ID,
            "relation": text(f"How a stands to b: one of {VERBS}."),
            "confidence": number("From 0 to 1."),
            "reasoning": text("Why, in at most 200 characters."),
            "model": text("The model that judged."),
        },
    ),
    Row(
        "mem_update",
        "Update an observation",
        AGENT,
        False,
        ADD,
        "Correct an observation by its id: whole fields, or find and replace in its content. The earlier text is kept.",
        ("id", "expected_project"),
        {
            "id": ID,
            "expected_project": EXPECTED,
            "title": text("New title."),
            "content": text("New content."),
            "find": text("Text to replace everywhere in the content, as it stands there; with replace, not with content."),
            "replace": text("What to put in its place."),
            "type": text("New type."),
            "scope": text("New scope."),
            "topic_key": text("New topic key."),
        },
    ),
    Row(
        "mem_review",
        "Review old observations",
        AGENT,
        False,
        ADD,
        "list what is due for review, or mark_reviewed one that still holds. Mark none without the user.",
        ("action",),
        {
            "action": text("list or mark_reviewed."),
            "project": text("Only this project. Left out: all projects."),
            "limit": number("How many to list, 10 by default."),
            "observation_id": ID,
            "id": ID,
        },
    ),
    Row(
        "mem_suggest_topic_key",
        "Suggest a topic key",
        AGENT,
        False,
        READ,
        "Suggest the key for a subject, and say which observation has it.",
        (),
        {"type": text("Type of the observation."), "title": text("Its title; or give content."), "content": text("Its content.")},
    ),
    Row(
        "mem_delete",
        "Delete an observation",
        ADMIN,
        False,
        DESTROY,
        "Delete an observation: marked as deleted, or with hard_delete gone for good with its earlier revisions.",
        ("id", "expected_project"),
        {"id": ID, "expected_project": EXPECTED, "hard_delete": flag("For good; false by default.")},
    ),
    Row("mem_pin", "Pin an observation", AGENT, False, SAME, "Pin an observation: mem_context shows it always.", ("id",), {"id": ID}),
    Row("mem_unpin", "Unpin an observation", AGENT, False, SAME, "Take the pin off an observation.", ("id",), {"id": ID}),
    Row(
        "mem_stats",
        "Statistics",
        ADMIN,
        False,
        READ,
        "Count sessions, observations, prompts and projects, over all projects.",
        (),
        {"project": text("Project to name in the answer; counts are of all.")},
    ),
    Row(
        "mem_timeline",
        "Timeline around an observation",
        ADMIN,
        False,
        READ,
        "Show what was noted before and after an observation in the same session.",
        ("observation_id",),
        {
            "observation_id": ID,
            "before": number("How many before it, 5 by default."),
            "after": number("How many after it, 5 by default."),
            "project": PROJECT,
        },
    ),
    Row(
        "mem_session_start",
        "Start a session",
        AGENT,
        False,
        SAME,
        "Register a session id of yours for this process: saves without a session_id then go to it.",
        ("id",),
        {"id": text("The session's id."), "directory": text("Absolute path of the folder it works in; it decides the project.")},
    ),
    Row(
        "mem_session_end",
        "End a session",
        AGENT,
        False,
        SAME,
        "End a session by its id.",
        ("id",),
        {"id": text("The session's id."), "summary": text("What was done.")},
    ),
    Row(
        "mem_capture_passive",
        "Capture learnings",
        AGENT,
        False,
        SAME,
        "Save the items of a list below a heading such as ## Key Learnings, each once.",
        ("content",),
        {"content": text("The text with the list."), "session_id": SESSION, "source": text("Where it comes from; mcp-passive by default.")},
    ),
    Row(
        "mem_merge_projects",
        "Merge projects",
        ADMIN,
        False,
        DESTROY,
        "Move everything of misspelt projects to one. Only names that differ in case, blanks, or - against _.",
        ("from", "to"),
        {"from": text("Names, separated by commas."), "to": text("The name to keep.")},
    ),
    Row(
        "mem_doctor",
        "Check session memory",
        AGENT,
        False,
        READ,
        "Check the database and what is in it, and say what to do.",
        (),
        {"project": PROJECT, "check": text("Only this check.")},
    ),
)
