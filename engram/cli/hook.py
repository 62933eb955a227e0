"""`engram hook <host>`: answer one event of a host with what its model should know now.

Must not know the hosts' formats (`hook_events`) or what a session is told (`hook_dose`). People wait for this at every
prompt, so no parser runs. It fails open (link.md, Hooks): whatever goes wrong, the host gets its empty answer
and exit code 0, and stderr says why.
"""
from __future__ import annotations

from engram.cli import hook_events
from engram.cli.context import Context, write
from engram.errors import EngramError
from engram.store import places

LARGEST_EVENT = 16 * 1024 * 1024
HELP = """usage: engram hook <host>    (claude, codex, gemini, cursor, windsurf, opencode)

Reads a host's hook event as JSON on standard input and answers in the host's own format; `engram link <host>`
sets it up. Writes which memories a session got into your Engram folder, and no prompt text.
"""


def main(words, context=None):
    """Answer the event on stdin for the host that `words` name. Returns 0, always."""
    context = context or Context()
    if "--help" in words or "-h" in words:
        write(context.stdout, HELP)
        return 0
    name = hook_events.host(words)
    event, text = None, ""
    try:
        if name is None:
            raise ValueError(f"no such host: {' '.join(words) or '(none named)'}.")
        event = hook_events.read(name, _stdin(context), context.env)
        text = _text(name, event, context) if event else ""
    except Exception as error:  # broad like the two doors of architecture.md: a hook must never stop a prompt
        if context.env.get("ENGRAM_DEBUG"):
            raise
        context.note(f"engram hook: {error if isinstance(error, (EngramError, ValueError)) else repr(error)}")
    write(context.stdout, hook_events.answer(name, event, text) if name else "{}")
    return 0


def _stdin(context):
    if context.stdin is None or context.stdin.isatty():
        raise ValueError("no event on standard input, where a host sends it.")
    return context.stdin.buffer.read(LARGEST_EVENT)


def _text(name, event, context):
    place, row = places.find(event.folder, env=context.env), hook_events.HOSTS[name]
    if not place.stores:
        return ""
    read, proof = place.settings.get("read"), place.settings.get("proof") == "compact"
    if not (row.injects or proof):
        return ""
    if read in ("manual", "off") or read == "startup" and event.kind == hook_events.PROMPT:
        return f"Engram proof: skipped, `read` is `{read}`." if proof else ""
    if event.kind == hook_events.PROMPT and not event.prompt:
        return ""
    from engram.cli import hook_dose  # not at the top: hooks of the user run in every folder, and most have no store

    return hook_dose.text(place, name, row, event, read, proof, context.note)
