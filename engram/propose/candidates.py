"""Candidate text to candidates: the `TYPE: … | TEXT: …` lines of propose.md, without any I/O.

A candidate may stand on one line with its fields joined by ` | `, or on several lines with a field
each, or begin with `rule: …`, `workflow: …`, `knowledge: …`. This module knows fields and limits; it
does not know which memories exist, what is safe, or what becomes of a candidate.
"""

from __future__ import annotations

import re
import unicodedata

from engram.errors import UsageError
from engram.safety.patterns import Pattern

MOST = 20
LARGEST = 16 * 1024

TYPES = {
    "rule": "rule",
    "rules": "rule",
    "skill": "skill",
    "skills": "skill",
    "workflow": "skill",
    "workflows": "skill",
    "knowledge": "knowledge",
}
CONFIDENCES = ("high", "medium", "low")
LEVELS = {
    "base": 0,
    "basic": 0,
    "core": 0,
    "foundation": 0,
    "foundational": 0,
    "fundamental": 0,
    "intermediate": 1,
    "mid": 1,
    "advanced": 2,
    "deep": 2,
}

# Written name: (attribute, many values). The second spellings are those of upstream-format.md d.
FIELDS = {
    "TYPE": ("type", False),
    "KIND": ("type", False),
    "TEXT": ("text", False),
    "CONTEXT": ("context", False),
    "ORIGIN": ("context", False),
    "WHY": ("context", False),
    "RATIONALE": ("context", False),
    "TRIGGERS": ("triggers", True),
    "DEPENDS_ON": ("depends_on", True),
    "DEPENDS ON": ("depends_on", True),
    "LEVEL": ("level", False),
    "UPDATE": ("update", False),
    "SUPERSEDES": ("supersedes", False),
    "NOT_DUPLICATE": ("not_duplicate", True),
    "ROLE": ("role", True),
    "ROLES": ("role", True),
    "CONFIDENCE": ("confidence", False),
    "LIGHT": ("light", False),
    "BALANCED": ("balanced", False),
    "STRICT": ("strict", False),
}
_NAMES = "|".join(re.escape(name) for name in sorted(FIELDS, key=len, reverse=True))
_MARKER = r"(?:[-*+•]|\d{1,2}[.)])[ \t]+"
_FIELD = Pattern(rf"(?:^[ \t]*(?:{_MARKER})?|[ \t]\|[ \t]+)({_NAMES})[ \t]*:[ \t]*", re.IGNORECASE)
_SHORT = Pattern(rf"^[ \t]*(?:{_MARKER})?(rule|skill|workflow|knowledge)[ \t]*:[ \t]+(?=\S)", re.IGNORECASE)


class Candidate:
    """One suggested memory: the fields of propose.md, already typed.

    `line` is where it began in the input (from 1), `lines` where each field did.
    """

    __slots__ = (
        "number",
        "line",
        "lines",
        "type",
        "text",
        "context",
        "triggers",
        "depends_on",
        "level",
        "update",
        "supersedes",
        "not_duplicate",
        "role",
        "confidence",
        "light",
        "balanced",
        "strict",
    )

    def __init__(self, number=1, line=1, **fields):
        self.number, self.line, self.lines = number, line, {}
        for name in self.__slots__[3:]:
            setattr(self, name, fields.get(name, [] if name in _MANY else None))

    def values(self):
        """Return the fields that are set, as a mapping that JSON can hold."""
        return {name: value for name in self.__slots__[3:] if (value := getattr(self, name)) not in (None, [])}

    @property
    def variants(self):
        """The wordings of a rule that were given, by name."""
        return {name: value for name in ("light", "balanced", "strict") if (value := getattr(self, name))}


_MANY = {attribute for attribute, many in FIELDS.values() if many}


def clean(text):
    """Return text as it may be stored: NFC, `\\n`, no BOM, no NUL, no half characters (store.md)."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for number, line in enumerate(text.split("\n"), 1):
        if "\0" in line:
            raise UsageError("the text has a NUL character", line=number, hint="Remove U+0000 and propose again.")
        if any("\ud800" <= character <= "\udfff" for character in line):
            raise UsageError("the text has half of a surrogate pair", line=number, hint="Send it as UTF-8.")
    return unicodedata.normalize("NFC", text)


def parse(text, *, plain=True):
    """Parse candidate text into a list of Candidate, numbered from 1.

    Text whose first line names no field is one plain statement (plain=False: no candidate at all, []).
    Raises UsageError with the line for a field that makes no sense, a candidate without TEXT, more than
    20 candidates, or one over 16 KiB. `parse` cuts nothing.
    """
    text = clean(text)
    lines = _unfenced(text.split("\n"))
    first = next((line for _, line in lines if line.strip()), None)
    if first is None:
        return []
    if not (_SHORT.match(first) or _starts(first)):
        late = next((number for number, line in lines if (match := _starts(line)) and match[1] in ("TYPE", "TEXT")), None)
        if late is not None:
            raise UsageError(
                "the text begins with a line that is no candidate",
                line=lines[0][0],
                hint=f"The first candidate is in line {late}; leave out what stands before it.",
            )
        if not plain:
            return []
        statement = "\n".join(line.rstrip() for _, line in lines).strip("\n")
        return [_typed({"text": statement.strip()}, 1, lines[0][0], len(statement.encode()))]
    blocks = _blocks(lines)
    if len(blocks) > MOST:
        raise UsageError(
            f"{len(blocks)} candidates, and a proposal takes at most {MOST}", line=blocks[MOST].line, hint="Propose the rest afterwards."
        )
    return [_typed(block.fields, number, block.line, block.size, block.lines) for number, block in enumerate(blocks, 1)]


class _Block:
    """A candidate being read: raw field values, with the line each came from."""

    def __init__(self, line):
        self.line, self.fields, self.lines, self.size, self.last = line, {}, {}, 0, None


def _starts(line):
    match = _FIELD.match(line)
    return match if match and match.start() == 0 else None


def _unfenced(lines):
    """Number the lines from 1 and drop a code fence around the whole."""
    numbered = list(enumerate(lines, 1))
    filled = [at for at, (_, line) in enumerate(numbered) if line.strip()]
    if len(filled) > 2 and lines[filled[0]].startswith("```") and lines[filled[-1]].strip() == "```":
        return numbered[filled[0] + 1 : filled[-1]]
    return numbered


def _split(line, upper):
    """Split a line at its fields: [(name, value)], or [] when it begins with none.

    With upper, only names in capitals count, so that `| level: info` in a text stays text.
    """
    found = [m for m in _FIELD.finditer(line) if m[1].isupper() or not upper]
    if not found or found[0].start() != 0:
        return []
    ends = [m.start() for m in found[1:]] + [len(line)]
    return [(m[1].upper(), line[m.end() : end].strip()) for m, end in zip(found, ends)]


def _blocks(lines):
    blocks, upper, blank = [], True, False
    for number, line in lines:
        if not line.strip():
            if blocks and blocks[-1].last:
                blocks[-1].fields[blocks[-1].last] += "\n"
            blank = True
            continue
        short = _SHORT.match(line)
        if short:
            upper = True
            rest = _split("TEXT: " + line[short.end() :], True)
            fields, fresh = [("TYPE", short[1]), *rest], True
        else:
            match = _starts(line)
            if match and (not blocks or blank or not blocks[-1].fields):
                upper = match[1].isupper()
            fields = _split(line, upper)
            fresh = bool(fields) and (not blocks or _begins(blocks[-1], fields, blank))
        if fresh:
            blocks.append(_Block(number))
        block = blocks[-1]
        block.size += len(line.encode()) + 1
        if fields:
            _fill(block, fields, number)
        else:
            block.fields[block.last] += "\n" + line.rstrip()
        blank = False
    return blocks


def _begins(block, fields, blank):
    """Tell whether a line with these fields opens a new candidate rather than going on with `block`."""
    attributes = {FIELDS[name][0] for name, _ in fields}
    if any(a in block.fields and a not in _MANY for a in attributes):
        return True
    return blank and "text" in block.fields and bool(attributes & {"type", "text"})


def _fill(block, fields, number):
    for name, value in fields:
        attribute, many = FIELDS[name]
        if attribute in block.fields:
            if not many:
                raise UsageError(f"{name} is given twice", line=number, hint="One candidate a line.")
            value = block.fields[attribute] + "," + value
        block.fields[attribute] = value
        block.lines.setdefault(attribute, number)
        block.last = attribute


def _typed(raw, number, line, size, lines=None):
    """Turn raw field values into a Candidate, or say which field is wrong and where."""
    lines = lines or {}
    if size > LARGEST:
        raise UsageError(
            f"candidate {number} has {size} bytes, and at most {LARGEST} fit",
            line=line,
            hint="Split it, or keep the long part in a file of the project and name that.",
        )
    fields = {name: value.strip() for name, value in raw.items()}
    if not fields.get("text"):
        raise UsageError(f"candidate {number} has no TEXT", line=line, hint="Write TEXT: and the memory.")
    made = Candidate(number, line)
    made.lines = lines
    for name, value in fields.items():
        if not value:
            continue
        at = lines.get(name, line)
        setattr(made, name, words(value) if name in _MANY else _READ.get(name, _as_is)(value, at))
    if made.update and made.supersedes:
        raise UsageError("UPDATE and SUPERSEDES exclude each other", line=line)
    if made.variants and made.type not in (None, "rule"):
        raise UsageError("LIGHT, BALANCED and STRICT are wordings of a rule", line=line)
    if made.variants:
        made.type = "rule"
    return made


def _as_is(value, line):
    return value


def read_type(value, line=None):
    """Return rule, skill or knowledge for a written type."""
    known = TYPES.get(value.strip().lower())
    if known is None:
        raise UsageError("the type is none of rule, skill (workflow), knowledge", line=line)
    return known


def read_level(value, line=None):
    """Return a depth, an integer from 0, for a number or one of the words of upstream-format.md b."""
    value = str(value).strip().lower()
    if value in LEVELS:
        return LEVELS[value]
    if re.fullmatch(r"[0-9]{1,3}", value):
        return int(value)
    raise UsageError("LEVEL is a number from 0, or basic, intermediate, advanced", line=line)


def _read_confidence(value, line):
    if value.lower() not in CONFIDENCES:
        raise UsageError("CONFIDENCE is high, medium or low", line=line)
    return value.lower()


_READ = {"type": read_type, "level": read_level, "confidence": _read_confidence}


def words(value):
    """Return a list of distinct entries from a list, or from text joined by commas, `[…]` allowed."""
    if isinstance(value, str):
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            value = value[1:-1]
        value = re.split(r"[,，、\n]", value)
    return list(dict.fromkeys(entry.strip() for entry in value if entry.strip()))


# Whole words for spaced scripts; Chinese is not spaced, so its signals are plain substrings.
_RULE = (
    r"(?i)(?<!\w)(?:always|never|must(?:n't)?|should(?:n't)?|avoid|prefer|don't|do not|from now on|remember to|"
    r"required to|instead of|luôn|không được|đừng|phải|nên|hãy|cấm|tránh|ưu tiên)(?!\w)"
    r"|必须|不要|应该|應該|必須|禁止|始终|始終|总是|總是|切勿|不得|不能|优先|避免|务必"
)
_IMPERATIVE = r"(?i)^\W*(?:use|run|keep|write|put|name|pin|check|make sure|ensure|call|dùng|sử dụng|viết|chạy|giữ)(?!\w)|^请|^請|^使用"
_STEPS = (
    r"(?i)(?<!\w)(?:workflow|runbook|procedure|checklist|step by step|quy trình|các bước)(?!\w)|流程|步骤|步驟",
    r"(?i)(?<!\w)first\b.*(?<!\w)(?:then|next|after that|finally)(?!\w)|(?<!\w)trước tiên.*(?:sau đó|rồi)|首先.*(?:然后|然後|接着|最后)",
    r"(?i)(?<!\w)when\b.*,? then(?!\w)|(?<!\w)khi\b.*thì(?!\w)",
)
_LIST_LINE = Pattern(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")


def infer_type(text):
    """Return rule, skill or knowledge for a text without TYPE: the same text gives the same type.

    Two or more listed lines, or two signs of a procedure, make a skill; a word of duty or an
    imperative at the start makes a rule; all else is knowledge.
    """
    listed = sum(1 for line in text.split("\n") if _LIST_LINE.match(line))
    flat = " ".join(text.split())
    signs = sum(1 for pattern in _STEPS if re.search(pattern, flat)) + (2 if listed >= 2 else 0)
    if signs >= 2:
        return "skill"
    if re.search(_RULE, flat) or re.search(_IMPERATIVE, flat):
        return "rule"
    return "knowledge"
