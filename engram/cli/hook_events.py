"""What each host sends to a hook and how it wants to be answered: one row per host, bytes in, text out.

Must not know the store, what is loaded, or what a session got before. Facts: hosts.md (seen with the real
hosts) and link.md, Hooks.
"""
from __future__ import annotations

import json
import os
from collections import namedtuple

START, PROMPT = "start", "prompt"
LONGEST_PROMPT = 8000  # of a longer one the head and the tail route: pasted logs stand in between
GEMINI_OPEN, GEMINI_CLOSE = "<hook_context>", "</hook_context>"

Event = namedtuple("Event", "kind name session folder source prompt")


def _nested(event, text):
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})


def _cursor(event, text):
    return json.dumps({"additional_context": text})


def _plugin(event, text):
    return json.dumps({"context": text})


def _shown(event, text):
    return text


# events: what the host calls a session start and a prompt. answer: its format. empty: what says "nothing"
# there. injects: whether the text reaches the model. keeps: whether an injected text stays in the
# conversation; where it does not (the OpenCode plugin puts its text into each request anew, and replaces the one of
# the prompt before) every answer is whole. resumed: what of it is back when a session is resumed, by the kind of event
# that brought it (seen with the real hosts). foreign: a payload key or variable by which another host shows that it
# runs this host's hooks too (hosts.md, 1.10); a variable counts only without `transcript_path`: children inherit it.
Row = namedtuple("Row", "events answer empty injects keeps resumed foreign")
HOSTS = {
    "claude": Row({"SessionStart": START, "UserPromptSubmit": PROMPT}, _nested, "{}", True, True, (PROMPT,),
                  ("cursor_version", "COPILOT_CLI")),
    "codex": Row({"SessionStart": START, "UserPromptSubmit": PROMPT}, _nested, "{}", True, True, (START, PROMPT), ()),
    "gemini": Row({"SessionStart": START, "BeforeAgent": PROMPT}, _nested, "{}", True, True, (), ()),
    "cursor": Row({"sessionStart": START}, _cursor, "{}", True, True, (), ()),
    "windsurf": Row({"pre_user_prompt": PROMPT}, _shown, "", False, True, (), ()),
    "opencode": Row({"SessionStart": START, "UserPromptSubmit": PROMPT}, _plugin, "{}", True, False, (), ()),
}
ALIASES = {"antigravity": "gemini", "antigravity-cli": "gemini", "open-code": "opencode", "cascade": "windsurf"}

# Where a field stands, in the order in which the places are asked; "$NAME" is an environment variable.
NAMES = ("hook_event_name", "hookEventName", "event", "agent_action_name")
SESSIONS = ("session_id", "sessionId", "conversation_id", "trajectory_id", "$GEMINI_SESSION_ID")
FOLDERS = ("cwd", "workspace_roots", "$CURSOR_PROJECT_DIR", "$GEMINI_CWD", "$CLAUDE_PROJECT_DIR")
PROMPTS = ("prompt", "user_prompt", "tool_info.user_prompt", "message")


def host(words):
    """Return the host's name for the words after `engram hook`, or None: `claude`, `--host claude`."""
    for word in words:
        name = word.removeprefix("--host=")
        name = ALIASES.get(name, name)
        if name in HOSTS:
            return name
    return None


def read(name, data, env):
    """Return the Event in what host `name` sent, or None when there is nothing to do for it.

    `data` is what came on stdin. Raises ValueError, with what is wrong, for anything but a JSON object.
    """
    row = HOSTS[name]
    try:
        payload = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the event is not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise ValueError("the event is not a JSON object.")
    event = _first(payload, NAMES, env)
    kind = row.events.get(event)
    if kind is None or _foreign(row, payload, env):
        return None
    prompt = _first(payload, PROMPTS, env) if kind == PROMPT else ""
    return Event(kind, event, _first(payload, SESSIONS, env), _folder(payload, env), _first(payload, ("source",), env),
                 _shorten(_own_words(prompt)).strip())


def answer(name, event, text):
    """Return what to print for `text`; the host's empty answer for none."""
    row = HOSTS[name]
    return row.answer(event, text) if text else row.empty


def _first(payload, places, env):
    for place in places:
        if place.startswith("$"):
            value = env.get(place[1:])
        else:
            value = payload
            for key in place.split("."):
                value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""


def _folder(payload, env):
    roots = payload.get("workspace_roots")
    if isinstance(roots, list) and roots:
        payload = {**payload, "workspace_roots": roots[0]}
    for place in FOLDERS:
        folder = _first(payload, (place,), env)
        if folder and os.path.isabs(folder) and os.path.isdir(folder):
            return folder
    return os.getcwd()


def _foreign(row, payload, env):
    return any(mark in payload or mark in env and "transcript_path" not in payload for mark in row.foreign)


def _own_words(prompt):
    """Take out what hooks injected before: Gemini reports it as a part of the prompt (hosts.md, 1.11)."""
    while True:
        before, opened, rest = prompt.partition(GEMINI_OPEN)
        inside, closed, after = rest.partition(GEMINI_CLOSE)
        if not closed:
            return before if opened else prompt
        prompt = before + after


def _shorten(prompt):
    half = LONGEST_PROMPT // 2
    return prompt if len(prompt) <= LONGEST_PROMPT else prompt[:half] + " " + prompt[-half:]
