"""The approval form of a proposal, and what an answer to it chose. Pure: rows in, a schema or a choice out.

Must not know how a form travels or what a commit does. The form holds only what every version with
elicitation knows, and never a memory's text: a person reads that in the dialog's message (mcp.md, Asking
the human).
"""
from __future__ import annotations

SCOPES = {"workspace": ("workspace",), "global": ("global",), "both": ("both", "workspace", "global")}
YES, CANCEL = "yes", "cancel"


def scope_of(proposal):
    """Return the scope of a proposal as one word: workspace, global or both."""
    return "both" if len(proposal.scopes) > 1 else proposal.scopes[0]


def form(proposal):
    """Return the requestedSchema that asks for a proposal: a yes for each candidate and the scope, or for a note one choice."""
    if proposal.kind == "note":
        return {"type": "object", "properties": {
            "choice": {"type": "string", "title": "Keep this note?", "enum": [YES, CANCEL]}}, "required": ["choice"]}
    properties = {f"c{number}": {"type": "boolean", "title": title, "default": False}
                  for number, title in _titles(proposal.candidates).items()}
    properties["scope"] = {"type": "string", "title": "Where to save", "enum": list(SCOPES[scope_of(proposal)])}
    return {"type": "object", "properties": properties, "required": []}


def _titles(candidates):
    """Return {number: "1 ADD use-pnpm"}; both verdicts where the two stores differ."""
    titles = {}
    for row in candidates:
        part = f"{row['verdict']} {row['id'] or row['target']}"
        known = titles.setdefault(row["number"], [])
        if part not in known:
            known.append(part)
    return {number: f"{number} {', '.join(parts)}" for number, parts in titles.items()}


def chosen(proposal, content):
    """Return (numbers, scope) that an accepted form chose, or None when the answer is no valid choice.

    Nothing chosen, an unknown number, a value of a wrong type and a scope that is wider than the
    proposal's are no valid choice. A missing scope is the proposal's own; of the chosen numbers those
    with something to write count, which a NOOP has not.
    """
    if proposal.kind == "note":
        return ([1], None) if content == {"choice": YES} else None
    allowed = SCOPES[scope_of(proposal)]
    scope = content.get("scope", allowed[0])
    numbers = {f"c{row['number']}": row["number"] for row in proposal.candidates}
    answers = {name: value for name, value in content.items() if name != "scope"}
    if scope not in allowed or not all(name in numbers and isinstance(value, bool) for name, value in answers.items()):
        return None
    picked = [number for name, number in numbers.items() if answers.get(name) and number in proposal.numbers]
    return (picked, None if scope == allowed[0] else scope) if picked else None


def refused(proposal, content):
    """Tell whether an accepted form was a person's no: a note's `cancel`."""
    return proposal.kind == "note" and content == {"choice": CANCEL}
