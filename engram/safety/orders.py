"""Find lines that give the reader orders: ignore your instructions, be somebody else, chat-role tags, hidden markup.

A text is looked at as a model would: normalised, look-alike letters folded, Markdown decoration and tags taken off,
soft-wrapped lines joined, spaced-out letters pulled together. Knows texts and the rows of ``order_rows``, not memories.
"""

from __future__ import annotations

import bisect
import re

from engram.safety import marks, order_rows
from engram.safety.patterns import Pattern

# Cyrillic, Greek and small-capital letters beside the Latin letter that they look like.
_PAIRS = (
    "\u0430a \u0435e \u043eo \u0440p \u0441c \u0443y \u0445x \u0456i \u0458j \u0455s \u0501d \u051bq \u051dw \u04bbh \u0261g \u0251a"
    " \u03bfo \u03b1a "
    "\u03b5e \u03b9i \u03bak \u03bdv \u03c1p \u03c4t \u03c5u \u0131i \u0442t \u043cm \u043dn \u043ak \u0432b \u0410A \u0412B \u0415E"
    " \u041aK \u041cM "
    "\u041dH \u041eO \u0420P \u0421C \u0422T \u0425X \u0406I \u0408J \u0405S \u0391A \u0392B \u0395E \u0396Z \u0397H \u0399I \u039aK"
    " \u039cM \u039dN "
    "\u039fO \u03a1P \u03a4T \u03a5Y \u03a7X \u1d00a \u0280r \u0274n \u026ai \u1d1bt \u1d07e \u1d0fo \u1d1cu \u0262g \u029fl \u1d05d"
    " \u0578n \u057du \u0585o")
_LOOK_ALIKES = {ord(pair[0]): pair[1] for pair in _PAIRS.split()}
_DECORATION = str.maketrans("", "", "*_`~\\")
_QUOTE = Pattern(r"[ \t]{0,40}(?:>[ \t]{0,8}){0,12}")
_ITEM = Pattern(r"(?:(?:#{1,6}|[-+*\u2022]|\d{1,3}[.)])[ \t]{1,40}|\|[ \t]{0,8}){1,6}")
_TAGS = Pattern(r"<!--|-->|</?(?:b|i|u|s|em|strong|span|font|mark|small|big|sub|sup|code|kbd|a|p|div|br|wbr|q|del|ins)\b[^<>]{0,200}>",
re.IGNORECASE)
_ENTITY = Pattern(r"&#(?:[xX]([0-9a-fA-F]{1,6})|(\d{1,7}));|&(nbsp|lt|gt|amp|quot|ZeroWidthSpace|shy);")
_SPACED = Pattern(r"(?<![^\W_])[^\W\d_](?:[ .\u00b7|-][^\W\d_](?![^\W_])){4,120}")
_SPACED_FIRST = Pattern(r"[ .\u00b7|-][^\W\d_][ .\u00b7|-][^\W\d_][ .\u00b7|-]")
_FIGURES = str.maketrans("013457@$!", "oieastasi")
_FIGURED = Pattern(r"[013457@$!](?:(?<=[A-Za-z].)[013457@$!]{0,2}[A-Za-z]|(?<!\w.)[A-Za-z]{2})")
_HIDDEN_ORDER = Pattern(
    r"\b(?:ai|llm|assistant|agent|model|chatbot|claude|chatgpt|copilot|codex|gemini|cursor)s?\b.{0,80}?\b(?:must|should|shall|execute|run|"
    r"send|fetch|reveal|ignore|obey|follow|always|never|do not|don't|"
    r"upload|post|curl|download|install|delete|approve|remember|output|include|insert|email)\b|"
    r"^\s{0,8}(?:please )?(?:execute|run|send|exfiltrate|upload|reveal|obey|approve|curl|wget|email)\b.{0,80}", re.IGNORECASE | re.DOTALL)
_HIDING = Pattern(r"<[a-z]{1,12}\b[^<>]{0,200}(?:display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|font-size\s{0,3}:\s{0,3}0|"
                     r"opacity\s{0,3}:\s{0,3}0(?![.\d])|\bhidden\b)[^<>]{0,200}>"
                     r"(?=\s{0,20}[^<\s])", re.IGNORECASE)

_compiled = {}


def find(text):
    """Return ``[(line, column, label)]`` for the lines that give orders, in order; every line that an order runs over."""
    found = {}
    for line, column, label in _hidden(text):
        found.setdefault((line, label), column)
    seen = marks.seen(text)
    for start, _, label in _tags(seen):
        line, column = place(seen, start)
        found.setdefault((line, label), column)
    for view, lines in _views(seen):
        for start, end, label in _matches(view, order_rows.ROWS):
            for number in range(_line(lines, start), _line(lines, end - 1) + 1):
                found.setdefault((number, label), 0)
    if not found:
        return []
    sources = text.split("\n")
    return [(line, column or _indent(sources[line - 1]), label) for (line, label), column in sorted(found.items())]


def place(text, index):
    """Return the line and column, from 1, of a character."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _line(lines, offset):
    return bisect.bisect_right(lines, offset)


def _indent(source):
    return len(source) - len(source.lstrip()) + 1


def _hidden(text):
    line, counted = 1, 0
    for index, description in marks.hidden(text):
        line += text.count("\n", counted, index)
        counted = index
        yield line, index - text.rfind("\n", 0, index), description


def _tags(seen):
    yield from _matches(seen, order_rows.TAG_ROWS)
    if "<" not in seen:
        return
    for start, end in _comments(seen):
        if _HIDDEN_ORDER.search(seen[start + 4:min(end, start + 4000)]):
            yield start, end, "orders in hidden markup"
    for match in _HIDING.finditer(seen):
        yield *match.span(), "orders in hidden markup"


def _comments(text):
    """Yield the spans of HTML comments; one left open runs to the end."""
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start + 4)
        end = end + 3 if end >= 0 else len(text)
        yield start, end
        start = text.find("<!--", end)


def _matches(view, rows):
    lowered = view.lower()
    for label, _, source, check in dict.fromkeys(row for row in rows for word in row[1] if word in lowered):
        pattern = _compiled.get(source)
        if pattern is None:
            pattern = _compiled[source] = re.compile(source, re.IGNORECASE)
        for match in pattern.finditer(view):
            if check is None or check(match):
                yield *match.span(), label


def _views(seen):
    """Yield ``(view, line starts)``: the text with each disguise taken off, as far as it wears it."""
    plain, lines = _joined(seen)
    yield plain, lines
    folded = plain if plain.isascii() else plain.translate(_LOOK_ALIKES)
    if folded != plain:
        yield folded, lines
    if _FIGURED.search(folded):
        yield folded.translate(_FIGURES), lines
    if _SPACED_FIRST.search(folded) and _SPACED.search(folded):
        yield _together(folded, lines)
    if "<!--" in seen:
        kept, out = 0, []
        for start, end in _comments(seen):
            out += (seen[kept:start], "\n" * seen.count("\n", start, end))
            kept = end
        yield _joined("".join(out) + seen[kept:])


def _joined(seen):
    """Return the text without decoration, soft-wrapped lines joined by blanks, and the offset where each line begins.

    A blank line, a list item, a table row and a heading begin anew: sentences do not run over them.
    """
    if "&" in seen:
        seen = _ENTITY.sub(_entity, seen)
    if "<" in seen:
        seen = _TAGS.sub(lambda tag: "\n" * tag.group().count("\n"), seen)
    out, lines, size = [], [], 0
    for source in seen.split("\n"):
        begin = _QUOTE.match(source).end()
        item = _ITEM.match(source, begin)
        line = " ".join(source[item.end() if item else begin:].translate(_DECORATION).split())
        if out:
            out.append("\n" if item or not line else " ")
            size += 1
        lines.append(size)
        out.append(line)
        size += len(line)
    return "".join(out), lines


def _entity(match):
    hexadecimal, decimal, name = match.groups()
    if name:
        return {"nbsp": " ", "lt": "<", "gt": ">", "amp": "&", "quot": '"'}.get(name, "")
    code = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return chr(code) if 32 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def _together(view, lines):
    """Return the view with spaced-out letters pulled together, and its line starts."""
    out, kept, ends, gains = [], 0, [], [0]
    for match in _SPACED.finditer(view):
        short = "".join(match.group()[::2])
        out += (view[kept:match.start()], short)
        kept = match.end()
        ends.append(kept)
        gains.append(gains[-1] + len(match.group()) - len(short))
    out.append(view[kept:])
    return "".join(out), [offset - gains[bisect.bisect_right(ends, offset)] for offset in lines]
