"""Finding observations for words: candidates from the term index, rare words first and capped, then one score.

Reads inside the caller's transaction; must not know tools. Cost grows with what matches up to a cap, not with what is stored.
Any text is a query. Rules: mem-tools.md 2.7, cases G, H and RK.
"""

from __future__ import annotations

import math
from collections import namedtuple

from engram import text
from engram.mem import index, stamps

POOL = 300  # rows that get a score
FREQUENT = 500  # where counting the rows of a word stops
TITLE, TOPIC, CONTENT = 5.0, 3.0, 1.0
WHOLE = 3.0  # for the query's own words in a row, as typed
MOST_WORDS = 32

# groups: one per word of the query, each a list of alternatives, each a tuple of tokens that must all be there
Query = namedtuple("Query", "groups folded")
Filters = namedtuple("Filters", "project scope type", defaults=(None, None, None))


def parse(words):
    """Return the Query of a text; common words count only when there are no others."""
    groups = []
    for word in words.split():
        for group in _groups(word):
            if group not in groups:
                groups.append(group)
    telling = [group for group in groups if not all(text.is_common(token) for way in group for token in way)]
    return Query((telling or groups)[:MOST_WORDS], text.fold(" ".join(words.split())))


def search(connection, query, filters, *, any_word=False, limit=10, now=0.0):
    """Return [(row, score)] for a Query, best first; ties go to the newer row, then the higher id."""
    if not query.groups:
        return _by_text(connection, query.folded, filters, limit)
    rows = _candidates(connection, query, filters, any_word)
    scored = [(row, _score(row, terms, query, weights, now)) for weights in (_weights(connection, query, filters),) for row, terms in rows]
    scored = [pair for pair in scored if pair[1] > 0]
    scored.sort(key=lambda pair: (-round(pair[1], 6), _descending(pair[0]["updated_at"]), -pair[0]["id"]))
    return scored[:limit]


def newest(connection, filters, limit):
    """Return the newest live rows."""
    kept, values = where(filters)
    return connection.execute(
        f"SELECT o.* FROM observations o WHERE o.deleted_at IS NULL{kept} ORDER BY o.created_at DESC, o.id DESC LIMIT ?", (*values, limit)
    ).fetchall()


def fits(row, filters):
    """Tell whether a row passes Filters."""
    return all(value is None or row[name] == value for name, value in zip(("project", "scope", "type"), filters))


def share(query, words):
    """Return which part of a Query's words a text has, 0.0 to 1.0."""
    have = set(index.tokens(words))
    hits = sum(any(all(token in have for token in way) for way in group) for group in query.groups)
    return hits / len(query.groups) if query.groups else 0.0


def _groups(word):
    # the ways in which one word of a query may be matched; several groups when it falls into several words
    found = text.terms(word)
    if any(text.is_unspaced(term) for term in found):
        longest = min(3, max(len(term) for term in found if text.is_unspaced(term)))
        return [[(term,)] for term in dict.fromkeys(found) if not text.is_unspaced(term) or len(term) == longest]
    if len(found) > 2 and _folded_join(word).startswith(found[0][:4]) and not _separate(word):
        return [[(found[0],), tuple(dict.fromkeys(found[1:]))]]  # `userId`: joined, or its parts
    bare = text.terms(text.plain(word)) if not word.isascii() else found
    bare = bare if len(bare) == len(found) else found
    return [[(term,)] if term == plain else [(term,), (plain,)] for term, plain in dict.fromkeys(zip(found, bare))]


def _folded_join(word):
    return "".join(char for char in text.fold(word) if char.isalnum())


def _separate(word):
    # characters that part words rather than join them: the term before is one word of several
    return any(char in word.strip("()[]{}<>\"'.,;:!?") for char in '/:;,=&|@\\()[]{}<>"')


def _expression(group):
    ways = [" AND ".join(index.quoted(token) for token in way) for way in group]
    return ways[0] if len(ways) == 1 else "(" + " OR ".join(f"({way})" for way in ways) + ")"


def _facets(filters):
    return [index.facet(name, value) for name, value in zip(("project", "scope", "type"), filters) if value is not None]


def _matching(connection, expressions, filters, limit):
    # the newest rows that match all expressions
    match = " AND ".join([*expressions, *_facets(filters)])
    return [row[0] for row in connection.execute("SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT ?", (match, limit))]


def _candidates(connection, query, filters, any_word):
    """Return [(row, its stored terms)] of at most POOL rows."""
    expressions = [f"{{title content topic}} : ({_expression(group)})" for group in query.groups]
    titles = [f"{{title topic}} : ({_expression(group)})" for group in query.groups]
    ids = dict.fromkeys(_matching(connection, titles, filters, POOL // 2))
    ids.update(dict.fromkeys(_matching(connection, expressions, filters, POOL)))
    if any_word and len(expressions) > 1:
        found = [_matching(connection, [expression], filters, FREQUENT) for expression in expressions]
        counts = {}
        for rows in found:
            weight = 1.0 / (1 + math.log1p(len(rows)))  # a rare word says more
            for id in rows:
                counts[id] = counts.get(id, 0.0) + weight
        ids.update(dict.fromkeys(sorted(counts, key=lambda id: (-counts[id], -id))))
    chosen = list(ids)[:POOL]
    if not chosen:
        return []
    holes = ",".join("?" * len(chosen))
    rows = {
        row["id"]: row for row in connection.execute(f"SELECT * FROM observations WHERE id IN ({holes}) AND deleted_at IS NULL", chosen)
    }
    stored = {
        row[0]: row[1:] for row in connection.execute(f"SELECT rowid, title, content, topic FROM terms WHERE rowid IN ({holes})", chosen)
    }
    return [(rows[id], stored[id]) for id in chosen if id in rows and id in stored]


def _weights(connection, query, filters):
    # how much each word of the query says: less the more rows have it
    total = max(2, connection.execute("SELECT max(rowid) FROM terms").fetchone()[0] or 2)
    out = []
    for group in query.groups:
        count = len(_matching(connection, [f"{{title content topic}} : ({_expression(group)})"], filters, FREQUENT))
        out.append(math.log(1 + total / (count + 0.5)) if count < FREQUENT else math.log(1 + total / FREQUENT) / 2)
    return out


def _score(row, terms, query, weights, now):
    title, content, topic = (f" {part} " for part in terms)
    length = 0.6 + 0.4 * content.count(" ") / 60
    score = 0.0
    for group, weight in zip(query.groups, weights):
        best = 0.0
        for number, way in enumerate(group):
            counts = [(title.count(token), content.count(token), topic.count(token)) for token in map(_framed, way)]
            if all(any(found) for found in counts):
                ranks = [(TITLE * a + TOPIC * c + CONTENT * b / length) for a, b, c in counts]
                rank = sum(ranks) / len(ranks)
                best = max(best, rank / (rank + 1.5) * (1.0 if number == 0 else 0.9))
        score += weight * best
    if score and len(query.folded) > 1:
        folded = text.fold(f"{row['title']}\n{row['content']}" if len(row["content"]) < 2_000 else row["title"])
        if query.folded in " ".join(folded.split()):
            score += WHOLE
    seen = row["revision_count"] + row["duplicate_count"]
    days = max(0.0, (now - (stamps.read(row["updated_at"]) or now)) / 86_400)
    return score * (1 + 0.10 * row["pinned"] + 0.06 / (1 + days / 30) + 0.04 * seen / (seen + 4))


def _framed(token):
    return f" {index.written(token)} "


def _by_text(connection, words, filters, limit):
    # a query without a single word (`%`, `→`): the rows that hold it as typed
    if not words.strip():
        return []
    kept, values = where(filters)
    rows = connection.execute(
        "SELECT o.* FROM observations o WHERE o.deleted_at IS NULL"
        + kept
        + " AND (instr(lower(o.title), ?) OR instr(lower(o.content), ?)) ORDER BY o.created_at DESC, o.id DESC LIMIT ?",
        (*values, words, words, limit),
    ).fetchall()
    return [(row, 1.0) for row in rows]


def where(filters):
    """Return (SQL, values) that keep a query's observations `o` to Filters."""
    pairs = [(name, value) for name, value in zip(("project", "scope", "type"), filters) if value is not None]
    return "".join(f" AND o.{name} = ?" for name, _ in pairs), [value for _, value in pairs]


def _descending(stamp):
    # stamps sort as texts; inverted digit by digit they sort the other way round
    return "".join(chr(255 - ord(char)) if ord(char) < 255 else char for char in stamp)
