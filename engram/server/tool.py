"""What a surface is made of: a row per tool, the question for a human, and the hooks of the loop.

Knows results and errors, but nothing of JSON-RPC, eras, threads or the store: the loop reads these
rows, a surface fills them in.
"""
from __future__ import annotations

from engram.errors import Result, failure

READ = {"readOnlyHint": True}


class Tool:
    """One tool of a surface.

    `input` and `output` are JSON schemas with an object at the root; the loop checks arguments
    against `input` before it calls `run(context, arguments)`, which returns a `Result` or an `Ask`
    or raises an EngramError. `prepare(arguments)` (optional) returns the arguments as the schema
    should see them: aliases resolved, digit strings made numbers. `extra` are members of the tool
    object that no schema of the protocol names.
    """

    __slots__ = ("annotations", "description", "extra", "input", "meta", "name", "output", "prepare", "run", "title")

    def __init__(self, name, title, description, input, run, *, output=None, annotations=None, meta=None,
                 prepare=None, extra=None):
        self.name = name
        self.title = title
        self.description = description
        self.input = input
        self.run = run
        self.output = output
        self.annotations = annotations or {}
        self.meta = meta or {}
        self.prepare = prepare
        self.extra = extra or {}

    def with_meta(self, meta):
        """Return this row with more `_meta`."""
        return Tool(self.name, self.title, self.description, self.input, self.run, output=self.output,
                    annotations=self.annotations, meta={**self.meta, **meta}, prepare=self.prepare, extra=self.extra)


class Context:
    """What a tool may know of its call: who asks, and whether somebody still waits.

    `client` is the clientInfo mapping ({} when the client gave none), `era` is legacy or modern,
    `version` the protocol version, `cancelled()` says that the client no longer wants the answer. `roots` are the
    client's roots where they came with the call (2026-07-28), else None: `Surface.rooted` has heard them.
    """

    __slots__ = ("cancelled", "client", "era", "roots", "version")

    def __init__(self, client=None, era="legacy", version="", cancelled=lambda: False, roots=None):
        self.client = client or {}
        self.era = era
        self.version = version
        self.cancelled = cancelled
        self.roots = roots


class Ask:
    """A tool's question for the human; the loop asks it in the way that the client can (mcp.md, Asking the human).

    `message` is what the dialog says, `form` its requestedSchema, `entry` the name of the pending
    entry (unique), `seconds` how long it may be answered. `waiting()` returns the Result for a
    client that can't be asked or did not answer, `accepted(content)` the Result of an accepted form
    (whatever the content, the client is not trusted to have checked it), `declined(at_once)` that of
    a no; `at_once` means that it came too fast to be a person's.
    """

    __slots__ = ("accepted", "declined", "entry", "form", "message", "seconds", "waiting")

    def __init__(self, entry, message, form, *, waiting, accepted, declined, seconds=1800):
        self.entry = entry
        self.message = message
        self.form = form
        self.waiting = waiting
        self.accepted = accepted
        self.declined = declined
        self.seconds = seconds


class Surface:
    """A set of tools with what the server says of itself; a surface subclasses it and fills in.

    `resources` is None or an object with `list(context)`, `templates(context)` (rows as the protocol
    wants them, newest fields included) and `read(context, uri)` -> list of contents, or None for an
    unknown uri. `prompts` is None or an object with `list(context)` and `get(context, name,
    arguments)` -> (description, text), None for an unknown name; it raises UsageError for bad
    arguments. `wants_roots` makes the loop ask a legacy client that declares them for its roots.
    """

    name = ""
    version = ""
    title = ""
    instructions = ""
    tools = ()
    resources = None
    prompts = None
    wants_roots = False

    def initialised(self, client):
        """Hear that a legacy client has finished its handshake; `client` is its clientInfo."""

    def asking_roots(self):
        """Hear that the client was asked for its roots; `rooted` follows, unless it never answers."""

    def rooted(self, roots):
        """Hear the client's roots: a list of {"uri", "name"?} mappings, [] when it has none."""

    def lane(self, name):
        """Return what calls of this tool stand in line for, None to run beside all others: a search after a save sees it."""
        return None

    def needs_roots(self, tool, arguments):
        """Tell whether a call can't do without the client's roots; a client of 2026-07-28 is asked for them each time."""
        return False

    def refused(self, tool, arguments, problem):
        """Return the Result for arguments that don't fit the schema; `problem` names the field."""
        return Result({}, problem, error=("ENG_USAGE", problem))

    def failed(self, tool, arguments, error):
        """Return the Result for an EngramError out of `run`."""
        return failure(error)

    def called(self):
        """Hear that a call or a read was answered."""

    def ending(self):
        """Hear that no more input comes: calls under way are finished, those that wait for others should give up soon."""

    def close(self):
        """Let go of what the surface holds open; the server ends now."""
