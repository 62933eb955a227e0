"""Finding observations for words: candidates from the term index, rare words first and capped, then one score.

Reads inside the caller's transaction; must not know tools. Cost grows with what matches up to a cap, not with what is stored.
Any text is a query. Rules: mem-tools.md 2.7, cases G, H and RK.
"""

from __future__ import annotations

import math
from collections import namedtuple

from engram import text
from engram.mem import index

POOL = 120  # rows that get a score
SAMPLE = 64  # newest rows of a word that tell how frequent it is
TITLE, TOPIC, CONTENT = 5.0, 3.0, 1.0
WHOLE = 3.0  # for the query's own words in a row, as typed
MOST_WORDS = 32
RECENT = 20_000  # newest rows among which a save looks for two words together
LOOKED_UP = 5  # words of a new title by which rows like it are looked for
PAIRS = 3  # of so many of the rarest words every pair is looked up by itself

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
    facets = _facets(connection, filters)
    weights, newest = _frequencies(connection, query, facets)
    ids = {} if len(query.groups) > 1 and not all(newest) else _with_all(connection, query, facets, newest)
    if any_word and len(query.groups) > 1:
        ids.update(dict.fromkeys(_with_some(connection, query, facets, newest)))
    scored = _scored(connection, list(ids)[:POOL], query, weights, now)
    return _with_rows(connection, scored[:limit])


def alike(connection, query, filters, *, limit, now):
    """Return [(row, score)] of rows that share words with a Query, fewer looked at than by `search`: for every save."""
    if not query.groups:
        return []
    # long words tend to be rare ones, and each costs a look into the index
    query = query._replace(groups=sorted(query.groups, key=lambda group: -len(group[0][0]))[:LOOKED_UP])
    facets = _facets(connection, filters)
    weights, newest = _frequencies(connection, query, facets, SAMPLE // 3)
    ids = _with_some(connection, query, facets, newest, pairs=2, after=_top(connection) - RECENT)
    return _with_rows(connection, _scored(connection, ids[: POOL // 5], query, weights, now, as_typed=0)[:limit])


def newest(connection, filters, limit):
    """Return the newest live rows."""
    kept, values = where(filters)
    return connection.execute(
        f"SELECT o.* FROM observations o WHERE o.deleted_at IS NULL{kept} ORDER BY o.created_at DESC, o.id DESC LIMIT ?", (*values, limit)
    ).fetchall()


def fits(row, filters):
    """Tell whether a row passes Filters."""
    return all(value is None or row[name] == value for name, value in zip(Filters._fields, filters))


def share(query, words):
    """Return which part of a Query's words a text has, 0.0 to 1.0."""
    have = set(index.tokens(words))
    hits = sum(any(all(token in have for token in way) for way in group) for group in query.groups)
    return hits / len(query.groups) if query.groups else 0.0


def where(filters):
    """Return (SQL, values) that keep a query's observations `o` to Filters."""
    pairs = [(name, value) for name, value in zip(Filters._fields, filters) if value is not None]
    return "".join(f" AND o.{name} = ?" for name, _ in pairs), [value for _, value in pairs]


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


def _expression(group, columns):
    ways = [" AND ".join(index.quoted(token) for token in way) for way in group]
    return f"{{{columns}}} : ({' OR '.join(f'({way})' for way in ways)})"


def _facets(connection, filters):
    made = [index.facet(name, value) for name, value in zip(Filters._fields, filters) if value is not None]
    if filters.project is not None and not _others(connection, filters.project):
        made = made[1:]  # the only project there is needs no looking up
    return made


def _others(connection, project):
    return any(connection.execute(f"SELECT 1 FROM observations WHERE project {sign} ? LIMIT 1", (project,)).fetchone() for sign in "<>")


def _matching(connection, expressions, facets, limit, after=0):
    # the newest rows beyond `after` that match all expressions
    match = " AND ".join([*expressions, *facets])
    query = "SELECT rowid FROM terms WHERE terms MATCH ? AND rowid > ? ORDER BY rowid DESC LIMIT ?"
    return [row[0] for row in connection.execute(query, (match, after, limit))]


def _top(connection):
    return connection.execute("SELECT max(rowid) FROM terms").fetchone()[0] or 1


def _frequencies(connection, query, facets, sample=SAMPLE):
    """Return (weights, newest): how much each word says, and the newest rows that have it.

    A word is as frequent as its newest rows lie close together: counting all of them would cost what is stored.
    """
    top = _top(connection)
    weights, newest = [], []
    for group in query.groups:
        rows = _matching(connection, [_expression(group, "title content topic")], facets, sample)
        count = len(rows) if len(rows) < sample else max(sample, sample * top / (top - rows[-1] + 1))
        weights.append(math.log(1 + top / (count + 0.5)))
        newest.append(rows)
    return weights, newest


def _with_all(connection, query, facets, newest):
    """Return ids of rows that have all words, as keys: those with them in the title first, then the newest."""
    titles = [_expression(group, "title topic") for group in query.groups]
    every = [_expression(group, "title content topic") for group in query.groups]
    ids = dict.fromkeys(_matching(connection, titles, facets, POOL // 2))
    complete = len(newest) == 1 and len(newest[0]) < SAMPLE
    ids.update(dict.fromkeys(newest[0] if complete else _matching(connection, every, facets, POOL)))
    return ids


def _with_some(connection, query, facets, newest, pairs=PAIRS, after=0):
    """Return ids of rows that have some of the words: two of the rarest, or a rare one."""
    most = max(map(len, newest), default=0)
    found = sorted((rows[-1] if len(rows) == most else 0, number) for number, rows in enumerate(newest) if rows)
    rare = [_expression(query.groups[number], "title content topic") for _, number in found[:pairs]]
    ids = {}
    if len(newest) > 1:
        for at, one in enumerate(rare):
            for other in rare[at + 1 :]:
                ids.update(dict.fromkeys(_matching(connection, [one, other], facets, SAMPLE // 2, after)))
    counts = {}
    for rows in newest:
        for id in rows:
            counts[id] = counts.get(id, 0.0) + 1.0 / (1 + len(rows))  # a rare word says more
    ids.update(dict.fromkeys(sorted(counts, key=lambda id: (-counts[id], -id))))
    return list(ids)


def _scored(connection, ids, query, weights, now, as_typed=SAMPLE):
    """Return [(id, score)], best first."""
    holes = ",".join("?" * len(ids))
    rows = connection.execute(
        "SELECT t.rowid AS id, t.title, t.content, t.topic, o.updated_at, o.pinned, o.revision_count + o.duplicate_count AS seen "
        f"FROM terms t JOIN observations o ON o.id = t.rowid WHERE t.rowid IN ({holes})",
        ids,
    ).fetchall()
    groups = [([[f" {index.written(token)} " for token in way] for way in group], weight) for group, weight in zip(query.groups, weights)]
    today = _day(now)
    found = []
    for row in rows:
        score = _score(f" {row['title']} ", f" {row['content']} ", f" {row['topic']} ", groups)
        if score:
            month = max(0, today - _days(row["updated_at"])) / 30
            found.append(
                [
                    row["id"],
                    score,
                    1 + 0.10 * row["pinned"] + 0.06 / (1 + month) + 0.04 * row["seen"] / (row["seen"] + 4),
                    row["updated_at"],
                ]
            )
    found.sort(key=lambda row: (row[3], row[0]), reverse=True)
    found.sort(key=lambda row: -row[1] * row[2])
    # the words as typed are looked for where they can still change the order
    for row, (title, content) in zip(found[:as_typed], _texts(connection, [row[0] for row in found[:as_typed]])):
        if len(query.folded) > 1 and query.folded in " ".join(text.fold(f"{title}\n{content[:4_000]}").split()):
            row[1] += WHOLE
    return sorted(((row[0], round(row[1] * row[2], 6)) for row in found), key=lambda pair: -pair[1])


def _score(title, content, topic, groups):
    length = 0.6 + content.count(" ") / 150
    total = 0.0
    for ways, weight in groups:
        best = 0.0
        for number, way in enumerate(ways):
            rank = 0.0
            for token in way:
                one = TITLE * title.count(token) + TOPIC * topic.count(token) + CONTENT * content.count(token) / length
                if not one:
                    break
                rank += one / len(way)
            else:
                best = max(best, rank / (rank + 1.5) * (0.9 if number else 1.0))
        total += weight * best
    return total


def _texts(connection, ids):
    found = {
        row[0]: row[1:]
        for row in connection.execute(f"SELECT id, title, content FROM observations WHERE id IN ({','.join('?' * len(ids))})", ids)
    }
    return [found[id] for id in ids]


def _with_rows(connection, scored):
    holes = ",".join("?" * len(scored))
    rows = {row["id"]: row for row in connection.execute(f"SELECT * FROM observations WHERE id IN ({holes})", [id for id, _ in scored])}
    return [(rows[id], score) for id, score in scored]


def _day(seconds):
    return seconds // 86_400 * 372 / 365.2425 + 1970 * 372 + 32  # days as `_days` counts them: every month has 31


def _days(stamp):
    return int(stamp[:4]) * 372 + int(stamp[5:7]) * 31 + int(stamp[8:10])


def _by_text(connection, words, filters, limit):
    # a query without a single word (`%`, `→`): the rows that hold it as typed
    if not words.strip():
        return []
    kept, values = where(filters)
    rows = connection.execute(
        f"SELECT o.* FROM observations o WHERE o.deleted_at IS NULL{kept} AND (instr(lower(o.title), ?) OR instr(lower(o.content), ?)) "
        "ORDER BY o.created_at DESC, o.id DESC LIMIT ?",
        (*values, words, words, limit),
    ).fetchall()
    return [(row, 1.0) for row in rows]
