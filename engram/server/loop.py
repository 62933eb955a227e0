"""Join the protocol to a surface: events become calls side by side, results become lines.

Must not know descriptors, signals or argv: it is given a function that writes a line, workers that run
calls and a clock, so a test runs it in memory. One lock covers the connection and the dialogs; nothing
waits while it is held, no thread waits for a human, and the last broad `except` of the server is here.
"""
from __future__ import annotations

import threading

from engram.errors import EngramError, Result, failure
from engram.protocol import connection as protocol
from engram.protocol import schema
from engram.protocol.connection import Connection, Face
from engram.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS
from engram.server import answers, dialogs
from engram.server.dialogs import Dialogs
from engram.server.tool import Ask, Context

CLOSED = "the dialog was closed without an answer"
SILENT = "no answer came within 60 seconds"
FAILED = "the client could not show the dialog"
ENDING = "the server is ending"
CROWDED = "too many dialogs are open"


class Loop:
    """One server: feed it lines with `receive`, let it look at the time with `tick`, `end` it once.

    `write(bytes)` writes one line; `workers` runs calls; `clock()` are seconds that never go back; `key`
    seals states; `workspace` is the path they are bound to; `elicit` False keeps approvals in the chat;
    `note(text)` reports a fault to whoever reads stderr.
    """

    def __init__(self, surface, write, workers, clock, *, key, workspace, elicit=True, note=lambda text: None):
        self._surface = surface
        self._tools = {tool.name: tool for tool in surface.tools}
        implementation = {"name": surface.name, "version": surface.version, "title": surface.title or None}
        capabilities = {"tools": {}}
        if surface.resources:
            capabilities["resources"] = {}
        if surface.prompts:
            capabilities["prompts"] = {}
        self._connection = Connection(Face(implementation, surface.instructions, capabilities), self._tools)
        self._dialogs = Dialogs(key, workspace)
        self._write = write
        self._workers = workers
        self._clock = clock
        self._elicit = elicit
        self._note = note
        self._lock = threading.RLock()
        self._roots_id = None
        self._ended = False

    # -- what comes in

    def receive(self, line):
        """Take one line from the client."""
        with self._lock:
            events = self._connection.receive(line)
        for event in events:
            _EVENTS[type(event)](self, event)

    def tick(self):
        """Let dialogs that have waited long enough fall back; return seconds until the next may, or None."""
        with self._lock:
            overdue = self._dialogs.overdue(self._clock())
            due = self._dialogs.next_due()
        for dialog in overdue:
            self._fall_back(dialog, SILENT)
        return None if due is None else max(0.0, due - self._clock())

    def end(self):
        """Take no more input: calls that wait for a human end now, unwritten; the others go on."""
        self._surface.ending()
        with self._lock:
            self._ended = True
            waiting = self._dialogs.abandon()
        for _, dialog in waiting:
            self._fall_back(dialog, ENDING)

    # -- events

    def _send(self, event):
        self._write(event.data)

    def _request(self, event):
        work = _METHODS[event.method]
        if event.method in _AT_ONCE:
            self._guarded(event, work)
        else:
            lane = self._surface.lane(event.params["name"]) if event.method == "tools/call" else None
            self._workers.submit(lambda: (self._guarded(event, work), self._surface.called()), lane)

    def _cancelled(self, event):
        """End a call that waits for a human, unwritten and unanswered.

        A legacy call under way is answered all the same, which that era allows: it takes milliseconds, and
        whoever replays a dialogue gets one answer for each request. The modern era forbids it.
        """
        request = event.request
        with self._lock:
            waiting = self._dialogs.abandon(request)
            request.cancelled = True
            line = self._connection.cancel(request) if waiting or request.era == "modern" else b""
        if line:
            self._write(line)
        for id, _ in waiting:
            self._write(self._connection.withdraw(id, "the call was cancelled"))

    def _answer(self, event):
        if event.id == self._roots_id:
            self._roots_id = None
            found = (event.result or {}).get("roots")
            self._surface.rooted([root for root in found if isinstance(root, dict)] if isinstance(found, list) else [])
            return
        with self._lock:
            dialog = self._dialogs.answered(event.id)
        if dialog is None:
            return
        now = self._clock()
        if dialog.late:
            if dialogs.reading(event.result)[0] == dialogs.DECLINE:
                self._workers.submit(lambda: self._settled(dialog.ask.declined, False))
            return
        self._workers.submit(lambda: self._guarded(dialog.request, Loop._decide, dialog, event.result, now))

    def _initialised(self, event):
        self._surface.initialised(event.client)
        self._ask_roots(event)

    def _ask_roots(self, event):
        if self._surface.wants_roots and isinstance(event.capabilities.get("roots"), dict):
            with self._lock:
                if self._roots_id is not None:
                    self._connection.forget(self._roots_id)
                self._roots_id, line = self._connection.ask("roots/list", {})
            self._surface.asking_roots()
            self._write(line)

    # -- requests

    def _guarded(self, request, work, *more):
        """Run the work of a request; whatever goes wrong, it gets exactly one answer."""
        try:
            work(self, request, *more)
        except EngramError as error:
            self._error(request, INTERNAL_ERROR, str(error), {"code": error.code})
        except Exception:  # noqa: BLE001 - the server's door (architecture.md, Errors)
            self._report()
            self._error(request, INTERNAL_ERROR, "Internal error: a fault of the server, not of the call; see its stderr")

    def _report(self):
        import traceback  # 1 ms of every start, and only a fault of ours needs it

        self._note(traceback.format_exc())

    def _list_tools(self, request):
        self._result(request, {"tools": answers.tool_rows(self._surface, request.version)})

    def _list_resources(self, request):
        found = self._surface.resources.list(self._context(request)) if self._surface.resources else []
        self._result(request, {"resources": answers.rows("resource", found, request.version)})

    def _list_templates(self, request):
        found = self._surface.resources.templates(self._context(request)) if self._surface.resources else []
        self._result(request, {"resourceTemplates": answers.rows("template", found, request.version)})

    def _read_resource(self, request):
        uri = request.params["uri"]
        contents = None
        if self._surface.resources and schema.problem({"type": "string"}, uri) is None:
            contents = self._surface.resources.read(self._context(request), uri)
        if contents is None:
            self._error(request, *answers.not_found(uri, request.era))
        else:
            self._result(request, {"contents": contents})

    def _list_prompts(self, request):
        found = self._surface.prompts.list(self._context(request)) if self._surface.prompts else []
        self._result(request, {"prompts": answers.rows("prompt", found, request.version)})

    def _get_prompt(self, request):
        name, arguments = request.params["name"], request.params.get("arguments") or {}
        try:
            found = self._surface.prompts and self._surface.prompts.get(self._context(request), name, arguments)
        except EngramError as error:
            self._error(request, INVALID_PARAMS, f"Invalid params: {error}")
            return
        if found:
            self._result(request, answers.prompt_result(*found))
        else:
            self._error(request, INVALID_PARAMS, f"Unknown prompt: {name[:200]}")

    def _call_tool(self, request):
        name, arguments = request.params["name"], request.params.get("arguments") or {}
        tool = self._tools.get(name)
        if tool is None:
            self._error(request, INVALID_PARAMS, f"Unknown tool: {name[:200]}")
        elif request.era == "modern" and request.params.get("requestState") is not None:
            self._retry(request)
        elif self._lacks_roots(request, tool, arguments):
            self._result(request, dialogs.roots_required())
        else:
            self._finish(request, self._run(tool, arguments, self._context(request)))

    def _lacks_roots(self, request, tool, arguments):
        """Tell whether a modern client has roots that this call needs and did not bring."""
        return (request.era == "modern" and isinstance(request.capabilities.get("roots"), dict)
                and dialogs.roots_of(request.params) is None and self._surface.needs_roots(tool, arguments))

    def _run(self, tool, arguments, context):
        """Run a tool on checked arguments: a Result, or an Ask."""
        arguments = schema.whole(arguments)
        if tool.prepare:
            arguments = tool.prepare(arguments)
        problem = schema.problem(tool.input, arguments)
        if problem:
            return self._surface.refused(tool, arguments, problem)
        try:
            return self._outcome(tool.run, context, arguments)
        except EngramError as error:
            return self._surface.failed(tool, arguments, error)

    def _outcome(self, work, *arguments):
        """Run one piece of a tool; a fault of ours becomes a Result that says so."""
        try:
            return work(*arguments)
        except EngramError:
            raise
        except Exception:  # noqa: BLE001 - the server's door (architecture.md, Errors)
            self._report()
            message = "internal error: a fault of Engram, not of the call; its stderr says more"
            return Result({}, message, error=("ENG_INTERNAL", message))

    def _finish(self, request, outcome):
        if not isinstance(outcome, Ask):
            self._answer_tool(request, outcome)
        elif not self._elicit or not request.shows_forms:
            self._answer_tool(request, self._settled(outcome.waiting))
        elif request.era == "modern":
            with self._lock:
                state = self._dialogs.close(request, outcome, self._clock())
            self._result(request, dialogs.input_required(outcome, state, request.version))
        else:
            self._put(request, outcome)

    # -- dialogs

    def _put(self, request, ask):
        with self._lock:
            why = ENDING if self._ended else CROWDED if self._dialogs.full else None
            if request.cancelled:
                line = self._connection.cancel(request)
            elif why is None:
                id, line = self._connection.ask("elicitation/create", dialogs.form_request(ask, request.version))
                self._dialogs.put(id, request, ask, self._clock())
            else:
                line = b""
        if line:
            self._write(line)
        elif not request.cancelled:
            self._wait(request, ask, why)

    def _retry(self, request):
        """Take the answer that a modern client brings back with its state."""
        given = request.params.get("inputResponses") or {}
        with self._lock:
            dialog = self._dialogs.reopen(request, self._clock())
            if dialog is not None and dialogs.KEY not in given:
                state = self._dialogs.again(request, dialog)
            else:
                state = None
                if dialog is not None and not self._dialogs.use(dialog):
                    dialog = None
        if dialog is None:
            # One answer for every reason: which of them it was is nobody's business (style.md 2.5).
            self._error(request, INVALID_PARAMS, "Invalid params: the requestState is not valid for this call")
        elif state:
            self._result(request, dialogs.input_required(dialog.ask, state, request.version))
        else:
            self._decide(request, dialog, given[dialogs.KEY], self._clock())

    def _decide(self, request, dialog, answer, now):
        ask = dialog.ask
        what, content = dialogs.reading(answer)
        if what == dialogs.ACCEPT:
            self._answer_tool(request, self._settled(ask.accepted, content))
        elif what == dialogs.DECLINE:
            self._answer_tool(request, self._settled(ask.declined, now - dialog.asked < dialogs.AT_ONCE))
        else:
            self._wait(request, ask, CLOSED if what == dialogs.CANCEL else FAILED)

    def _fall_back(self, dialog, why):
        self._workers.submit(lambda: self._guarded(dialog.request, Loop._wait, dialog.ask, why))

    def _wait(self, request, ask, why):
        """Answer a proposal that no dialog decided: it waits for its token."""
        self._answer_tool(request, answers.after_dialog(why, self._settled(ask.waiting)))

    def _settled(self, work, *arguments):
        """Run a piece of an Ask to its Result."""
        try:
            return self._outcome(work, *arguments)
        except EngramError as error:
            return failure(error)

    # -- what goes out

    def _context(self, request):
        roots = (dialogs.roots_of(request.params) or []) if request.era == "modern" else None
        return Context(request.client, request.era, request.version, lambda: request.cancelled, roots)

    def _answer_tool(self, request, result):
        result = answers.bounded(result)
        if not request.bare:
            self._result(request, answers.tool_result(result, request.version))
        elif result.ok:
            self._result(request, result.text)
        else:
            self._error(request, *answers.bare_error(result))

    def _result(self, request, value):
        with self._lock:
            line = self._connection.result(request, value)
        if line:
            self._write(line)

    def _error(self, request, code, message, data=None):
        with self._lock:
            line = self._connection.error(request, code, message, data)
        if line:
            self._write(line)


_EVENTS = {
    protocol.Send: Loop._send,
    protocol.Request: Loop._request,
    protocol.Cancelled: Loop._cancelled,
    protocol.Answer: Loop._answer,
    protocol.Initialised: Loop._initialised,
    protocol.RootsChanged: Loop._ask_roots,
}
_METHODS = {
    "tools/list": Loop._list_tools,
    "tools/call": Loop._call_tool,
    "resources/list": Loop._list_resources,
    "resources/templates/list": Loop._list_templates,
    "resources/read": Loop._read_resource,
    "prompts/list": Loop._list_prompts,
    "prompts/get": Loop._get_prompt,
}
# Need nothing but tables; the rest may read the store and runs beside them.
_AT_ONCE = frozenset(("tools/list", "resources/templates/list", "prompts/list", "prompts/get"))
