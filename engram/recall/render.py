"""How memories look when they are printed, and how much that is.

Pure. Memory text is data: each of its lines begins with `| `, at every character that some reader takes for a line end, so
that no memory can print a line of Engram's, of a tool's, or of another memory (recall.md, "Tiers of output"). Lines that begin
otherwise are Engram's own; what stands in them of a memory is one line without control characters.
"""
from __future__ import annotations

import re
from functools import lru_cache

from engram.safety import visible

LONGEST_CARD = 160  # characters
BAR = "| "
UNTRUSTED = "not yet trusted"


def quarters(text: str) -> int:
    """Return the size of a text in quarters of a token: a CJK character counts four, any other one."""
    if text.isascii():
        return len(text)
    return len(text) + 3 * sum(text.count(char) for char in set(text) if char > "\u10ff" and _is_wide(ord(char)))


def _is_wide(point: int) -> bool:
    """Whether a character is one that models read about one token each. A pattern of these ranges takes 6 ms to compile."""
    return (point <= 0x11FF or 0x2E80 <= point <= 0xA4CF or 0xAC00 <= point <= 0xD7AF or 0xF900 <= point <= 0xFAFF
            or 0xFE30 <= point <= 0xFE4F or 0xFF00 <= point <= 0xFFEF or 0x20000 <= point <= 0x3FFFF)


def tokens(text: str) -> int:
    """Return the estimate of what a text costs a model (recall.md: CJK characters as one each, other text at four)."""
    return -(-quarters(text) // 4)


def one_line(text: str) -> str:
    """Return a text as one line that a terminal and a model read as it stands."""
    return visible(" ".join(text.split()))


def shown_id(id: str) -> str:
    """Return an id as Engram's lines show it: nothing in it can look like the brackets and blanks around it."""
    return re.sub(r"[\s\[\]()]+", "-", one_line(id))[:96]


@lru_cache(1024)
def card(id: str, type: str, scope: str, summary: str) -> str:
    """Return `- [id] (type, scope) first sentence…`, at most 160 characters."""
    line = f"- [{shown_id(id)}] ({type}, {scope}) {one_line(summary)}".rstrip()
    return line if len(line) <= LONGEST_CARD else line[:LONGEST_CARD - 1].rstrip() + "…"


@lru_cache(128)
def body(memory, *, variant: str = "balanced", authority: str = "", trusted: bool = True, full: bool = False) -> str:
    """Return a memory as a block: Engram's header line, the compact header, the content; `full` prints the whole file."""
    label = "" if trusted else f", {UNTRUSTED}"
    head = f"[{shown_id(memory.id)}] ({memory.type}, {memory.scope}{label})"
    if full:
        return head + "\n" + barred(memory.raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    return "\n".join((head, barred(_header(memory, authority)), BAR.rstrip(), barred(_content(memory, variant))))


def barred(text: str) -> str:
    """Return a text with the bar before each of its lines."""
    return "\n".join((BAR + visible(line)).rstrip() for line in text.strip("\n").splitlines())


def unwrapped(text: str) -> str:
    """Return a text without what a load or a search puts around memories, so that it can be proposed again (case RK-05)."""
    if not _looks_printed(text):
        return text
    kept, block = [], []
    for line in text.splitlines():
        if line == BAR.rstrip() or line.startswith(BAR):
            block.append(line[len(BAR):])
            continue
        kept += _bare(block)
        block = []
        if re.match(r"- \[[^\]\s]+\] \((?:rule|skill|knowledge), (?:workspace|global)[^)]*\) ", line):
            kept.append(re.sub(r"\A\d+\.\d+ ", "", line.split(") ", 1)[1]))
        elif not re.match(r"\[[^\]\s]+\] \(|Engram (?:loaded|found): |(?:workspace|global):[a-z]+/\S+\.md\b", line):
            kept.append(line)
    return "\n".join([*kept, *_bare(block)]).strip("\n")


def _bare(block: list[str]) -> list[str]:
    """Return the lines of one printed memory without its header and title."""
    text = "\n".join(block)
    text = re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)
    text = re.sub(r"\Aid: \S+; type: [^\n]*\n+", "", text)
    text = re.sub(r"\A# [^\n]*\n+", "", text)
    return text.split("\n") if block else []


def _looks_printed(text: str) -> bool:
    return re.search(r"(?m)^(?:\| |Engram (?:loaded|found): |- \[[^\]\s]+\] \((?:rule|skill|knowledge), )", text) is not None


def _header(memory, authority: str) -> str:
    parts = [f"id: {one_line(memory.id)}", f"type: {memory.type}"]
    for name, values in (("tags", memory.tags), ("confidence", [memory.confidence]), ("authority", [authority or memory.authority]),
                         ("depends_on", memory.depends_on), ("evidence_refs", memory.evidence_refs)):
        if values:
            parts.append(f"{name}: {one_line(', '.join(values))}")
    return "; ".join(parts)


def _content(memory, variant: str) -> str:
    """Return title and content; a rule with wordings shows the active one alone."""
    content = memory.rule_text(variant) if memory.type == "rule" and memory.variants else memory.content
    parts = [f"# {memory.title}", content.strip("\n")]
    for name, text in memory.sections.items():
        if "/" not in name and name not in ("Content", "Rule Variants") and "Content" in memory.sections:
            parts += [f"## {name}", text.strip("\n")]
    return "\n\n".join(part for part in parts if part)
