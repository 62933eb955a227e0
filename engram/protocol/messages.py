"""One line of JSON-RPC: bytes to a message or a fault, and a message to bytes.

Must not know methods or eras. What can't be read is a fault with the code and, where one can be
read, the id that the reply should carry (mcp.md, Two eras in one process).
"""
from __future__ import annotations

import json

from engram.protocol.framing import TOO_LONG

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

# Python refuses to read integers of more than 4300 digits, and prints none that long either.
_DIGITS = 4000
_BOM = b"\xef\xbb\xbf"

NO_ID = object()  # the reply leaves the id out: none could be read


class Fault:
    """What is wrong with a line: error code, message, and the id of the reply (None: null, NO_ID: left out)."""

    __slots__ = ("code", "id", "message")

    def __init__(self, code, message, id=NO_ID):
        self.code = code
        self.message = message
        self.id = id


class _Unclear:
    """Stands for a value that has no safe reading, such as an integer of a million digits."""


_UNCLEAR = _Unclear()


def is_id(value):
    """Tell whether a value may be the id of a request: a string or an integer, and no bool."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


class _Reader:
    """The hooks of one line's decoding, which note what plain JSON decoding would pass over."""

    def __init__(self):
        self.problem = None
        self._decode = json.JSONDecoder(object_pairs_hook=self._object, parse_int=self._integer,
                                        parse_float=self._float, parse_constant=self._constant).decode

    def read(self, text):
        return self._decode(text)

    def _object(self, pairs):
        made = dict(pairs)
        if len(made) != len(pairs):
            seen = set()
            for key, _ in pairs:
                if key in seen:
                    made[key] = _UNCLEAR
                    self.problem = f"the key {key[:80]!a} occurs twice in one object"
                seen.add(key)
        return made

    def _integer(self, digits):
        if len(digits) > _DIGITS:
            self.problem = f"an integer of {len(digits)} digits is too large"
            return _UNCLEAR
        return int(digits)

    def _float(self, digits):
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            self.problem = f"the number {digits[:40]} is too large"
            return _UNCLEAR
        return number

    def _constant(self, name):
        raise ValueError(f"{name} is not JSON")


def read(line):
    """Read one line (bytes, or TOO_LONG): the JSON value, or a Fault.

    A byte order mark before the value is passed over. Duplicate keys and numbers without a safe
    reading are a fault under the message's own id, so that the sender learns of it.
    """
    if line is TOO_LONG:
        return Fault(PARSE_ERROR, "Parse error: the line is too long", None)
    if line.startswith(_BOM):
        line = line[len(_BOM):]
    reader = _Reader()
    try:
        value = reader.read(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Fault(PARSE_ERROR, f"Parse error: not UTF-8 at byte {error.start}", None)
    except RecursionError:
        return Fault(PARSE_ERROR, "Parse error: nested too deeply", None)
    except ValueError as error:
        return Fault(PARSE_ERROR, f"Parse error: {str(error)[:200]}", None)
    if reader.problem:
        id = value.get("id") if isinstance(value, dict) else None
        return Fault(INVALID_REQUEST, f"Invalid request: {reader.problem}", id if is_id(id) else NO_ID)
    return value


def write(message):
    """Return the line of a message: compact JSON in ASCII, which no code page or lone surrogate can break."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def result(id, value):
    """Make a result response."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id, code, message, data=None):
    """Make an error response; `id` is NO_ID where it is left out."""
    made = {"jsonrpc": "2.0"}
    if id is not NO_ID:
        made["id"] = id
    made["error"] = {"code": code, "message": message}
    if data is not None:
        made["error"]["data"] = data
    return made
