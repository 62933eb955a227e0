"""Generated and mutated JSON-RPC lines, both eras mixed, for trials: the same dice give the same lines."""
from __future__ import annotations

import json

from tests.server.stub import NAMESPACE, initialize, modern, request

METHODS = ("initialize", "ping", "tools/list", *["tools/call"] * 8, "resources/list", "resources/templates/list", "resources/read",
           "prompts/list", "prompts/get", "server/discover", "subscriptions/listen", "logging/setLevel", "completion/complete",
           "engram_load", "echo", "nope")
ODD = (None, True, False, 0, -1, 1.5, 2 ** 53 + 1, 10 ** 40, "", "x", "\ud800", "\0", "日本語 🚀", [], {}, [[]],
       {"a": {"b": []}}, "x" * 3000)
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01")
CAPABILITIES = ({}, {"elicitation": {}}, {"elicitation": {"form": {}, "url": {}}, "roots": {}}, {"elicitation": {"url": {}}})
ACTIONS = ({"action": "accept", "content": {"c1": True}}, {"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, {}, None, [])


class Lines:
    """Makes lines with `dice`; `calls` are (tool name, arguments) that may succeed, `uris` what may be read."""

    def __init__(self, dice, calls, uris):
        self.dice, self.calls, self.uris = dice, calls, uris

    def line(self):
        """Return one line without its line end."""
        kind = self.dice.random()
        if kind < 0.04:
            return bytes(self.dice.randrange(256) for _ in range(self.dice.randrange(1, 80))).replace(b"\n", b" ") or b"x"
        message = [self.message() for _ in range(self.dice.randrange(4))] if kind < 0.1 else self.message()
        if kind < 0.4:
            message = json.loads(json.dumps(message))  # what is bent must not be shared with the tables
            self.bend(message)
        line = json.dumps(message, ensure_ascii=self.dice.random() < 0.9).encode("utf-8", "surrogatepass")
        return self.broken(line) if kind > 0.85 else line

    def message(self):
        dice, id = self.dice, self.dice.choice((self.dice.randrange(1000), f"s{self.dice.randrange(1000)}"))
        kind = dice.random()
        if kind < 0.06:
            return initialize(dice.choice(VERSIONS), dice.choice(CAPABILITIES), id)
        if kind < 0.1:
            names = ("notifications/initialized", "notifications/roots/list_changed", "notifications/x")
            return {"jsonrpc": "2.0", "method": dice.choice(names)}
        if kind < 0.14:
            return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        if kind < 0.22:
            return {"jsonrpc": "2.0", "id": f"engram-{dice.randrange(1, 40)}", **dice.choice((
                {"result": dice.choice(ACTIONS)}, {"error": {"code": -1, "message": "no"}}))}
        method = dice.choice(METHODS)
        params = {}
        if method == "tools/call":
            params["name"], params["arguments"] = dice.choice(self.calls)
            if dice.random() < 0.2:
                params |= {"requestState": dice.choice(("forged", "v1.e30.AAAA")), "inputResponses": {"approval": dice.choice(ACTIONS)}}
        elif method == "resources/read":
            params["uri"] = dice.choice(self.uris)
        elif method == "prompts/get":
            params["name"] = "propose"
        if dice.random() < 0.5:
            made = modern(id, method, dice.choice(CAPABILITIES), **params)
            if dice.random() < 0.1:
                made["params"]["_meta"].pop(NAMESPACE + dice.choice(("protocolVersion", "clientCapabilities", "clientInfo")))
            return made
        return request(id, method, **params)

    def bend(self, value):
        """Change something somewhere in a JSON value."""
        while isinstance(value, (dict, list)) and value:
            key = self.dice.choice(list(value)) if isinstance(value, dict) else self.dice.randrange(len(value))
            if not isinstance(value[key], (dict, list)) or not value[key] or self.dice.random() < 0.4:
                if isinstance(value, dict) and self.dice.random() < 0.3:
                    del value[key]
                else:
                    value[key] = self.dice.choice(ODD)
                return
            value = value[key]

    def broken(self, line):
        """Cut, double, swap or insert bytes."""
        at, data = self.dice.randrange(len(line) + 1), bytearray(line)
        kind = self.dice.randrange(5)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at:at] = data[:at]
        elif kind == 2 and at < len(data):
            data[at] = self.dice.randrange(256)
        elif kind == 3:
            data[at:at] = self.dice.choice((b"\xef\xbb\xbf", b"\0", b"\xff", b"NaN", b"1e999", b"9" * 5000, b"[" * 2000, b'"',
                                            b"\\u", b"\r"))
        else:
            del data[at:at + self.dice.randrange(5)]
        return bytes(data).replace(b"\n", b" ") or b"x"


def sound(message):
    """Return what is wrong with a message that a server sent, or None."""
    if isinstance(message, list):
        return next((found for item in message if (found := sound(item))), None) if message else "an empty batch"
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "not a message"
    known = {"jsonrpc", "id", "method", "params", "result", "error"}
    if sum(key in message for key in ("method", "result", "error")) != 1 or set(message) - known:
        return "not one kind of message"
    if "error" in message and not (isinstance(message["error"].get("code"), int) and isinstance(message["error"].get("message"), str)):
        return "not an error"
    return None
