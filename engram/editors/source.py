"""The text of a host's file: what all editors share. Must not know any format, nor where the text came from."""
from __future__ import annotations

from engram.errors import Refused

BOM = "\ufeff"


class Unreadable(Refused):
    """The text is not what it should be; the file stays as it is (CASES.md, REFUSE)."""

    code = "ENG_HOST_CONFIG"


class Foreign(Refused):
    """Something of our name is there that runs something else; it is not ours to touch (case CR-02)."""

    code = "ENG_FOREIGN_ENTRY"


def decode(data):
    """Return the text of a host's config, BOM included. Raises Unreadable for what is not UTF-8 text."""
    if data and not data.strip(b"\0"):
        raise Unreadable("the file holds only zero bytes.", line=1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "It looks like UTF-16." if data[:2] in (b"\xff\xfe", b"\xfe\xff") else None
        raise Unreadable(f"the file is not UTF-8 text (byte {error.start}).", hint=hint, line=data[:error.start].count(b"\n") + 1) from None
    at = text.find("\0")
    if at >= 0:
        raise unreadable(text, at, "the file holds a zero byte")
    return text


def unreadable(text, at, reason):
    """Make the error for position `at` of `text`; `reason` is a clause without its full stop."""
    line = text.count("\n", 0, at) + 1
    return Unreadable(reason + ".", line=line, column=at - (text.rfind("\n", 0, at) + 1) + 1)


def newline_of(text):
    """Return the line end that the text uses first, `\\n` when it has none."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
