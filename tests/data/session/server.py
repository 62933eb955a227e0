"""A memory server for tests of its host, well-behaved or not; what it does stands in the JSON of argv[1].

tools      raw names it lists (default two)          pages     "same", "endless", "empty", "error": cursors gone wrong
noise      bytes written to stderr before each reply  garbage   lines that are not messages before each reply
stubborn   ignores SIGTERM and the end of its input   die       ends at this call number
exit       ends at once with this code               silent    answers no tools/call
change     lists other tools after the first call and says so
"""
import json
import os
import signal
import sys
import time

options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
if "exit" in options:
    sys.exit(options["exit"])
if options.get("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if options.get("once"):  # works the first time it is started, then no more
    try:
        os.close(os.open(options["once"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        sys.exit(3)
names = options.get("tools", ["mem_save", "mem_current_project"])
calls = 0


def send(message):
    if options.get("noise"):
        sys.stderr.write("n" * options["noise"])
        sys.stderr.flush()
    if options.get("garbage"):
        sys.stdout.write('banner\n[]\n{"jsonrpc":"2.0","id":999,"result":{}}\n{"jsonrpc":"2.0","id":"q","method":"ping"}\n{"id":null}\n\xff\n')
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed(params):
    tools = [{"name": name, "description": f"about {name}", "inputSchema": {"type": "object", "properties": {}}} for name in names]
    kind = options.get("pages")
    cursor = {"same": "again", "endless": params.get("cursor", "") + "x", "empty": None if "cursor" in params else "",
              "error": "broken"}.get(kind)
    return {"tools": [] if "cursor" in params else tools, **({"nextCursor": cursor} if cursor is not None else {})}


for line in sys.stdin:
    request = json.loads(line)
    method, params, number = request.get("method"), request.get("params") or {}, request.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                                       "serverInfo": {"name": "double", "version": "1"}}})
    elif method == "tools/list":
        if options.get("pages") == "error" and "cursor" in params:
            send({"id": number, "error": {"code": -32602, "message": "no such page"}})
        else:
            send({"id": number, "result": listed(params)})
    elif method == "tools/call":
        calls += 1
        if calls == options.get("die"):
            os._exit(1)
        if options.get("silent"):
            continue
        told = {"name": params["name"], "arguments": params["arguments"], "cwd": os.getcwd(), "pid": os.getpid(), "env": dict(os.environ)}
        if params["name"] == "fail":
            send({"id": number, "result": {"content": [{"type": "text", "text": "it failed"}], "isError": True}})
        else:
            send({"id": number, "result": {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}})
        if options.get("change") and calls == 1:
            names = ["mem_search"]
            send({"method": "notifications/tools/list_changed"})
while options.get("stubborn"):
    time.sleep(0.05)
