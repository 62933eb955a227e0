"""What a caller hands in, before it is written: clean, within limits, in a session.

Shared by the writing tools. Must not know which tool it is for.
"""

from __future__ import annotations

from engram.mem import limits, privacy, projects, sessions
from engram.mem.names import similar
from engram.mem.refusals import Refusal, too_long


def text(name, value, most, *, blank=False):
    """Return (clean text, notes of what was taken out). Raises Refusal for a blank or too long one (case DB-06)."""
    if not blank and not value.strip():
        raise Refusal("missing_argument", f"`{name}` is blank; it is required.", argument=name)
    if len(value) > most:
        raise too_long(f"`{name}`", len(value), most)
    value, notes = privacy.clean(value)
    if not blank and not value.strip():
        raise Refusal("missing_argument", f"`{name}` is blank; it is required.", argument=name)
    return value, [f"{name}: {note}" for note in notes]


def word(name, value):
    """Return a short free word of a caller, clean and on one line. Raises Refusal when it is too long."""
    value = " ".join(privacy.clean(value)[0].split())
    if len(value) > limits.NAME:
        raise too_long(f"`{name}`", len(value), limits.NAME)
    return value


def session(tier, connection, found, session_id):
    """Return the id of the session that a write goes to: the one it names, else that of this process."""
    if session_id:
        return sessions.named(connection, session_id, found.name, found.path, tier.clock())
    return sessions.own(tier, connection, found.name, found.path)


def name_warnings(connection, found, project):
    """Return what a caller should know of the project's name: taken otherwise, or new and like others."""
    warnings = []
    if project and project.strip() != found.name:
        warnings.append(f"the project name `{project.strip()[: limits.NAME]}` was taken as {found.name}.")
    if not projects.is_known(connection, found.name):
        near = similar(found.name, projects.known(connection))
        if near:
            warnings.append(f"{found.name} is new; similar projects exist: {', '.join(near[:5])}.")
    return warnings


def noted(notes):
    """Return notes as lines of an answer."""
    return [f"Note: {note}." for note in notes]
