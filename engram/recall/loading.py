"""Load, route and session start: the choice for a task, packed into a budget and printed.

The faces of `choose` (recall.md, "Routing" and "Tiers of output"). Must not know how ranking works, MCP or terminals.
"""
from __future__ import annotations

from collections import namedtuple

from engram import files
from engram.errors import EngramError, NotFound, Result, UsageError
from engram.recall import choose, notes, pack, render, uses
from engram.recall.tasks import task_type
from engram.recall.words import table
from engram.store import index, trust

START = "current session"
FORMS = ("auto", "cards", "bodies")
LEAST_BUDGET = 32
FULL_ROOM = 4 * 10 ** 9

# text: empty when nothing is new; marks: {key: mark} of all selected; reused: how many of them were left out; held: keys of
# what must wait for a look
Fresh = namedtuple("Fresh", "text marks reused held")


class Unseen(NotFound):
    """A memory that is there and not to be seen; the message says why."""

    code = "ENG_NOT_VISIBLE"


def load(place, query="", *, ids=(), budget=None, disclosure="auto", full=False, explain=False, limit=None, everything=False) -> Result:
    """Return the memories for a task as text, within a token budget (recall.md, "Tiers of output").

    `ids` returns those bodies exactly. No query, and `current session`, mean a session start. `data` has selected_keys,
    body_keys, card_ids, omitted_ids, tokens; with `explain` also `explain` rows. Raises UsageError, NotFound.
    """
    if disclosure not in FORMS:
        raise UsageError(f"disclosure is one of {', '.join(FORMS)}.")
    if ids:
        return _by_ids(place, [ids] if isinstance(ids, str) else list(ids), full)
    room = _room(place, budget, full)
    stores = place.need_stores()
    most = _limit(place, limit)
    if explain:
        return _explained(place, query, stores, most, everything)

    def work(indexes):
        return _packed(place, _choice(place, indexes, query, most, everything), _Standing(place), room, disclosure, full)

    shown = index.using_all(stores, work)
    _count(place, shown.bodies)
    text = "\n".join(shown.lines)
    data = {"selected_keys": [one.memory.key for one in shown.choice.chosen], "body_keys": shown.bodies,
            "card_ids": shown.card_ids, "omitted_ids": shown.omitted_ids, "tokens": render.tokens(text)}
    return Result(data, text, [*place.all_diagnostics(), *shown.choice.diagnostics])


def session_start(place, objective=None) -> Result:
    """Return what a session starts with: rules and tagged memories, and the notes of an objective as cards."""
    found = fresh(place, "", {}, start=True, objective=objective)
    return Result({"selected_keys": list(found.marks), "tokens": render.tokens(found.text)}, found.text)


def fresh(place, query, known, *, start=False, objective=None) -> Fresh:
    """Return what of a load (or session start) is new to a session: memories whose mark in `known` still holds are left out.

    A mark binds a memory's content, its form and its standing; the mark of a body covers its card. A rule that says something
    else than when its owner last looked is held back (link.md, Hooks). A session start is rules and tagged memories alone.
    """
    room = _room(place, None, False)
    query = START if start else query

    def work(indexes):
        choice = _choice(place, indexes, query, _limit(place, None), False)
        standing = _Standing(place)
        held = [one.memory.key for one in choice.chosen if standing.held(one.memory)]
        chosen = [one for one in choice.chosen if one.memory.key not in held and (not start or one.score >= choose.START_SCORES[1])]
        shown = _packed(place, choice._replace(chosen=chosen), standing, room, "auto", False, known, objective if start else None)
        return shown, held

    shown, held = index.using_all(place.need_stores(), work)
    _count(place, [key for key in shown.bodies if key not in shown.reused])
    return Fresh("\n".join(shown.lines) if len(shown.lines) > 1 else "", shown.marks, len(shown.reused), held)


def route(place, query, *, explain=False) -> Result:
    """Return the task type and the memories that `load` would return, in load order, without their text."""
    stores = place.need_stores()
    most = _limit(place, None)
    choice = index.using_all(stores, lambda indexes: _choice(place, indexes, query, most, False, explain))
    kind = task_type(query)
    entries = [{"id": one.memory.id, "type": one.memory.type, "scope": one.memory.scope, "score": round(one.score, 4)}
               for one in choice.chosen]
    lines = [f"Task type: {kind}", f"Engram found: {len(entries)} memories / {choice.related} related."]
    lines += _explanation(choice) if explain else [_card(one.memory) for one in choice.chosen]
    return Result({"task_type": kind, "entries": entries}, "\n".join(lines), [*place.all_diagnostics(), *choice.diagnostics])


def body(place, id) -> str:
    """Return the text of one memory as `load --id` prints it, and count the fetch. Raises NotFound."""
    return _by_ids(place, [id], False).text


def is_start(query: str) -> bool:
    """Whether a query means a session start."""
    return " ".join(query.split()).casefold() in ("", START)


class _Shown:
    """A load, printed: `lines`, what went where, and the marks of what was selected."""

    __slots__ = ("bodies", "card_ids", "choice", "lines", "marks", "omitted_ids", "reused")


def _choice(place, indexes, query, most, everything, why=False):
    sources = choose.Sources(place, indexes)
    if is_start(query):
        return choose.for_start(sources, 10 ** 6 if everything else most)
    return choose.for_task(sources, query, most, everything=everything, why=why, table=table(place))


def _packed(place, choice, standing, room, disclosure, full, known=None, objective=None) -> _Shown:
    """Return a choice printed within a room; what `known` has the marks of is left out, notes of an objective are added."""
    texts, forms = {}, {}
    for one in choice.chosen:
        forms[one.memory.key] = one
        texts[one.memory.key] = (standing.body(one.memory, full), _card(one.memory))
    extra = [render.card(note.id, f"note, {note.type}", note.scope, note.summary) for note in notes.of_objective(place, objective)]
    head = _head(len(choice.chosen), choice.related)
    # the head is counted at its longest, so that its final numbers never cost more
    left = room - render.quarters(head) - 8 - sum(render.quarters(line) + 1 for line in extra)
    items = [pack.Item(key, one.score, render.quarters(texts[key][0]) + 2, render.quarters(texts[key][1]) + 1)
             for key, one in forms.items()]
    plan = pack.plan(items, left, "bodies" if full else disclosure)
    shown = _Shown()
    shown.choice, shown.bodies = choice, plan.bodies
    shown.marks = {key: standing.mark(forms[key].memory, key in plan.bodies) for key in [*plan.bodies, *plan.cards]}
    shown.reused = {key for key, mark in shown.marks.items()
                    if known and known.get(key) in (mark, standing.mark(forms[key].memory, True))}
    bodies = [key for key in plan.bodies if key not in shown.reused]
    cards = [key for key in plan.cards if key not in shown.reused]
    shown.card_ids = [forms[key].memory.id for key in plan.cards]
    shown.omitted_ids = [forms[key].memory.id for key in plan.omitted]
    shown.lines = [_head(len(bodies) + len(cards), choice.related)]
    for key in bodies:
        shown.lines += ["", texts[key][0]]
    tail = [*(texts[key][1] for key in cards), *extra]
    if tail:
        shown.lines += ["", *tail]
    if render.quarters("\n".join(shown.lines)) > room:  # only when the room is too small for a head and one note
        shown.lines = shown.lines[:1]
    return shown


class _Standing:
    """With what authority memories speak here (link.md, Hooks; upstream-format.md S-1)."""

    def __init__(self, place):
        self.trust = trust.read(place)
        active = place.settings.get("rule_variants.active")
        self.variant = "balanced" if active == "off" else active

    def _of(self, memory) -> tuple[str, bool]:
        """Return (authority, whether its workspace is trusted)."""
        if self.trust.covers(memory.key, memory.sha256):
            return memory.authority, True
        return "reference", self.trust.workspace_trusted

    def held(self, memory) -> bool:
        """Whether a memory gives instructions and was seen in another form."""
        return memory.authority == "instruction" and self.trust.changed(memory.key, memory.sha256)

    def body(self, memory, full=False) -> str:
        authority, trusted = self._of(memory)
        return render.body(memory, variant=self.variant, authority=authority, trusted=trusted, full=full)

    def mark(self, memory, as_body: bool) -> str:
        """Return what a session remembers of a memory that it got."""
        said = f"{memory.sha256} {'body' if as_body else 'card'} {self._of(memory)} {self.variant if memory.type == 'rule' else ''}"
        return files.sha256(said.encode())[:16]


def _by_ids(place, ids, full) -> Result:
    """Return the bodies of ids exactly; each must be a memory or note to be seen."""
    stores = place.need_stores()

    def work(indexes):
        sources = choose.Sources(place, indexes)
        return [seen(place, sources, id) for id in dict.fromkeys(ids)]

    found = index.using_all(stores, work)
    standing = _Standing(place)
    _count(place, [memory.key for memory in found])
    blocks = [standing.body(memory, full) for memory in found]
    text = "\n\n".join([_head(len(found), len(found)), *blocks])
    data = {"selected_keys": [memory.key for memory in found], "body_keys": [memory.key for memory in found], "card_ids": [],
            "omitted_ids": [], "tokens": render.tokens(text)}
    return Result(data, text, place.all_diagnostics())


def seen(place, sources, id):
    """Return the memory or note of an id. Raises NotFound with near ids, Unseen with the reason."""
    pair = sources.named(str(id))
    if pair is not None:
        memory, reason = sources.memory(*pair)
        if memory is not None:
            return memory
    note = notes.named(place, str(id))
    if note is not None:
        return note
    if pair is not None and reason != "gone":
        at, row = pair
        raise Unseen(f"`{render.shown_id(str(id))}` is not shown: {reason}.", file=f"{sources.indexes[at].store.scope}:{row.rel}",
                     hint="Look at the change (engram show), then accept it with engram rehash." if reason in ("edited", "not approved")
                     else None)
    raise NotFound(f"there is no memory `{render.shown_id(str(id))}`.", hint=_near(sources, str(id)))


def _near(sources, id: str):
    """Return a hint that names ids like this one."""
    _, found = sources.rank(id.replace("-", " ").replace("_", " "), 20)
    near = []
    for _, at, row, _ in found:
        memory, _ = sources.memory(at, row)
        if memory is not None and len(near) < 3:
            near.append(render.shown_id(memory.id))
    return f"Did you mean {', '.join(near)}?" if near else "engram list shows all."


def _explained(place, query, stores, most, everything) -> Result:
    choice = index.using_all(stores, lambda indexes: _choice(place, indexes, query, most, everything, True))
    lines = [_head(len(choice.chosen), choice.related), f"Task type: {task_type(query)}", *_explanation(choice)]
    text = "\n".join(lines)
    data = {"selected_keys": [one.memory.key for one in choice.chosen], "body_keys": [], "card_ids": [],
            "omitted_ids": [], "tokens": render.tokens(text),
            "explain": [{"id": one.memory.id, "scope": one.memory.scope, "score": round(one.score, 4), "why": one.why,
                         "matched": list(one.matched)} for one in choice.chosen],
            "left_out": [{"file": rel, "scope": scope, "reason": reason} for rel, scope, reason in choice.left_out[:50]]}
    return Result(data, text, [*place.all_diagnostics(), *choice.diagnostics])


def _explanation(choice) -> list[str]:
    """Return a line for each memory that was chosen, and for those left out."""
    lines = []
    for one in choice.chosen:
        why = "needed by one below" if one.why == "prerequisite" else "session start" if not one.matched else \
            "matched " + ", ".join(render.one_line(word) for word in one.matched)
        lines.append(f"- [{render.shown_id(one.memory.id)}] ({one.memory.type}, {one.memory.scope}) {one.score:.2f}: {why}")
    if choice.left_out:
        lines.append("Left out:")
        lines += [f"- {scope}:{render.one_line(rel)[:100]}: {reason}" for rel, scope, reason in choice.left_out[:20]]
        if len(choice.left_out) > 20:
            lines.append(f"- and {len(choice.left_out) - 20} more")
    return lines


def _head(number: int, matching: int) -> str:
    return f"Engram loaded: {number} memories / {matching} related."


def _card(memory) -> str:
    return render.card(memory.id, memory.type, memory.scope, memory.summary)


def _limit(place, limit) -> int:
    if limit is None:
        return place.settings.get("load.limit")
    if not isinstance(limit, int) or limit < 1:
        raise UsageError("the limit is a number from 1 to 32.")
    return min(limit, 32)


def _room(place, budget, full) -> int:
    """Return the room in quarters of a token."""
    if full:
        return FULL_ROOM
    if budget is None:
        budget = place.settings.get("load.max_tokens")
    if not isinstance(budget, int) or budget < LEAST_BUDGET:
        raise UsageError(f"budget_tokens is a number of at least {LEAST_BUDGET}.")
    return 4 * budget


def _count(place, keys) -> None:
    """Count the bodies that were fetched; a count that can't be kept is no reason to fail."""
    for store in place.stores:
        try:
            uses.count(store, [key.partition(":")[2] for key in keys if key.startswith(store.scope + ":")])
        except EngramError:
            continue
