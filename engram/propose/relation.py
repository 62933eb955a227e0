"""How one statement stands to another: the same, an extension, the opposite, another choice, or none of these.

Pure and deterministic: values in, a value out. Knows statements, not memories; `verdict.py` makes the verdict.
"""

from __future__ import annotations

from collections import namedtuple

from engram.propose import grammar
from engram.propose.statement import CHOICE, OBJECT, SCOPE, SUBJECT, alike, is_measure, plain, role
from engram.text.stems import stem

SAME, EXTENDS, CONTRADICTS, CLOSE, OTHER = "same", "extends", "contradicts", "close", "other"
# From this likeness on, two statements that nothing tells apart are shown as possible duplicates.
ALIKE = 0.72
SUBJECT_ALIKE = 0.5
ALIKE_LONG = 0.85
WORTH_ALIGNING = 0.25
SHORTENED = 40  # characters from which on a text that ends in … may be a card

# kind: one of the five above; score 0.0 to 1.0; why: a sentence with the words that made it
Relation = namedtuple("Relation", "kind score why")
_TIMES = {*grammar.TIMES, *map(stem, grammar.TIMES)}
_ENVIRONMENTS = {*grammar.ENVIRONMENTS, *map(stem, grammar.ENVIRONMENTS)}
_family = {}
_Span = namedtuple("_Span", "old new old_at new_at")
NONE = Relation(OTHER, 0.0, "")


# The closer the relation, the less the number.
RANK = {SAME: 0, CONTRADICTS: 1, EXTENDS: 2, CLOSE: 3}
MOST_ALIGNED = 4  # of many statements, those that share most with a new one are compared in full


def closest(new, olds, *, in_full=True):
    """Return (Relation, number) of the statement of a list that a new one is closest to; without in_full, word for word."""
    same = next((at for at, old in enumerate(olds) if old.plain == new.plain), None)
    if same is not None or not in_full or not olds:
        return (relate(new, olds[same]), same) if same is not None else (NONE, 0)
    about = new.content.union(new.rejected)
    near = sorted(range(len(olds)), key=lambda at: (-len(about & olds[at].content), at))[:MOST_ALIGNED]
    return max(((relate(new, olds[at]), at) for at in near), key=strength)


def strength(row):
    """Return the order of a (Relation, number): kind, then likeness, then the earlier."""
    relation, at = row
    return (-RANK.get(relation.kind, 9), relation.score, -at)


def relate(new, old):
    """Return the Relation of a new Statement to an old one."""
    if new.plain == old.plain:
        return Relation(SAME, 1.0, "the same words")
    if new.plain.endswith("…") and len(new.plain) > SHORTENED and old.plain.startswith(new.plain[:-1].rstrip()):
        return Relation(SAME, 1.0, "the beginning of it, cut as a card shows it")
    if new.long or old.long:
        return _long(new, old)
    if not new.keys or not old.keys:
        return NONE
    shared = new.content & old.content
    if not shared and not (set(new.rejected) & set(old.keys)):
        return NONE
    if len(shared) < WORTH_ALIGNING * min(len(new.content), len(old.content)) and not new.rejected and not new.ended:
        return NONE  # most memories end here, before anything is measured
    score = alike(new, old)
    return _instead(new, old, score) or _aligned(new, old, score)


def _long(new, old):
    """Compare the words of statements too long to be read: alike or not."""
    shared = len(new.content & old.content)
    score = 2 * shared / (len(new.content) + len(old.content)) if shared else 0.0
    return Relation(CLOSE, score, "long texts of nearly the same words") if score >= ALIKE_LONG else NONE._replace(score=score)


def _instead(new, old, score):
    """A new statement that names the old choice as put aside or ended ("instead of", "no longer")."""
    put_aside = set(new.rejected)
    left = {key for key in old.content if key not in put_aside and key != "use"}
    if put_aside and not old.rejected and not old.negative and put_aside <= set(old.keys):
        mine = set(new.keys) - {"use"}
        covered = len(left & mine) / len(left) if left else 1.0
        general = len(new.content - {"use"}) <= 1
        if covered >= 0.5 or general:
            return Relation(CONTRADICTS, max(score, 0.6), f"puts aside {_quoted(new.rejected)}")
        return Relation(CLOSE, max(score, SUBJECT_ALIKE), f"puts aside {_quoted(new.rejected)}, elsewhere")
    if put_aside & old.content and set(old.rejected) & new.content:
        return Relation(CONTRADICTS, max(score, 0.8), f"the other way round: {_quoted(new.rejected)} is put aside now")
    if new.ended and not old.negative:
        mine = {key for key in new.content if key != "use"}
        if mine and mine <= old.content | set(old.keys):
            return Relation(CONTRADICTS, max(score, 0.6), f"says that it no longer holds: {_quoted(_in_order(new, mine))}")
    return None


def _aligned(new, old, score):
    spans = _differences(old.keys, new.keys)
    mismatch = new.negative != old.negative
    if not spans:
        if new.rejected != old.rejected and not mismatch:
            return Relation(EXTENDS if not old.rejected else CLOSE, score, "differs in what is put aside only")
        if mismatch:
            return Relation(CONTRADICTS, max(score, 0.9), "the same words with the opposite polarity")
        if new.reason and plain(new.reason) != plain(old.reason):
            return Relation(EXTENDS, max(score, 0.9), f"says why: “{new.reason.strip(' ,')}”")
        if _verbs(new) != _verbs(old) and new.plain != old.plain:
            return Relation(SAME if not _verbs(new) or not _verbs(old) else EXTENDS, max(score, 0.9), "the same statement in other words")
        return Relation(SAME, max(score, 0.95), "the same words but for filling")
    if sorted(new.keys) == sorted(old.keys):
        return Relation(CLOSE, score, "the same words in another order")
    added = [span for span in spans if not span.old]
    missing = [span for span in spans if not span.new]
    if len(added) == len(spans):
        return _longer(new, old, added, mismatch, score)
    if len(missing) == len(spans):
        return _shorter(new, old, missing, score)
    return _exchanged(new, old, spans, mismatch, score)


def _longer(new, old, added, mismatch, score):
    """The new statement has all words of the old one and more."""
    words = [new.keys[i] for span in added for i in range(span.new_at, span.new_at + len(span.new))]
    at = new.telling[added[0].new_at]
    tail = len(added) == 1 and added[0].new_at + len(added[0].new) in (len(new.keys), len(new.keys) - new.turned)
    before = new.words[at - 1] if at else None
    opener = before if before is not None and before.kind == "prep" else new.words[at]
    measured = any(
        new.words[new.telling[i]].kind == "number" and is_measure(new.words, new.telling[i])
        for span in added
        for i in range(span.new_at, span.new_at + len(span.new))
    )
    if mismatch:
        if opener.key in grammar.EXCEPTING or opener.after_break:
            return Relation(CONTRADICTS, max(score, 0.8), f"the opposite polarity, adding {_quoted(words)}")
        return Relation(CLOSE, score, f"the opposite polarity, for {_quoted(words)} only")
    if len(old.content - {"use"}) < 2:
        return Relation(CLOSE, score, f"adds {_quoted(words)}") if score >= ALIKE else NONE._replace(score=score)
    restricts = opener.kind == "prep" and opener.key in grammar.RESTRICTING and not opener.after_break and not measured
    if tail and not restricts or measured and not _in_subject(new, at):
        return Relation(EXTENDS, max(score, 0.75), f"adds {_quoted(words)}")
    if len(words) == 1 and not tail and not restricts and _ends_with(new, added[0]) and not _in_subject(new, at):
        return Relation(EXTENDS, max(score, 0.75), f"adds {_quoted(words)}")
    return Relation(CLOSE, score, f"the same for {_quoted(words)}")


def _ends_with(new, span):
    """Tell whether one added word qualifies the last thing said: "with [exponential] backoff"."""
    after = span.new_at + len(span.new)
    at = new.telling[span.new_at]
    before = new.words[at - 1] if at else None
    return (
        after == len(new.keys) - 1
        and before is not None
        and before.kind == "prep"
        and before.key in ("with", "via", "by", "through", "với")
    )


def _in_subject(statement, at):
    return not any(word.kind in ("choice", "copula", "placing", "adding") for word in statement.words[:at]) and any(
        word.kind in ("choice", "copula", "placing", "adding") for word in statement.words[at:]
    )


def _shorter(new, old, missing, score):
    words = [key for span in missing for key in span.old]
    if len(new.content - {"use"}) < 2 and score < ALIKE:
        return NONE._replace(score=score)
    return Relation(CLOSE, score, f"the same without {_quoted(words)}")


def _exchanged(new, old, spans, mismatch, score):
    """Words stand for other words: another choice for the same slot, or something else."""
    exchanges = [span for span in spans if span.old and span.new]
    shared = (set(new.keys) & set(old.keys)) - {"use"}
    specific = {key for key in shared if key in new.content and not _is_verb(new, key)}
    close = Relation(CLOSE, score, f"the same words but for {_changes(exchanges)}")
    if exchanges and shared:
        parts = [part for span in exchanges for part in _phrases(new, old, span)]
        roles = {_role(new, old, part) for part in parts}
        if roles & {SUBJECT, SCOPE, OBJECT}:
            return Relation(OTHER, score, f"the same of something else: {_changes(exchanges)}")
        if len(parts) == 1 and roles == {CHOICE} and _settled(new, spans, parts[0]):
            if mismatch or new.negative:  # one thing denied leaves room for another
                return Relation(OTHER, score, f"another choice, denied: {_changes(exchanges)}")
            if not specific:
                return close._replace(score=max(score, SUBJECT_ALIKE)) if len(new.keys) <= 3 else Relation(OTHER, score, _shared(shared))
            alternative = _alternative(new, old, parts[0])
            if alternative is False:
                return Relation(OTHER, score, _shared(shared))
            if len(shared) / len(set(old.keys) - {"use"}) >= 0.3:
                if alternative is None:
                    return close._replace(score=max(score, SUBJECT_ALIKE))
                return Relation(CONTRADICTS, max(score, 0.7), f"another choice for the same slot: {_changes(exchanges)}")
        if specific and (len(shared) >= 2 or CHOICE in roles) and score >= SUBJECT_ALIKE:
            return close
    if score >= ALIKE and not exchanges:
        return Relation(CLOSE, score, f"nearly the same words: {_quoted(_in_order(new, shared))}")
    if _same_subject(new, old) and score >= SUBJECT_ALIKE:
        return Relation(CLOSE, score, f"the same subject: {_quoted(_in_order(new, shared))}")
    return Relation(OTHER, score, _shared(shared))


def _alternative(new, old, span):
    """Whether two choices exclude each other: True, False, or None for a person to say.

    Two of one kind do, two of known and different kinds don't. Of others: "use A for installs" and "use B for installs"
    do; where an order shares nothing else than where it holds ("in the API"), or one choice takes more words than
    the other, both may be meant.
    """
    mine, theirs = _kinds(span.new), _kinds(span.old)
    before = [word.kind for word in new.words[: new.telling[span.new_at]] if word.kind in ("choice", "copula", "placing", "prep")]
    governor = before[-1] if before else "choice"
    if mine & theirs:
        return True
    if mine and theirs and governor == "choice":
        return False
    even = len(span.old) == len(span.new) == 1
    if any(key[:1].isdigit() for key in span.new + span.old):
        return True
    if new.words[0].kind != "choice" or old.words[0].kind != "choice":
        return True if even or governor != "prep" else None
    first = next((at for at, word in enumerate(new.words) if word.kind == "prep"), None)
    slot = range(span.new_at, span.new_at + len(span.new))
    scoped = (
        first is not None
        and new.words[first].key in grammar.HOLDING
        and all(at > first for number, at in enumerate(new.telling) if number not in slot and new.words[at].kind != "choice")
    )
    return None if scoped and even or not scoped and not even else not scoped


def _kinds(keys):
    if not _family:
        for number, row in enumerate(grammar.FAMILIES):
            for word in row:
                _family.setdefault(stem(word), set()).add(number)
    return set().union(*(_family.get(key, ()) for key in keys))


def _changes(exchanges):
    return "; ".join(f"{_quoted(span.old)} → {_quoted(span.new)}" for span in exchanges)


def _settled(new, spans, slot):
    """Whether nothing but the slot differs, or only what the new statement says behind it."""
    if len(slot.old) > 4 or len(slot.new) > 4:
        return False
    others = [span for span in spans if not span.old or not span.new]
    return sum(len(span.new) for span in others) <= 8 and all(
        not span.old and (_breaks(new, span) or span.new_at > slot.new_at) for span in others
    )


def _phrases(new, old, span):
    """Split an exchange at the prepositions inside it: "functions under 40" → "files under 400" changes two things."""
    mine, theirs = _runs(new, span.new_at, len(span.new)), _runs(old, span.old_at, len(span.old))
    if len(mine) == len(theirs) and len(mine) > 1:
        return [_Span(old.keys[o : o + m], new.keys[n : n + k], o, n) for (n, k), (o, m) in zip(mine, theirs)]
    return [span] if len(mine) == len(theirs) == 1 else [span, span]


def _runs(statement, first, length):
    runs = [[first, 1]]
    for i in range(first + 1, first + length):
        if statement.telling[i] - statement.telling[i - 1] > 1:
            runs.append([i, 1])
        else:
            runs[-1][1] += 1
    return runs


def _role(new, old, span):
    """Tell what the exchanged words are for; measures and times count as choices unless they belong to the subject."""
    at, was = new.telling[span.new_at], old.telling[span.old_at]
    mine = [new.words[new.telling[i]] for i in range(span.new_at, span.new_at + len(span.new))]
    theirs = [old.words[old.telling[i]] for i in range(span.old_at, span.old_at + len(span.old))]
    if all(w.key in _ENVIRONMENTS for w in mine) and all(w.key in _ENVIRONMENTS for w in theirs):
        return SCOPE
    numbers = [(w, new.words) for w in mine if w.kind == "number"], [(w, old.words) for w in theirs if w.kind == "number"]
    if all(numbers) and any(is_measure(words, words.index(w)) for w, words in numbers[0] + numbers[1]):
        return SUBJECT if _in_subject(new, at) else CHOICE
    if all(w.key in _TIMES for w in mine) and all(w.key in _TIMES for w in theirs) and at and was:
        return CHOICE
    # a phrase of another preposition, "after" for "before": the order of things is the choice
    if all(w.key in grammar.TELLING for w in mine + theirs):
        return CHOICE
    opened, opened_before = (
        words[i - 1].key if i and words[i - 1].kind == "prep" else None for words, i in ((new.words, at), (old.words, was))
    )
    if opened != opened_before and None not in (opened, opened_before):
        return SCOPE
    places = {role(new.words, at), role(old.words, was)}
    if places == {OBJECT} and all(numbers) and all(w.kind == "number" for w in mine + theirs):
        return "unsure"  # "supports iOS 15": one more version, or another
    return places.pop() if len(places) == 1 else SUBJECT if SUBJECT in places else "unsure"


def _breaks(statement, span):
    at = statement.telling[span.new_at]
    before = statement.words[at - 1] if at else None
    return statement.words[at].after_break or before is not None and before.after_break


def _is_verb(statement, key):
    return any(word.key == key and word.kind in ("choice", "placing", "adding") for word in statement.words)


def _verbs(statement):
    return [word.shown for word in statement.words if word.kind == "choice" and word.shown not in ("use", "uses", "using", "dùng", "用")]


def _same_subject(new, old):
    """Whether both begin with the same two or more words in front of their verbs."""
    mine, theirs = _subject(new), _subject(old)
    return len(mine) >= 2 and mine == theirs


def _subject(statement):
    head = []
    for word in statement.words:
        if word.kind in ("choice", "copula", "placing", "adding"):
            break
        head.append(word.key)
    return head


def _differences(old, new):
    """Align two lists of keys by their longest common subsequence: the spans in which they differ."""
    rows, columns = len(old), len(new)
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        below, here = table[i + 1], table[i]
        for j in range(columns - 1, -1, -1):
            here[j] = below[j + 1] + 1 if old[i] == new[j] else max(below[j], here[j + 1])
    spans, i, j = [], 0, 0
    while i < rows or j < columns:
        if i < rows and j < columns and old[i] == new[j]:
            i, j = i + 1, j + 1
            continue
        start_i, start_j = i, j
        while (i < rows or j < columns) and not (i < rows and j < columns and old[i] == new[j]):
            if j < columns and (i == rows or table[i][j + 1] >= table[i + 1][j]):
                j += 1
            else:
                i += 1
        spans.append(_Span(old[start_i:i], new[start_j:j], start_i, start_j))
    return spans


def _in_order(statement, keys):
    return [word.shown for word in statement.words if word.key in keys]


def _quoted(keys):
    return ", ".join(f"“{key}”" for key in dict.fromkeys(keys)) or "nothing"


def _shared(keys):
    return f"shares {_quoted(sorted(keys))}" if keys else ""
