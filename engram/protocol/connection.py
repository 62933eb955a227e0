"""One client's side of a connection as a state machine: lines in, events and reply lines out.

Must not know threads, clocks, descriptors or what a tool does. It answers by itself what needs nothing
but the protocol (handshake, ping, discovery, every kind of fault), hands the rest out as events, and
turns answers into the bytes that the request's era and version want. The caller moves the bytes and
serialises the calls.

    connection = Connection(Face(...), tool_names)
    for event in connection.receive(line): ...       # Send, Request, Cancelled, Answer, Initialised, RootsChanged
    data = connection.result(request, {...})          # b"" when nothing may be sent
"""
from __future__ import annotations

from engram.protocol import eras, messages
from engram.protocol.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Fault

BATCH_LIMIT = 1000

_WAYS_IN = ("Invalid request: not initialized. Send initialize first, or send this request with the 2026-07-28 "
            "_meta keys (server/discover tells more)")


class Face:
    """What the server says of itself: the Implementation, the instructions and the capabilities."""

    __slots__ = ("capabilities", "implementation", "instructions")

    def __init__(self, implementation, instructions, capabilities):
        self.implementation = implementation
        self.instructions = instructions
        self.capabilities = capabilities


class Send:
    """Bytes to write now."""

    __slots__ = ("data",)

    def __init__(self, data):
        self.data = data


class Request:
    """A request that the server has to answer, exactly once, through `result` or `error`.

    `bare` says that a tool name was called as a method and the result is the plain value.
    """

    __slots__ = ("bare", "batch", "cancelled", "capabilities", "client", "era", "id", "method", "params", "version")

    def __init__(self, id, method, params, era, version, capabilities, client, *, bare=False, batch=None):
        self.id = id
        self.method = method
        self.params = params
        self.era = era
        self.version = version
        self.capabilities = capabilities
        self.client = client
        self.bare = bare
        self.batch = batch
        self.cancelled = False

    @property
    def shows_forms(self):
        """Whether this request's client can be asked through a form."""
        return eras.can_show_forms(self.capabilities, self.version)


class Cancelled:
    """The client no longer wants the answer to this request."""

    __slots__ = ("request",)

    def __init__(self, request):
        self.request = request


class Answer:
    """The client answered (or refused, `result` None) a request that this server sent it."""

    __slots__ = ("error", "id", "result")

    def __init__(self, id, result, error):
        self.id = id
        self.result = result
        self.error = error


class Initialised:
    """A legacy client has finished its handshake."""

    __slots__ = ("capabilities", "client")

    def __init__(self, client, capabilities):
        self.client = client
        self.capabilities = capabilities


class RootsChanged(Initialised):
    """A legacy client says that its roots are others now."""

    __slots__ = ()


class _Batch:
    """The replies of one batch, sent as one array when the last is in."""

    __slots__ = ("open", "replies")

    def __init__(self):
        self.open = 0
        self.replies = []


class Connection:
    """The protocol state of one stdio connection: the legacy handshake, requests in flight both ways."""

    def __init__(self, face, tool_names):
        self._face = face
        self._tools = frozenset(tool_names)
        self._version = None
        self._capabilities = {}
        self._client = {}
        self._in_flight = {}
        self._asked = set()
        self._count = 0

    # -- lines in

    def receive(self, line):
        """Take one line (bytes, or TOO_LONG) and return its events, in order."""
        message = messages.read(line)
        if isinstance(message, Fault):
            return [Send(_fault(message))]
        if isinstance(message, list):
            return self._batch(message)
        return self._message(message, None)

    def _batch(self, items):
        """Take a batch (2025-03-26, Batching): one array for all its replies, none if there are none."""
        fault = None
        if self._version != eras.BATCH_VERSION:
            fault = f"Invalid request: batches exist in {eras.BATCH_VERSION} only"
        elif not items:
            fault = "Invalid request: the batch is empty"
        elif len(items) > BATCH_LIMIT:
            fault = f"Invalid request: a batch may hold {BATCH_LIMIT} messages at most"
        if fault:
            return [Send(_fault(Fault(INVALID_REQUEST, fault)))]
        batch = _Batch()
        batch.open = 1  # held open until every item has been looked at
        events = []
        for item in items:
            for event in self._message(item, batch):
                if isinstance(event, Send):
                    batch.replies.append(event.data)
                else:
                    if isinstance(event, Request):
                        batch.open += 1
                    events.append(event)
        data = self._settle(batch)
        return [*events, Send(data)] if data else events

    def _message(self, message, batch):
        if not isinstance(message, dict):
            return [Send(_fault(Fault(INVALID_REQUEST, "Invalid request: not an object")))]
        method = message.get("method")
        if method is None and ("result" in message or "error" in message):
            return self._response(message)
        if "id" not in message:
            if isinstance(method, str):
                return self._notification(method, message.get("params"))
            return [Send(_fault(Fault(INVALID_REQUEST, "Invalid request: no method")))]
        id = message["id"]
        if not messages.is_id(id):
            return [Send(_fault(Fault(INVALID_REQUEST, "Invalid request: the id must be a string or an integer")))]
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            what = 'jsonrpc must be "2.0"' if isinstance(method, str) else "the method must be a string"
            return [Send(_fault(Fault(INVALID_REQUEST, f"Invalid request: {what}", id)))]
        params = message.get("params")
        params = {} if params is None else params
        if not isinstance(params, dict):
            return [Send(_fault(Fault(INVALID_PARAMS, "Invalid params: params must be an object", id)))]
        if eras.is_modern(method, params):
            return self._modern(id, method, params, batch)
        return self._legacy(id, method, params, batch)

    # -- requests

    def _modern(self, id, method, params, batch):
        fault = eras.envelope_fault(params)
        if fault:
            return [Send(messages.write(messages.error(id, *fault)))]
        if batch is not None:
            return [Send(_fault(Fault(INVALID_REQUEST, f"Invalid request: {eras.MODERN} has no batches", id)))]
        meta = params["_meta"]
        request = Request(id, method, params, "modern", meta[eras.PROTOCOL_VERSION], meta[eras.CLIENT_CAPABILITIES],
                          meta.get(eras.CLIENT_INFO) or {})
        fault = self._method_fault(request)
        if fault:
            return [Send(_fault(fault))]
        if method == "server/discover":
            return [Send(messages.write(messages.result(id, self._shape(request, self._discovered()))))]
        return self._open(request)

    def _legacy(self, id, method, params, batch):
        version = self._version or eras.LATEST_LEGACY
        request = Request(id, method, params, "legacy", version, self._capabilities, self._client, batch=batch)
        if self._version is None and method not in ("initialize", "ping"):
            return [Send(_fault(Fault(INVALID_REQUEST, _WAYS_IN, id)))]
        if method in self._tools:
            arguments = {name: value for name, value in params.items() if name != "_meta"}
            request.method, request.bare = "tools/call", True
            request.params = {"name": method, "arguments": arguments}
            return self._open(request)
        fault = self._method_fault(request)
        if fault:
            return [Send(_fault(fault))]
        if method in ("ping", "logging/setLevel"):  # some hosts set a level unasked; messages are never sent
            return [Send(messages.write(messages.result(id, {})))]
        if method == "initialize":
            if batch is not None:
                return [Send(_fault(Fault(INVALID_REQUEST, "Invalid request: initialize can't be part of a batch", id)))]
            return [Send(messages.write(messages.result(id, self._initialize(params))))]
        return self._open(request)

    def _method_fault(self, request):
        wanted = eras.METHODS[request.era].get(request.method)
        if wanted is None:
            return Fault(METHOD_NOT_FOUND, f"Method not found: {request.method[:200]}", request.id)
        problem = eras.params_fault(request.params, wanted)
        return Fault(INVALID_PARAMS, f"Invalid params: {problem}", request.id) if problem else None

    def _initialize(self, params):
        self._version = eras.negotiate(params["protocolVersion"])
        self._capabilities = params["capabilities"]
        self._client = params["clientInfo"]
        made = {"protocolVersion": self._version, "capabilities": {**self._face.capabilities, "logging": {}},
                "serverInfo": eras.keep("implementation", self._face.implementation, self._version)}
        if self._face.instructions:
            made["instructions"] = self._face.instructions
        return made

    def _discovered(self):
        made = {"supportedVersions": list(eras.MODERN_VERSIONS), "capabilities": self._face.capabilities}
        if self._face.instructions:
            made["instructions"] = self._face.instructions
        return made

    def _open(self, request):
        self._in_flight.setdefault(request.id, []).append(request)
        return [request]

    # -- what needs no reply

    def _notification(self, method, params):
        params = params if isinstance(params, dict) else {}
        if method == "notifications/cancelled":
            id = params.get("requestId")
            return [Cancelled(request) for request in self._in_flight.get(id, ())] if messages.is_id(id) else []
        if self._version is not None:
            if method == "notifications/initialized":
                return [Initialised(self._client, self._capabilities)]
            if method == "notifications/roots/list_changed":
                return [RootsChanged(self._client, self._capabilities)]
        return []

    def _response(self, message):
        id = message.get("id")
        if not messages.is_id(id) or id not in self._asked:
            return []
        self._asked.discard(id)
        failed = "error" in message or not isinstance(message.get("result"), dict)
        return [Answer(id, None if failed else message["result"], message.get("error"))]

    # -- lines out

    def result(self, request, value):
        """Return the line that answers a request with a result, in its era's shape."""
        value = value if request.bare else self._shape(request, value)
        return self._close(request, messages.result(request.id, value))

    def error(self, request, code, message, data=None):
        """Return the line that answers a request with an error."""
        return self._close(request, messages.error(request.id, code, message, data))

    def cancel(self, request):
        """Take a request out of flight without an answer; return what may have to be sent all the same (a batch)."""
        request.cancelled = True
        return self._close(request, None)

    def ask(self, method, params):
        """Return (id, line) of a request to a legacy client; its `Answer` comes as an event, if it comes."""
        self._count += 1
        id = f"engram-{self._count}"
        self._asked.add(id)
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params:
            message["params"] = params
        return id, messages.write(message)

    def forget(self, id):
        """Expect no answer to a request of ours any more; a late one is ignored."""
        self._asked.discard(id)

    @staticmethod
    def withdraw(id, reason):
        """Return the line that tells a legacy client that a request of ours needs no answer."""
        return messages.write({"jsonrpc": "2.0", "method": "notifications/cancelled",
                               "params": {"requestId": id, "reason": reason}})

    def _shape(self, request, value):
        """Add what the modern era wants on every result (mcp-wire.md 3.2)."""
        if request.era != "modern":
            return value
        shaped = {"resultType": "complete", **value}
        if request.method in eras.CACHE and shaped["resultType"] == "complete":
            shaped["ttlMs"], shaped["cacheScope"] = eras.CACHE[request.method]
        implementation = eras.keep("implementation", self._face.implementation, request.version)
        shaped["_meta"] = {**value.get("_meta", {}), eras.SERVER_INFO: implementation}
        return shaped

    def _close(self, request, message):
        same = self._in_flight.get(request.id, [])
        if request not in same:
            return b""  # cancelled before: nothing more may be sent under that id
        same.remove(request)
        if not same:
            del self._in_flight[request.id]
        line = b"" if message is None else messages.write(message)
        if request.batch is None:
            return line
        if line:
            request.batch.replies.append(line)
        return self._settle(request.batch)

    @staticmethod
    def _settle(batch):
        """Note that one of a batch is done, and return the array line when it was the last."""
        batch.open -= 1
        if batch.open or not batch.replies:
            return b""
        return b"[" + b",".join(line.rstrip(b"\n") for line in batch.replies) + b"]\n"


def _fault(fault):
    return messages.write(messages.error(fault.id, fault.code, fault.message))
