"""Find what must not be kept and write a mark in its place: the tables applied to a text.

Knows spans of texts. Every table sees the text twice: as a model reads it (normalised, without invisible characters),
and once more without Markdown decoration; findings are mapped back to the original. Knows no memories and no files.
"""

from __future__ import annotations

import bisect
import re

from engram.safety import assigned, issuers, marks, personal, values
from engram.safety.patterns import Pattern

_DECORATION = str.maketrans("", "", "*`~\\")
_PEM_BEGIN = Pattern(r"-----BEGIN (?:[A-Z0-9 ]{0,40} )?PRIVATE KEY(?: BLOCK)?-----|-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?:"
                        r" BLOCK)?-----|"
                        r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----")
_PEM_END = Pattern(r"-----END [A-Z0-9 ]{0,60}-----|---- END [A-Z0-9 ]{0,60}----")
_PEM_LINE = Pattern(
    r"(?:\s|\\n|\\r|[>|]){0,40}(?:[A-Za-z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Comment|Version|Hash): [^\n]{0,200}"
    r"|[A-Za-z0-9+/]{2,15}={1,2}(?!\S)|[A-Za-z+/]{0,14}[0-9][A-Za-z0-9+/]{0,14}(?=[ \t]{0,8}(?:\n|\Z)))"
)
_AWS_SECRET = Pattern(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")

_LITERALS = tuple((literal, row) for row in issuers.ROWS for literal in row[2])
_MARKED = "~"  # the one decoration mark that stands in literals of the table
_LEAST = 15  # the shortest token of the table

_patterns = {}


def find(text):
    """Return the spans to mask, in order and without overlap: ``(start, end, kind, label, personal)`` in the text's own indices."""
    seen = marks.seen(text)
    plain = seen.translate(_DECORATION)
    lowered = plain.lower()
    worth = _worth(" ".join([chunk for chunk in plain.split() if len(chunk) >= _LEAST]), seen)
    asked = [function for function, literals in assigned.ROWS for literal in literals if literal in lowered]
    spans = []
    _look(text, seen, None, worth, asked, spans)
    if plain != seen:
        _look(text, plain, _DECORATION, worth, asked, spans)
    return _merged(spans) if spans else spans


def _worth(chunks, seen):
    """Return the issuers' rows to search for: their tokens have no blanks, so short words need no look."""
    if _MARKED in seen:
        return [row for literal, row in _LITERALS if literal in seen or literal in chunks]
    return [row for literal, row in _LITERALS if literal in chunks] if chunks else []


def _look(text, view, removed, worth, asked, spans):
    found = [(*span, False) for span in _secrets(view, worth, asked)]
    found += [(*span, True) for function, needs in personal.ROWS if needs(view) for span in function(view)]
    if not found or view == text:
        spans += found
        return
    shown, places = marks.seen_with_places(text)
    if removed:
        places = [place for character, place in zip(shown, places, strict=True) if ord(character) not in removed]
    spans += [(places[start], places[end - 1] + 1, *rest) for start, end, *rest in found]


def _secrets(view, worth, asked):
    if "PRIVATE KEY" in view:
        yield from _pem(view)
    for row in dict.fromkeys(worth):
        for literal in row[2]:
            yield from _issued(view, row, literal)
    for function in dict.fromkeys(asked):
        yield from function(view)


def _issued(view, row, literal):
    kind, label, _, source, *options = row
    pattern = _patterns.get(kind)
    if pattern is None:
        pattern = _patterns[kind] = re.compile(source)
    check = options[0] if options else None
    back = options[1] if len(options) > 1 else 0
    position = view.find(literal)
    while position >= 0:
        start = position - back
        after = position + len(literal)
        if start >= 0 and (check == "inside" or not _in_word(view, start, kind)):
            match = pattern.match(view, start)
            if match and not _holds(check, match, literal):
                after = max(after, match.end())  # going on inside it would cost its length once more for every start in it
            elif match:
                begin = _telegram_start(view, start) if check == "telegram" else start
                if begin is not None:
                    yield begin, match.end(), kind, label
                    after = match.end()
                    if kind == "aws-access-key":
                        yield from _aws_secret(view, begin, after)
        position = view.find(literal, after)


def _in_word(view, start, kind):
    before = view[start - 1:start]
    if kind in ("jwt", "jwe"):
        return before.isalnum() or before in ("-", "_")  # one start a run, or a run of starts costs its square
    return kind != "telegram-token" and before.isalnum() and before.isascii() and not view.startswith("\\n", start - 2)


def _holds(check, match, literal):
    if check not in ("mixed", "mixed-case"):
        return True
    tail = match.group()[len(literal):] if literal.endswith(("_", "-", ".")) else match.group()
    if not any(c.isdigit() for c in tail) or not any(c.isalpha() for c in tail) or values.is_name(tail):
        return False
    return check == "mixed" or any(c.isupper() for c in tail) and any(c.islower() for c in tail[2:])


def _telegram_start(view, colon):
    start = colon
    while start > 0 and colon - start < 11 and view[start - 1].isdigit():
        start -= 1
    return start if 8 <= colon - start <= 10 else None


def _aws_secret(view, start, end):
    """Yield the secret halves that stand near an AWS key id: 40 characters of base64, told from a hexadecimal digest."""
    for match in _AWS_SECRET.finditer(view, max(0, start - 200), end + 300):
        value = match.group()
        if value.lower() != value and any(c.isdigit() for c in value) and not values.is_name(value):
            yield *match.span(), "aws-secret-key", "AWS secret key"


def _pem(view):
    """Yield whole private-key blocks; one left open ends where its lines stop looking like a key."""
    position = 0
    while begin := _PEM_BEGIN.search(view, position):
        other = view.find("-BEGIN ", begin.end())
        end = _PEM_END.search(view, begin.end(), other if other >= 0 else len(view))
        position = end.end() if end else begin.end()
        while not end and (line := _PEM_LINE.match(view, position)):
            position = line.end()
        yield begin.start(), position, "private-key", "private key"


def _merged(spans):
    """Join overlapping spans; the first kind of the table order names the whole, personal data yields to secrets."""
    secrets = _joined(sorted((span for span in spans if not span[4]), key=_by_place))
    starts = [span[0] for span in secrets]
    ours = []
    for span in _joined(sorted((span for span in spans if span[4]), key=_by_place)):
        near = bisect.bisect_left(starts, span[1])
        if not near or secrets[near - 1][1] <= span[0]:
            ours.append(span)
    return sorted(secrets + ours)


def _by_place(span):
    return span[0], -span[1]


def _joined(spans):
    out = []
    for span in spans:
        last = out[-1] if out else None
        if last and span[0] < last[1]:
            out[-1] = (last[0], max(last[1], span[1]), *last[2:])
        else:
            out.append(span)
    return out


def mask(text, spans):
    """Return the text with each span replaced by ``[redacted-KIND]``."""
    out, kept = [], 0
    for start, end, kind, *_ in spans:
        out += (text[kept:start], f"[redacted-{kind}]")
        kept = end
    out.append(text[kept:])
    return "".join(out)
