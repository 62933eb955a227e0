"""One MCP server as a child process: the wire, requests and answers, and an end that leaves nothing behind.

Must not know agents or registration. Legacy era, newline-delimited JSON on the child's stdin and stdout. The child
leads a process group of its own, which is killed as a whole: a wrapper's grandchildren die with it (SH-01).
"""
from __future__ import annotations

import asyncio
import os
import signal
import sys

from engram import __version__
from engram.errors import EngramError
from engram.protocol import framing, messages

VERSION = "2025-11-25"
CLIENT = {"name": "dsh-engram-session", "version": __version__}
MOST_PAGES = 100
CHUNK = 65536
LOG_LINE = 2000


class ChildError(EngramError):
    """The server could not be started, ended, or broke the protocol."""

    code = "ENG_CHILD"


class ToolFailed(EngramError):
    """The tool ran and said that it failed; `result` is what it answered."""

    code = "ENG_TOOL_FAILED"

    def __init__(self, message, result=None):
        super().__init__(message)
        self.result = result


class ToolTimeout(EngramError):
    """No answer in time; the server was told that nobody waits any more."""

    code, exit_code = "ENG_TOOL_TIMEOUT", 5


class Child:
    """A running server. `ended` is an asyncio.Event; each of `watchers` is called when its tool list changed.

    Made by `open_child`. Requests of one child have ids of their own, so children never mix (SH-07).
    """

    def __init__(self, process, log, grace):
        self.process = process
        self.log = log
        self.grace = grace
        self.ended = asyncio.Event()
        self.watchers = set()
        self._waiting = {}
        self._next_id = 0
        self._closing = None
        self._tasks = [asyncio.ensure_future(self._read())]
        if process.stderr is not None:
            self._tasks.append(asyncio.ensure_future(self._drain()))

    async def request(self, method, params=None, *, timeout):
        """Send a request and return its result. Raises ToolTimeout, ChildError, ToolFailed (a JSON-RPC error)."""
        if self.ended.is_set() or self._closing:
            raise ChildError("the memory server is not running.")
        self._next_id += 1
        number = self._next_id
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params is not None else {})})
            try:
                return await asyncio.wait_for(answer, timeout)
            except TimeoutError:
                self._cancel(number, "timed out")
                raise ToolTimeout(f"{method} was not answered within {timeout:g} s.") from None
            except asyncio.CancelledError:
                self._cancel(number, "cancelled by the caller")
                raise
        finally:
            self._waiting.pop(number, None)

    async def initialize(self, *, timeout):
        """Shake hands. Returns the server's answer."""
        answer = await self.request("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": CLIENT}, timeout=timeout)
        if not isinstance(answer, dict) or not isinstance(answer.get("protocolVersion"), str):
            raise ChildError("the server's answer to initialize is not one.")
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def list_tools(self, *, timeout):
        """Return the tools of all pages. Raises ChildError for a cursor that comes back, or after 100 pages."""
        tools, seen, params = [], set(), {}
        for _ in range(MOST_PAGES):
            page = await self.request("tools/list", params, timeout=timeout)
            rows = page.get("tools") if isinstance(page, dict) else None
            if not isinstance(rows, list):
                raise ChildError("the server's answer to tools/list has no list of tools.")
            tools += rows
            cursor = page.get("nextCursor")
            if cursor is None:  # an empty string is a cursor like any other
                return tools
            if not isinstance(cursor, str) or cursor in seen:
                raise ChildError("the server's tool list never ends: a page's cursor came a second time.")
            seen.add(cursor)
            params = {"cursor": cursor}
        raise ChildError(f"the server's tool list has more than {MOST_PAGES} pages.")

    async def call(self, raw, arguments, *, timeout):
        """Call a tool by its raw name and return its result. Arguments that are no mapping count as none (P13)."""
        result = await self.request("tools/call", {"name": raw, "arguments": arguments if isinstance(arguments, dict) else {}},
                                    timeout=timeout)
        if not isinstance(result, dict):
            raise ChildError("the server's answer to tools/call is not an object.")
        return result

    async def close(self):
        """End the child: its input closes; SIGTERM after `grace`; SIGKILL after as long again. Idempotent."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self):
        try:
            self.process.stdin.close()
        except (OSError, RuntimeError):
            pass
        for signum in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            if signum is not None:
                self._signal(signum)
            try:
                await asyncio.wait_for(self.process.wait(), self.grace)
                break
            except TimeoutError:
                continue
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))  # what a wrapper started and left behind
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end()
        transport = getattr(self.process, "_transport", None)
        if transport is not None:  # or its pipes stay open until the collector finds them
            transport.close()

    def _signal(self, signum):
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signum)
            else:
                self.process.send_signal(signum)
        except (ProcessLookupError, PermissionError):
            pass

    def _send(self, message):
        try:
            line = messages.write(message)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolFailed(f"the arguments can't be written as JSON: {error}.") from None
        try:
            self.process.stdin.write(line)
        except (OSError, RuntimeError) as error:
            raise ChildError(f"the memory server does not take requests: {error}.") from None

    def _cancel(self, number, reason):
        try:
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": reason}})
        except ChildError:
            pass

    async def _read(self):
        lines = framing.Lines()
        try:
            while True:
                data = await self.process.stdout.read(CHUNK)
                for line in lines.feed(data) if data else lines.end():
                    self._receive(line)
                if not data:
                    return
        except (OSError, ValueError) as error:
            self.log.debug("reading from the memory server failed: %s", error)
        finally:
            self._end()

    def _receive(self, line):
        """Take one line. What is not JSON-RPC, and answers nobody waits for, are skipped (hostile servers)."""
        message = messages.read(line)
        if not isinstance(message, dict):
            self.log.debug("the memory server wrote a line that is not a message")
            return
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if "id" in message:
                self._answer(method, number)
            elif method == "notifications/tools/list_changed":
                for watcher in self.watchers:
                    watcher()
            return
        if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 16:
            number = int(number)
        waiting = self._waiting.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if waiting is None or waiting.done():
            return
        if "result" in message:
            waiting.set_result(message["result"])
        else:
            error = message.get("error") if isinstance(message.get("error"), dict) else {}
            waiting.set_exception(ToolFailed(f"the memory server refused the request: {error.get('message', 'no reason given')} "
                                             f"(code {error.get('code')})."))

    def _answer(self, method, number):
        reply = {"result": {}} if method == "ping" else {"error": {"code": -32601, "message": f"Method not found: {method}"}}
        try:
            self._send({"jsonrpc": "2.0", "id": number, **reply})
        except ChildError:
            pass

    async def _drain(self):
        """Read the child's stderr so that it never blocks (SH-02), and log the beginning of each piece."""
        while True:
            data = await self.process.stderr.read(CHUNK)
            if not data:
                return
            self.log.debug("memory server: %s", data[:LOG_LINE].decode("utf-8", "replace").rstrip())

    def _end(self):
        self.ended.set()
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(ChildError("the memory server ended before it answered."))
        self._waiting.clear()


async def open_child(words, cwd, env, *, log, stderr="inherit", grace=2.0):
    """Start a server in a folder. Raises ChildError with a reason that names the folder or the program."""
    if not os.path.isdir(cwd):
        raise ChildError("there is no such folder.", file=cwd)
    try:
        process = await asyncio.create_subprocess_exec(
            *words, cwd=cwd, env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if stderr == "log" else None, start_new_session=sys.platform != "win32")
    except (OSError, ValueError) as error:
        raise ChildError(f"the memory server {words[0]} can't be started: {getattr(error, 'strerror', None) or error}.") from None
    return Child(process, log, grace)
