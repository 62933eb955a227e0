"""Any bytes into the server: it neither crashes nor hangs, and prints nothing but JSON-RPC (quality.md)."""

from __future__ import annotations

import json
import subprocess
import threading

from tests.torture.place import HELLO, Place

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "trial", "version": "1"},
}
METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "logging/setLevel",
    "completion/complete",
    "engram_load",
    "engram_status",
    "",
    "tools/",
    "x" * 500,
    "tools/call\n",
]
TOOLS = {
    "engram": [
        "engram_load",
        "engram_route",
        "engram_search",
        "engram_verify",
        "engram_status",
        "engram_save",
        "engram_commit",
        "engram_save_session",
        "engram_note",
        "engram_set_rule_variant",
    ],
    "mem": [
        "mem_save",
        "mem_search",
        "mem_context",
        "mem_get_observation",
        "mem_update",
        "mem_delete",
        "mem_session_start",
        "mem_timeline",
        "mem_stats",
        "mem_judge",
        "mem_current_project",
        "mem_save_prompt",
        "mem_capture_passive",
        "mem_suggest_topic_key",
    ],
}
WORDS = [
    "query",
    "id",
    "text",
    "limit",
    "scope",
    "approval_token",
    "approve",
    "title",
    "content",
    "project",
    "name",
    "arguments",
    "uri",
    "cursor",
    "type",
    "budget_tokens",
    "topic_key",
    "session_id",
    "observation_id",
    "variant",
    "requestState",
    "inputResponses",
]
STRINGS = [
    "",
    " ",
    "x",
    "workspace",
    "all",
    "rule",
    "../../etc/passwd",
    "\x00",
    "\u202e",
    "\ud83d\ude00",
    "é",
    "設定",
    "a" * 5000,
    '"',
    "'",
    "--",
    "%s",
    "{}",
    "engram://index",
    "engram://memory/../x",
    "NaN",
    "TYPE: rule | TEXT: x",
    "\U000e0041",
    "OR AND NOT",
    "*",
    "\\",
    "\u2028",
]
NUMBERS = [0, -1, 1, 5, 1.5, -0.0, 1e308, 10**30, -(10**18), True, False, None, 2**53, 50]
BATCH = 500


def run(trial):
    lost, lines = [], 0
    wanted = trial.size(3000, 100_000)
    with Place(trial.built) as place:
        place.save("The fuzzed store holds a lantern.")
        number = 0
        while lines < wanted:
            surface = ("engram", "mem")[number % 2]
            batch = [line(trial.dice, surface) for _ in range(BATCH)]
            lost += [f"batch {number} ({surface}): {problem}" for problem in feed(place, surface, batch)]
            lines, number = lines + BATCH, number + 1
            if len(lost) > 20:
                break
        if place.run("verify", code=None).returncode or "lantern" not in place.run("load", "the lantern").stdout:
            lost.append("the store does not serve its memory any more")
    return f"{lines:,} lines in {number} servers", lost


def value(dice, depth=0):
    kind = dice.random()
    if kind < 0.4:
        return dice.choice(STRINGS)
    if kind < 0.65 or depth > 3:
        return dice.choice(NUMBERS)
    if kind < 0.8:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    return {dice.choice(WORDS): value(dice, depth + 1) for _ in range(dice.randrange(4))}


def message(dice, surface):
    """Return one message: mostly plausible, wrong somewhere."""
    made = {"jsonrpc": "2.0", "id": dice.randrange(10**6), "method": dice.choice(METHODS)}
    params = {}
    if dice.random() < 0.6:
        made["method"] = "tools/call"
        params = {
            "name": dice.choice(TOOLS[surface]),
            "arguments": {dice.choice(WORDS): value(dice) for _ in range(dice.randrange(4))},
        }
    elif dice.random() < 0.7:
        params = {dice.choice(WORDS): value(dice) for _ in range(dice.randrange(4))}
    if dice.random() < 0.4:
        params["_meta"] = dict(META)
        if dice.random() < 0.3:
            params["_meta"][dice.choice(list(META))] = value(dice)
    if params or dice.random() < 0.5:
        made["params"] = params
    if dice.random() < 0.15:
        made[dice.choice(["jsonrpc", "id", "method", "params", "result", "error", "extra"])] = value(dice)
    if dice.random() < 0.05:
        made.pop(dice.choice(list(made)))
    return made


def line(dice, surface):
    """Return one line without its end, as bytes."""
    kind = dice.random()
    if kind < 0.04:
        data = dice.randbytes(dice.randrange(200))
    elif kind < 0.08:
        data = json.dumps([message(dice, surface) for _ in range(dice.randrange(4))]).encode()
    elif kind < 0.09:
        data = b"[" * dice.randrange(1, 20000)
    else:
        data = json.dumps(message(dice, surface), ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    if dice.random() < 0.25 and data:  # a mutation: bytes changed, dropped, doubled
        data = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(data))
            action = dice.randrange(3)
            if action == 0:
                data[at] = dice.randrange(256)
            elif action == 1:
                del data[at : at + dice.randrange(1, 8)]
            else:
                data[at:at] = data[max(0, at - 5) : at]
            if not data:
                break
        data = bytes(data)
    return data.replace(b"\n", b" ")


def feed(place, surface, lines):
    """Give a fresh server these lines and a last ping; return what was wrong."""
    hello = [json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode()]
    last = [b'{"jsonrpc":"2.0","id":"last","method":"ping"}']
    server = subprocess.Popen(
        [*place.command, "mcp", "--surface", surface],
        cwd=place.workspace,
        env=place.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    timer = threading.Timer(120, server.kill)
    timer.start()
    try:
        out, err = server.communicate(b"\n".join(hello + lines + last) + b"\n")
    finally:
        timer.cancel()
    problems = []
    if server.returncode != 0:
        problems.append(f"exit {server.returncode}")
    if b"Traceback" in err:
        problems.append(f"traceback: {err[-300:].decode('utf-8', 'replace')}")
    ids = set()
    for row in out.split(b"\n")[:-1]:
        try:
            answer = json.loads(row.decode("utf-8"))
            for one in answer if isinstance(answer, list) else [answer]:
                if one.get("jsonrpc") != "2.0" or not (
                    "method" in one or ("result" in one) != ("error" in one) and ("id" in one or "error" in one)
                ):
                    problems.append(f"not JSON-RPC: {row[:200]!r}")
                if "error" in one and one["error"].get("code") == -32603:
                    problems.append(f"internal error: {row[:300]!r}")
                ids.add(repr(one.get("id")))
        except (ValueError, AttributeError) as error:
            problems.append(f"not JSON: {row[:200]!r} ({error})")
    if "'last'" not in ids:
        problems.append("the last ping has no answer")
    return problems
