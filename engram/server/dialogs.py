"""Questions that wait for a human, in both eras: which are open, what an answer decides (mcp.md, Asking the human).

Must not know threads, descriptors or what is being approved. A legacy dialog belongs to a request of ours
to the client and falls back after 60 s; it stays known after that, because a late no still counts. A modern
one lives in a sealed state that comes back with the answer; the entry that the state names is used up by
the first answer, so a replay finds nothing.
"""
from __future__ import annotations

from engram.protocol import eras
from engram.protocol.seal import Seal, digest

WAIT = 60.0
# Quicker than this is a program's answer, not a person's (case AP-08).
AT_ONCE = 0.1
# More open questions than this and the next one is not asked: nobody reads that many.
OPEN_LIMIT = 64
KEY = "approval"  # the name of our question among inputRequests
ROOTS = "roots"


class Dialog:
    """One asked question: the request that waits (legacy), the Ask, and when it was put."""

    __slots__ = ("ask", "asked", "expires", "late", "request")

    def __init__(self, request, ask, now):
        self.request = request
        self.ask = ask
        self.asked = now
        self.expires = now + ask.seconds
        self.late = False


class Dialogs:
    """The open questions of one server process. The caller serialises the calls and gives the time."""

    def __init__(self, key, workspace):
        self._seal = Seal(key, "requestState")
        self._workspace = workspace
        self._legacy = {}
        self._modern = {}

    # -- legacy: a request of ours to the client

    def put(self, id, request, ask, now):
        """Note that the client was asked under `id`."""
        self._sweep(now)
        self._legacy[id] = Dialog(request, ask, now)

    def answered(self, id):
        """Return the Dialog of an answered id, which is open no more, or None."""
        return self._legacy.pop(id, None)

    def overdue(self, now):
        """Return the dialogs that have waited 60 s; from now on only a no to them counts."""
        found = [dialog for dialog in self._legacy.values() if not dialog.late and now >= dialog.asked + WAIT]
        for dialog in found:
            dialog.late = True
        return found

    def abandon(self, request=None):
        """Return (id, Dialog) of the waiting dialogs of a request (None: of all); only a no to them counts now."""
        found = [(id, dialog) for id, dialog in self._legacy.items()
                 if not dialog.late and (request is None or dialog.request is request)]
        for _, dialog in found:
            dialog.late = True
        return found

    def next_due(self):
        """Return when the next dialog falls back, or None."""
        return min((dialog.asked + WAIT for dialog in self._legacy.values() if not dialog.late), default=None)

    @property
    def full(self):
        """Whether so many questions wait that the next one falls back at once."""
        return sum(not dialog.late for dialog in self._legacy.values()) >= OPEN_LIMIT

    # -- modern: a sealed state

    def close(self, request, ask, now):
        """Keep a question open and return the sealed state that names it."""
        self._sweep(now)
        while len(self._modern) >= OPEN_LIMIT:
            del self._modern[next(iter(self._modern))]
        self._modern[ask.entry] = Dialog(None, ask, now)
        return self._state(request, self._modern[ask.entry])

    def reopen(self, request, now):
        """Return the open Dialog that a retry's state names, or None: forged, expired, used or another call's."""
        payload = self._seal.open(request.params["requestState"])
        if payload is None or payload["expires"] <= now or payload["call"] != self._call(request):
            return None
        return self._modern.get(payload["entry"])

    def again(self, request, dialog):
        """Return a state for asking an open question once more."""
        return self._state(request, dialog)

    def use(self, dialog):
        """Use up a modern question; tell whether it was still open, for one answer only is taken."""
        return self._modern.pop(dialog.ask.entry, None) is dialog

    def _state(self, request, dialog):
        return self._seal.close({"entry": dialog.ask.entry, "expires": dialog.expires, "call": self._call(request)})

    def _call(self, request):
        """Return what a state is bound to: tool, workspace and arguments, as one digest."""
        params = request.params
        return digest([params["name"], self._workspace, params.get("arguments") or {}])

    def _sweep(self, now):
        for table in (self._legacy, self._modern):
            for key in [key for key, dialog in table.items() if now >= dialog.expires and (dialog.late or dialog.request is None)]:
                del table[key]


def form_request(ask, version):
    """Return the params of `elicitation/create` as `version` wants them."""
    return eras.keep("elicitation", {"mode": "form", "message": ask.message, "requestedSchema": ask.form}, version)


def input_required(ask, state, version):
    """Return the modern result that asks the client to call again with an answer."""
    asked = {"method": "elicitation/create", "params": form_request(ask, version)}
    return {"resultType": "input_required", "inputRequests": {KEY: asked}, "requestState": state}


def roots_required():
    """Return the modern result that asks the client to call again with its roots; there is nothing to seal."""
    return {"resultType": "input_required", "inputRequests": {ROOTS: {"method": "roots/list"}}}


def roots_of(params):
    """Return the roots that came with a modern call: a list of mappings, None when the client said nothing of them."""
    answers = params.get("inputResponses")
    given = answers.get(ROOTS) if isinstance(answers, dict) else None
    found = given.get("roots") if isinstance(given, dict) else given
    return [root for root in found if isinstance(root, dict)] if isinstance(found, list) else ([] if given is not None else None)


ACCEPT, DECLINE, CANCEL, FAILED = "accept", "decline", "cancel", "failed"


def reading(answer):
    """Return (what, content) of a client's answer; what is accept, decline, cancel or failed."""
    action = answer.get("action") if isinstance(answer, dict) else None
    if action == ACCEPT:
        content = answer.get("content")
        return ACCEPT, content if isinstance(content, dict) else {}
    return (action, {}) if action in (DECLINE, CANCEL) else (FAILED, {})
