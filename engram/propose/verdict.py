"""Verdicts: what a candidate is to the memories that are there (propose.md, Verdicts).

Pure: a candidate and memories in, a Verdict out; the same for any order of the memories and any locale. Must not
know stores, files or who approves. `relation` compares single statements; here their relations make one word.
"""

from __future__ import annotations

from engram.propose.relation import CLOSE, CONTRADICTS, EXTENDS, RANK, SAME, closest, strength
from engram.propose.statement import plain, read, statements
from engram.safety.patterns import Pattern

ADD, UPDATE, SUPERSEDE, NOOP = "ADD", "UPDATE", "SUPERSEDE", "NOOP"
DUPLICATE, DEPENDENCY = "possible duplicate", "suggested DEPENDS_ON"
# The least that a close statement must share to be worth a person's look.
WORTH_A_LOOK = 0.45
MOST_HINTS = 3
MOST_RELATED = 24  # statements of a long text that are compared in full; the rest only word for word


class Verdict:
    """The verdict on one candidate.

    word     ADD, UPDATE, SUPERSEDE or NOOP
    target   the memory that it is about (None for ADD)
    hints    [(DUPLICATE or DEPENDENCY, memory id)]: what an ADD resembles
    why      sentences with the words that made it, for --explain
    declared True when the candidate itself named the target
    """

    __slots__ = ("word", "target", "hints", "why", "declared")

    def __init__(self, word, target=None, hints=(), why=(), declared=False):
        self.word, self.target, self.hints, self.why, self.declared = word, target, list(hints), list(why), declared

    @property
    def line(self):
        """The `Verdict: ` line of the preview."""
        if self.word == NOOP:
            return f"Verdict: NOOP duplicate of {self.target.id}"
        return f"Verdict: {self.word}" + (f" {self.target.id}" if self.target else "")

    def same(self, word, target, target_scope=None):
        """Whether it still says what was shown."""
        return self.word == word and (self.target.id if self.target else None) == target


def judge(text, type, memories, *, declared=None, resolved=()):
    """Return the Verdict on a candidate's text.

    memories are those of the candidate's store that may concern it; `declared` is (UPDATE or SUPERSEDE,
    memory) when the candidate said so; `resolved` are ids that it named as NOT_DUPLICATE or DEPENDS_ON.
    """
    mine = [read(part) for part in statements(text)]
    if declared:
        word, target = declared
        if word == UPDATE and target.type == type and _covered(mine, _theirs(target)):
            return Verdict(NOOP, target, why=[f"{target.id} says all of it already"], declared=True)
        return Verdict(word, target, why=[f"the candidate names {target.id}"], declared=True)
    resolved = {id.lower() for id in resolved}
    found, known = [], {}
    for memory in sorted(memories, key=lambda m: (m.id.lower(), m.rel)):
        theirs, beside = _theirs(memory), _beside(memory)
        kind, score, why = compare(mine, theirs, same_type=memory.type == type, said=beside)
        there = beside | {old.plain for old in theirs}
        known[memory.id] = {at for at, new in enumerate(mine) if new.plain in there}, memory
        if kind and (memory.id.lower() not in resolved or kind == SAME):
            found.append((RANK[kind], -score, memory.id, kind, score, why, memory))
    found.sort(key=lambda row: row[:3])
    if len(mine) > 1 and not (found and found[0][3] == SAME) and len(set().union(*(said for said, _ in known.values()))) == len(mine):
        # several memories say it between them: what a load printed, proposed back
        most = max(known.values(), key=lambda row: (len(row[0]), row[1].type == type, row[1].id))[1]
        return Verdict(NOOP, most, why=["each of its statements is stored already, in several memories"])
    reasons = [f"{row[6].id}: {row[5]}" for row in found if row[5]]
    if found:
        kind, memory = found[0][3], found[0][6]
        if kind == SAME:
            return Verdict(NOOP, memory, why=reasons[:1])
        if kind in (CONTRADICTS, EXTENDS):
            rivals = [row for row in found[1:] if row[3] == kind and row[4] > found[0][4] - 0.05]
            if not rivals:
                return Verdict(SUPERSEDE if kind == CONTRADICTS else UPDATE, memory, why=reasons[:1])
    hints = [(DUPLICATE, row[6].id) for row in found if row[3] != CLOSE or row[4] >= WORTH_A_LOOK][:MOST_HINTS]
    taken = {id for _, id in hints} | {row[6].id for row in found}
    hints += [(DEPENDENCY, id) for id in _prerequisites(text, memories) if id.lower() not in resolved and id not in taken][:MOST_HINTS]
    return Verdict(ADD, hints=hints, why=reasons[:MOST_HINTS] or ["no memory states anything about the same thing"])


def _theirs(memory):
    return [read(part) for part in statements(memory.content)]


def _beside(memory):
    """Return what a memory says outside its content (title, origin, notes, wordings), to know it when it comes back."""
    texts = [memory.title, *(text for name, text in memory.sections.items() if name != "Content")]
    return frozenset(plain(part) for text in texts for part in statements(text))


def compare(mine, theirs, *, same_type=True, said=frozenset()):
    """Return (kind or None, score, why) of a candidate's statements to a memory's.

    `said` are plain texts that the memory has beside its content: they are nothing new with the rest, and no
    reason alone.

    A verdict needs the memory as a whole: SAME when every statement is there already; EXTENDS when what
    is there comes back with more; CONTRADICTS when the memory has nothing else to lose. Less is CLOSE.
    """
    if not mine or not theirs:
        return None, 0.0, ""
    if said:
        mine = [new for new in mine if new.plain not in said or any(new.plain == old.plain for old in theirs)] or mine
    best = [closest(new, theirs, in_full=number < MOST_RELATED) for number, new in enumerate(mine)]
    kinds = [relation.kind for relation, _ in best]
    strongest, at = max(best, key=strength)
    if all(kind == SAME for kind in kinds):
        return (SAME if same_type else CLOSE), 1.0, strongest.why
    touched = {at for relation, at in best if relation.kind in (SAME, EXTENDS)}
    if CONTRADICTS in kinds:
        opposed = {at for relation, at in best if relation.kind == CONTRADICTS}
        why = next(relation.why for relation, _ in best if relation.kind == CONTRADICTS)
        if len(opposed | touched) == len(theirs):
            return CONTRADICTS, strongest.score, why
        return CLOSE, 1.0, f"contradicts one of its {len(theirs)} statements: {why}"
    if touched:
        why = next(relation.why for relation, _ in best if relation.kind in (EXTENDS, SAME))
        kept = len(touched) / len(theirs)
        share = sum(kind in (SAME, EXTENDS) for kind in kinds) / len(mine)
        if EXTENDS not in kinds:
            why = f"has {len(touched)} of its {len(theirs)} statements and more"
        if same_type and (kept >= 0.5 or share >= 0.5 and len(mine) > 1) and (len(theirs) <= 2 or kept >= 0.3 or share >= 0.5):
            return EXTENDS, strongest.score, why
        if kept >= 0.5 or share >= 0.5:
            return CLOSE, max(strongest.score, WORTH_A_LOOK), why
    if CLOSE in kinds:
        share = sum(kind == CLOSE for kind in kinds) / len(mine)
        if share >= 0.5:
            return CLOSE, strongest.score, strongest.why
    return None, strongest.score, strongest.why


def _covered(mine, theirs):
    return bool(mine) and all(any(new.plain == old.plain for old in theirs) for new in mine)


_DEPENDING = Pattern(
    r"(?i)(?<!\w)(?:depends? (?:up)?on|depending on|builds? (?:up)?on|based on|relies on|rely on|requires?|needs?|extends|prerequisite|"
    r"must follow|follows|only after|phụ thuộc(?: vào)?|dựa trên|dựa vào|yêu cầu|cần có)(?!\w)"
    r"|依赖(?!项|包)|依賴|基于|基於|取决于|取決於|前提是"
)


def _prerequisites(text, memories):
    """Return ids of memories that the words behind "depends on", "requires", … speak of, the best first."""
    found = {}
    for part in statements(text):
        match = _DEPENDING.search(part)
        if not match:
            continue
        asked = read(part[match.end() :]).content
        if not asked:
            continue
        for memory in memories:
            # what a memory itself depends on is not what it is about
            about = frozenset(key for old in statements(memory.content)[:3] for key in read(_DEPENDING.split(old)[0]).content)
            shared = asked & about
            share = len(shared) / len(asked)
            if len(shared) >= 2 and share >= 0.5:
                found[memory.id] = max(found.get(memory.id, 0), share)
    return [id for id, share in sorted(found.items(), key=lambda row: (-row[1], row[0]))]
