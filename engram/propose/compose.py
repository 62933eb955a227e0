"""From a candidate to the bytes of memory files: a new one, an updated one, a superseded one.

Pure: values in, bytes out, so that a preview and a commit can't differ. An update changes the statements that
the candidate restates and adds the others; every other section, list, key and line stays (upstream-format.md,
L-1 to L-6). Must not know verdicts, stores or approval.
"""

from __future__ import annotations

import re

from engram.errors import IntegrityError
from engram.propose.relation import CLOSE, CONTRADICTS, EXTENDS, SAME, closest
from engram.propose.statement import read, statements
from engram.safety.patterns import Pattern
from engram.store import ids, memory

_LIST_MARK = Pattern(r"^(\s*)([-*+•]|(\d{1,3})([.)]))(\s+)")
_HEADING = Pattern(r"^ {0,3}(#{1,3})(?=[ \t]|$)")
RESTATED = 0.85  # likeness from which on a close statement takes the place of the old one
_SUBHEADING = Pattern(r"^#{3,6}[ \t]", re.MULTILINE)


def wanted_id(text, type):
    """Return the id that a text would have if no other memory had it."""
    title = memory.title_of(text)
    made = ids.make(title, type)
    # without enough ASCII letters an id is a hash: of the whole text, or equal beginnings would collide
    return ids.make(text, type) if re.fullmatch(rf"{type}-[0-9a-f]{{8}}", made) else made


def new_file(candidate, *, id, type, scope, author, today, source="manual", extra=None):
    """Return (path, bytes) of a new memory. `extra` has further header keys (supersedes, evidence_refs, …)."""
    header = {
        "schema_version": 3,
        "id": id,
        "type": type,
        "scope": scope,
        "source": source,
        "author_name": author[0],
        "author_email": author[1],
        "authority": "reference" if type == "knowledge" else "instruction",
        "confidence": candidate.confidence or "high",
        "revision": 1,
        "created": today,
        "updated": today,
        "valid_from": today,
        "last_confirmed": today,
        "triggers": candidate.triggers or None,
        "depends_on": candidate.depends_on or None,
        "role": candidate.role or None,
        "level": candidate.level,
        **(extra or {}),
    }
    parts = [("Content", content(candidate.text))]
    if candidate.variants:
        parts.append(("Rule Variants", ""))
        parts += [(f"### {name.capitalize()}", content(wording)) for name, wording in candidate.variants.items()]
    if candidate.context:
        parts.append(("Origin", _nested(candidate.context)))
    return f"{memory.FOLDERS[type]}/{id}.md", memory.new(header, memory.title_of(candidate.text), parts)


def content(text):
    """Return a text as it stands in a section: one line as a list entry, more lines as they are."""
    return _nested(text) if "\n" in text else f"- {text}"


def _nested(text):
    """Return Markdown whose headings are below those of a memory file: they can't open a section of their own."""
    return "\n".join(line if fenced else _HEADING.sub("####", line) for line, fenced in _lines(text))


def _lines(text):
    """Yield (line, whether it is in or at a code fence)."""
    fence = None
    for line in text.split("\n"):
        found = memory.CODE_FENCE.match(line)
        if fence is None:
            fence = found[1][0] * 3 if found else None
            yield line, found is not None
        else:
            if found and found[1].startswith(fence):
                fence = None
            yield line, True


def updated_file(old, candidate, *, today, source=None, extra=None):
    """Return the bytes of a memory after an UPDATE; the same bytes when it would change nothing but dates."""
    changes = {}
    for name in ("triggers", "depends_on", "role"):
        changes.update(_merged_list(old, name, getattr(candidate, name)))
    for name, values in (extra or {}).items():
        if isinstance(values, list):
            changes.update(_merged_list(old, name, values))
    if candidate.confidence and candidate.confidence != old.meta.get("confidence"):
        changes["confidence"] = candidate.confidence
    if candidate.level is not None and candidate.level != old.level:
        changes["level"] = candidate.level
    sections = _sections(old, candidate)
    if not changes and not sections:
        return old.raw
    changes |= {"revision": old.revision + 1, "updated": today, "last_confirmed": today}
    return memory.edit(old.raw, changes, sections)


def superseded_file(old, by, *, today):
    """Return the bytes of a memory that gives way to another."""
    return memory.edit(old.raw, {"lifecycle": "superseded", "superseded_by": by, "updated": today})


def with_note(raw, note):
    """Return the bytes of a memory file with what the human said when approving it (answer B)."""
    old = memory.parse(raw, "").sections.get("Human Note", "")
    return memory.edit(raw, {}, {"Human Note": f"{old}\n\n{note}" if old else note})


def _merged_list(old, name, values):
    known = old.list(name)
    fresh = [value for value in values if value not in known]
    return {name: known + fresh} if fresh else {}


def _sections(old, candidate):
    """Return the sections of `old` that the candidate changes, by name, with their new text."""
    fresh = statements(candidate.text)
    made = {}
    if sum(line.rstrip() == "## Content" for line, fenced in _lines(old.body) if not fenced) > 1:
        raise IntegrityError(f"{old.id} has two `## Content` sections.", file=old.key, hint=f"Join them with engram edit {old.id}.")
    # without that section the whole body is the content: it stays, and the section is made for what is new
    before = old.sections.get("Content", "")
    body, pairs = merge(before, [new for new in fresh if before or not _says(old.content, new)])
    if body != before:
        made["Content"] = body
    for name, text in old.sections.items():
        if name.startswith("Rule Variants/"):
            variant = name.partition("/")[2].lower()
            given = candidate.variants.get(variant)
            wording = content(given) if given else _follow(text, pairs)
            if wording != text:
                made[name] = wording
    missing = {name: wording for name, wording in candidate.variants.items() if f"Rule Variants/{name.capitalize()}" not in old.sections}
    if missing:
        kept = old.sections.get("Rule Variants", "")
        for name in [name for name in made if name.startswith("Rule Variants/")]:
            kept = kept.replace(old.sections[name], made.pop(name), 1)
        blocks = [f"### {name.capitalize()}\n\n{content(wording)}" for name, wording in missing.items()]
        made["Rule Variants"] = "\n\n".join(([kept] if kept else []) + blocks)
    if candidate.context and candidate.context not in old.sections.get("Origin", ""):
        before = old.sections.get("Origin", "")
        made["Origin"] = f"{before}\n\n{_nested(candidate.context)}" if before else _nested(candidate.context)
    return made


def _says(text, statement):
    return read(statement).plain in {read(part).plain for part in statements(text)}


def merge(text, fresh):
    """Put statements into the text of a section: (new text, [(old statement or None, new statement)]).

    One that is there stays as it is; one that restates, extends or contradicts a statement takes its place; any
    other goes to the end of the list that is there.
    """
    pairs = []
    for new in fresh:
        theirs = statements(text)
        relation, at = closest(read(new), [read(old) for old in theirs])
        if relation.kind in (SAME, EXTENDS, CONTRADICTS) or relation.kind == CLOSE and relation.score >= RESTATED:
            old = theirs[at]
            if read(new).plain == read(old).plain:
                continue
            span = _place(text, old)
            if span:
                text = text[: span[0]] + _marked_as(old, new) + text[span[1] :]
                pairs.append((old, new))
                continue
        text = append(text, new)
        pairs.append((None, new))
    return text, pairs


def _place(text, statement):
    """Return (start, end) of a statement in a text, wrapped as it may be; None when it stands nowhere or twice."""
    found = list(re.finditer(r"(?<!\S)" + r"\s+".join(map(re.escape, statement.split())) + r"(?!\S)", text))
    return found[0].span() if len(found) == 1 and not statement.startswith(("```", "~~~")) else None


def _follow(text, pairs):
    """Bring a wording of a rule up to what happened to its content."""
    for old, new in pairs:
        bare = _LIST_MARK.sub("", old) if old else None
        span = _place(text, bare) if bare else None
        if span:
            text = text[: span[0]] + _LIST_MARK.sub("", new) + text[span[1] :]
        else:
            text, _ = merge(text, [new])
    return text


def _marked_as(old, new):
    """Return a new statement behind the list mark of the one whose place it takes."""
    mark = _LIST_MARK.match(old)
    return (mark[0] if mark else "") + _nested(_LIST_MARK.sub("", new, count=1) if mark else new)


def append(text, statement):
    """Add a statement at the end of a section's own text, as one more entry of the list that ends it."""
    lines = list(_lines(text))
    cut = next((at for at, (line, fenced) in enumerate(lines) if not fenced and _SUBHEADING.match(line)), len(lines))
    head, rest = ("\n".join(line for line, _ in part) for part in (lines[:cut], lines[cut:]))
    head, tail = head.rstrip("\n"), f"\n\n{rest}" if rest else ""
    last = next((line for line in reversed(head.split("\n")) if line.strip()), "")
    mark = _LIST_MARK.match(last)
    bare = _nested(_LIST_MARK.sub("", statement, count=1))
    if mark and mark[3]:
        added = f"\n{mark[1]}{int(mark[3]) + 1}{mark[4]}{mark[5]}{bare}"
    elif mark:
        added = f"\n{mark[1]}{mark[2]}{mark[5]}{bare}"
    elif "\n" in bare or not head:
        added = ("\n\n" if head else "") + (bare if "\n" in bare else f"- {bare}")
    else:
        added = f"\n\n- {bare}"
    return head + added + tail
