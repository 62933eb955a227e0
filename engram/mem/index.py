"""The term index: texts as terms in a table of FTS5, which finds rows for words and nothing more.

Must not know ranking. Terms come from `engram.text`, the tokeniser of recall; each is written so that FTS5's splitter
takes it whole. A query is made of quoted terms only, so no text can be an operator (case QS-01).
"""

from __future__ import annotations

from engram import text
from engram.mem import schema

# FTS5's `ascii` splitter ends a token at any ASCII character but letters and digits: those move to private use.
_WHOLE = {code: 0xE000 + code for code in range(128) if not chr(code).isalnum()}


def tokens(words):
    """Return the tokens of a text: its terms, and the terms of its words without their accents (case QL-03)."""
    out = text.terms(words)
    if not words.isascii():
        for word in words.split():
            plain = "" if word.isascii() else text.plain(word)
            if plain and plain != text.fold(word):
                out += text.terms(plain)
    return out


def stored(words):
    """Return a text's tokens as the index stores them, divided by blanks."""
    return " ".join(tokens(words)).translate(_KEEP_BLANKS)


def written(token):
    """Return one token as the index stores it."""
    return token.translate(_WHOLE)


def quoted(token):
    """Return one token as an FTS5 query for exactly it."""
    return f'"{written(token)}"'


def facet(name, value):
    """Return an FTS5 query for rows whose `name` (project, scope, type) is `value`."""
    return f'facets : "{_facet(name, value)}"'


def add(connection, row):
    """Index an observation row (a mapping with its columns)."""
    facets = " ".join(_facet(name, row[name]) for name in ("project", "scope", "type"))
    connection.execute(
        "INSERT INTO terms (rowid, title, content, topic, facets) VALUES (?, ?, ?, ?, ?)",
        (row["id"], stored(row["title"]), stored(row["content"]), stored(row["topic_key"] or ""), facets),
    )


def remove(connection, id):
    """Take an observation out of the index; a missing one is fine."""
    connection.execute("DELETE FROM terms WHERE rowid = ?", (id,))


def put(connection, row):
    """Index an observation anew; a deleted one is only taken out."""
    remove(connection, row["id"])
    if row["deleted_at"] is None:
        add(connection, row)


def renew_when_old(connection):
    """Build the index anew if another tokeniser made it."""
    found = connection.execute("SELECT value FROM settings WHERE name = 'terms'").fetchone()
    if found is not None and found[0] == schema.TERMS_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        rebuild(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def rebuild(connection):
    """Build the whole index from the observations, inside the caller's transaction."""
    connection.execute("DELETE FROM terms")
    for row in connection.execute("SELECT * FROM observations WHERE deleted_at IS NULL").fetchall():
        add(connection, row)
    connection.execute(
        "INSERT INTO settings VALUES ('terms', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (schema.TERMS_VERSION,)
    )


def _facet(name, value):
    # hex keeps every character of a name apart, and facets apart from words
    return f"x{name[0]}{(value or '').encode('utf-8', 'surrogatepass').hex()}"


_KEEP_BLANKS = {code: moved for code, moved in _WHOLE.items() if code != 32}
