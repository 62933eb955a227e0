"""A surface without a store, for tests of the protocol and the loop: it echoes, asks, waits and fails on demand."""
from __future__ import annotations

import json
import threading

from engram.errors import Refused, Result
from engram.protocol.framing import Lines
from engram.server.loop import Loop
from engram.server.tool import READ, Ask, Surface, Tool
from engram.server.workers import Workers

TEXT = {"type": "string", "description": "Any text.", "maxLength": 100_000}
OUT = {"type": "object", "properties": {"data": {"type": "object"}}, "required": ["data"]}
FORM = {"type": "object", "properties": {"c1": {"type": "boolean", "title": "1 ADD x", "default": False}}, "required": []}


class Inline:
    """Workers that run everything at once in the caller, so that a test joins client and server by hand."""

    def submit(self, work, lane=None):
        work()

    def room(self, seconds):
        return True

    def idle(self, seconds):
        return True


class Prompts:
    def list(self, context):
        return [{"name": "list", "title": "List", "description": "Lists."}]

    def get(self, context, name, arguments):
        return ("A prompt", "Do it.") if name == "list" else None


class Stub(Surface):
    name, version, title = "stub", "1", "Stub"
    instructions = "A stub."
    wants_roots = False

    def __init__(self):
        self.written = []
        self.revoked = []
        self.heard = []
        self.go = threading.Event()
        self.entries = 0
        self.seconds = 1800
        self.tools = (
            Tool("echo", "Echo", "Echoes.", {"type": "object", "properties": {"text": TEXT}, "additionalProperties": False},
                 lambda context, arguments: Result({"length": len(arguments.get("text", ""))}, arguments.get("text", "")),
                 annotations=READ, output=OUT),
            Tool("keep", "Keep", "Asks, then keeps.", {"type": "object", "properties": {"text": TEXT}, "required": ["text"],
                                                       "additionalProperties": False}, self._keep, output=OUT),
            Tool("other", "Other", "Asks as well.", {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}, self._keep),
            Tool("hold", "Hold", "Waits for a sign.", {"type": "object", "properties": {}},
                 lambda context, arguments: (self.go.wait(30), Result(text="held"))[1]),
            Tool("refuse", "Refuse", "Refuses.", {"type": "object", "properties": {}}, self._refuse),
            Tool("break", "Break", "Breaks.", {"type": "object", "properties": {}}, lambda context, arguments: 1 / 0),
        )
        self.resources, self.prompts = self, Prompts()

    def _keep(self, context, arguments):
        self.entries += 1
        entry, text = f"entry-{self.entries}", arguments["text"]

        def accepted(content):
            if content.get("c1") is not True:
                self.revoked.append(entry)
                return Result(text="not valid")
            self.written.append(text)
            return Result({"saved": [entry]}, "saved")

        def declined(at_once):
            self.revoked.append((entry, at_once))
            return Result(text="declined")

        return Ask(entry, f"Keep {text}?", FORM, accepted=accepted, declined=declined, seconds=self.seconds,
                   waiting=lambda: Result({"approval_token": f"token-{entry}"}, f"token: token-{entry}"))

    def _refuse(self, context, arguments):
        raise Refused("line 3 is not for you", hint="Leave it.")

    def list(self, context):
        return [{"uri": "stub://a", "name": "a", "title": "A"}]

    def templates(self, context):
        return [{"uriTemplate": "stub://{x}", "name": "x", "title": "X"}]

    def read(self, context, uri):
        return [{"uri": uri, "text": "alpha"}] if uri == "stub://a" else None

    def initialised(self, client):
        self.heard.append(("initialised", client.get("name")))

    def rooted(self, roots):
        self.heard.append(("roots", roots))


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Desk:
    """A client and a server joined by hand: `say` a message, get the replies."""

    def __init__(self, surface=None, threads=False, **options):
        self.surface = surface or Stub()
        self.clock = Clock()
        self.out = []
        self.notes = []
        self.workers = Workers() if threads else Inline()
        self.arrived = threading.Condition()
        options = {"key": b"k" * 32, "workspace": "/ws", **options}
        self.loop = Loop(self.surface, self._write, self.workers, self.clock, note=self.notes.append, **options)
        self.lines = Lines()

    def _write(self, data):
        assert data.endswith(b"\n") and data.count(b"\n") == 1
        with self.arrived:
            self.out.append(json.loads(data))
            self.arrived.notify_all()

    def say(self, *messages):
        """Send messages (or raw bytes) and return what came back meanwhile."""
        start = len(self.out)
        for message in messages:
            for line in self.lines.feed(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"):
                self.loop.receive(line)
        return self.out[start:]

    def wait(self, fits, seconds=10):
        """Return the first message that fits, once it is there."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(map(fits, self.out)), seconds), self.out
            return next(filter(fits, self.out))

    def start(self, version="2025-11-25", capabilities=None):
        """Shake hands."""
        first = self.say(initialize(version, capabilities))
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return first[0]["result"]


NAMESPACE = "io.modelcontextprotocol/"


def initialize(version="2025-11-25", capabilities=None, id=0):
    return request(id, "initialize", protocolVersion=version, capabilities=capabilities or {}, clientInfo={"name": "test", "version": "1"})


def request(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})}


def modern(id, method, capabilities=None, **params):
    meta = {NAMESPACE + "protocolVersion": "2026-07-28", NAMESPACE + "clientCapabilities": capabilities or {},
            NAMESPACE + "clientInfo": {"name": "test", "version": "1"}}
    return request(id, method, **params, _meta=meta)


def call(id, name, /, **arguments):
    return request(id, "tools/call", name=name, arguments=arguments)
