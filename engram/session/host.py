"""A host for harnesses: each agent gets a memory server in its own folder, and nobody else's tools.

Composes children, names and callbacks. Every agent is one `_Agent` with one task that brings its tools up and
keeps them up; stopping it cancels that task, withdraws what is registered and closes the child, in this order. Rules
P4 to P16 of mem-tools.md and its weak points.
"""
from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os

from engram.errors import EngramError, NotFound
from engram.session import guide
from engram.session.child import ChildError, ToolFailed, open_child
from engram.session.config import SessionConfig, child_environment, is_credential, resolve
from engram.session.names import definitions, render


class CallResult:
    """What a tool answered: `content` (blocks), `structured` (or None), `text` (for a model)."""

    __slots__ = ("content", "structured", "text")

    def __init__(self, raw, result):
        self.content = result.get("content") if isinstance(result.get("content"), list) else []
        self.structured = result.get("structuredContent")
        self.text = render(raw, {"content": self.content, "structuredContent": self.structured})


class SessionHost:
    """Serves agents until it is closed.

    `on_register(agent_id, definition)` and `on_unregister(agent_id, definition)` are called for each tool, one after
    the other, and may be coroutines; a failure half-way through a registration withdraws what was registered.
    `env` is the environment that children are made from (default: the process's own).
    """

    def __init__(self, config=None, *, on_register=None, on_unregister=None, env=None, log=None):
        self.config = config or SessionConfig()
        self.on_register = on_register
        self.on_unregister = on_unregister
        self.log = log or logging.getLogger("engram.session")
        self._env = os.environ if env is None else env
        self._agents = {}
        self._leaving = {}
        self._pool = _Pool(self)
        self._words = None
        self._open = False

    async def __aenter__(self):
        self._words, warning = resolve(self.config, self._env)
        if warning:
            self.log.warning("engram session: %s", warning)
        dropped = sorted(name for name, value in self.config.env.items() if is_credential(name, value))
        if dropped:
            self.log.warning("engram session: not given to children, since they look like credentials: %s", ", ".join(dropped))
        self._open = True
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        """Stop every agent and every child; when this returns no process of ours is left."""
        self._open = False
        await asyncio.gather(*(self.stop(agent_id) for agent_id in list(self._agents)))
        await asyncio.gather(*(agent.stop() for agent in list(self._leaving.values())))
        await self._pool.close()

    @property
    def protocol(self):
        """The Memory Protocol as a prompt section (name, order, text); None while no agent has the tools."""
        for agent in self._agents.values():
            if agent.definitions:
                return self.protocol_for(agent.id)
        return None

    def protocol_for(self, agent_id):
        """The section for one agent, which names its tools; None when it has none."""
        return guide.section({tool.raw: tool.name for tool in self.tools(agent_id)})

    async def start(self, agent_id, cwd):
        """Give an agent its memory tools. Returns whether it has them; the reason is logged as one warning.

        Not retried (P15). A second start of an agent that is there changes nothing and waits for the first.
        """
        if not self._open:
            raise ChildError("the session host is not open.")
        agent = self._agents.get(agent_id)
        if agent is None:
            if not isinstance(cwd, (str, os.PathLike)) or not os.fspath(cwd).strip():
                self.log.debug("engram session: agent %s has no working folder, so no memory tools", agent_id)
                return False
            if self._words is None:
                self.log.debug("engram session: agent %s gets no memory tools: no program", agent_id)
                return False
            agent = self._agents[agent_id] = _Agent(self, agent_id, os.path.abspath(os.fspath(cwd)), self._leaving.get(agent_id))
        return await asyncio.shield(agent.ready)

    async def stop(self, agent_id):
        """Withdraw an agent's tools and end its child; an unknown agent is fine."""
        agent = self._agents.pop(agent_id, None)
        if agent is not None:
            self._leaving[agent_id] = agent
            await agent.stop()

    def tools(self, agent_id):
        """Return the Definitions that are registered for an agent."""
        agent = self._agents.get(agent_id)
        return list(agent.definitions) if agent else []

    async def call(self, agent_id, name, arguments=None, *, timeout=None):
        """Call a tool by its public name and return a CallResult.

        While the agent's server is started again, the call waits for it, within `timeout` seconds (default: the
        config's). Raises NotFound, ToolFailed, ToolTimeout, ChildError.
        """
        agent = self._agents.get(agent_id)
        if agent is None:
            raise NotFound(f"agent {agent_id} has no memory server.")
        raw = agent.raw_name(name)
        timeout = self.config.timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        child = await agent.running(timeout)
        result = await child.call(raw, arguments, timeout=max(0.001, deadline - loop.time()))
        made = CallResult(raw, result)
        if result.get("isError"):
            raise ToolFailed(made.text, made)
        return made

    async def _callback(self, callback, agent_id, definition):
        if callback is not None:
            answer = callback(agent_id, definition)
            if inspect.isawaitable(answer):
                await answer

    async def _open_child(self, cwd):
        return await open_child(self._words, cwd, child_environment(self.config, self._env), log=self.log, stderr=self.config.stderr,
                                grace=self.config.grace)


class _Agent:
    """One agent: its child, the tools registered for it, and the task that keeps both."""

    def __init__(self, host, id, cwd, predecessor):
        self.host = host
        self.id = id
        self.cwd = cwd
        self.child = None
        self.definitions = []
        self.ready = asyncio.get_running_loop().create_future()
        self._up = asyncio.Event()
        self._relist = asyncio.Event()
        self._gone = None
        self._predecessor = predecessor  # of the same id, on its way out: its tools go before ours come
        self._task = asyncio.ensure_future(self._run())

    def raw_name(self, name):
        for definition in self.definitions:
            if name == definition.name:
                return definition.raw
        raise NotFound(f"agent {self.id} has no tool {name}.")

    async def running(self, timeout):
        """Return the child once it runs. Raises ChildError when it doesn't within `timeout` seconds."""
        if self.child is not None and self.child.ended.is_set():
            self._up.clear()  # seen here before the task that starts it again woke up
        if not self._up.is_set():
            up = asyncio.ensure_future(self._up.wait())
            try:
                await asyncio.wait({up, self._task}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                up.cancel()
        if not self._up.is_set():
            raise ChildError(f"the memory server of agent {self.id} is not running.")
        return self.child

    async def stop(self):
        """Cancel whatever is under way, then withdraw and close; nothing of this agent happens afterwards."""
        if self._gone is None:
            self._gone = asyncio.ensure_future(self._stop())
        await asyncio.shield(self._gone)

    async def _stop(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._leave()

    async def _leave(self):
        self._up.clear()
        await self._withdraw(self.definitions)
        child, self.child = self.child, None
        if child is not None:
            child.watchers.discard(self._relist.set)
            await self.host._pool.release(self.cwd, child)
        if not self.ready.done():
            self.ready.set_result(False)
        if self.host._leaving.get(self.id) is self:
            del self.host._leaving[self.id]

    async def _run(self):
        host, config = self.host, self.host.config
        if self._predecessor is not None:
            await self._predecessor.stop()
            self._predecessor = None
        try:
            await self._connect()
        except EngramError as error:
            await self._fail(error)
            return
        host.log.info("engram session: agent %s has %d memory tools", self.id, len(self.definitions))
        self.ready.set_result(True)
        loop, tries = asyncio.get_running_loop(), 0
        since = loop.time()
        while True:
            if await self._watch():
                continue
            self._up.clear()
            if loop.time() - since >= config.fresh_after:
                tries = 0
            reason = "the memory server ended"
            await self._drop_child()
            while True:
                if tries >= config.tries:
                    await self._fail(ChildError(f"{reason}; given up after {tries} tries."))
                    return
                pause = min(config.backoff * 2 ** tries, config.backoff_most)
                tries += 1
                host.log.warning("engram session: agent %s: %s; try %d of %d in %g s", self.id, reason, tries, config.tries, pause)
                await asyncio.sleep(pause)
                try:
                    await self._connect()
                    break
                except EngramError as error:
                    reason = str(error)
                    await self._drop_child()
            since = loop.time()

    async def _connect(self):
        """Get a child, read its whole list, then make the list the agent's generation of tools."""
        timeout = self.host.config.connect_timeout
        self.child = await self.host._pool.take(self.cwd, timeout)
        self.child.watchers.add(self._relist.set)
        await self._generation(await self.child.list_tools(timeout=timeout))
        self._up.set()

    async def _generation(self, tools):
        wanted, skipped = definitions(self.host.config.server_name, tools)
        for raw, reason in skipped:
            self.host.log.debug("engram session: agent %s: tool %r left out: %s", self.id, raw, reason)
        if len(wanted) == len(self.definitions) and all(a.same_as(b) for a, b in zip(wanted, self.definitions, strict=True)):
            return
        await self._withdraw(self.definitions)
        for definition in wanted:
            try:
                await self.host._callback(self.host.on_register, self.id, definition)
            except asyncio.CancelledError:
                self.definitions.append(definition)  # it may be registered or not: withdrawing it is right in both cases
                raise
            except Exception as error:  # the harness's own code: whatever it raises, nothing may stay half registered
                await self._withdraw(self.definitions)
                raise ChildError(f"registering {definition.name} failed: {error}.") from error
            self.definitions.append(definition)

    async def _withdraw(self, registered):
        self.definitions = []
        for definition in reversed(registered):
            try:
                await self.host._callback(self.host.on_unregister, self.id, definition)
            except Exception as error:  # noqa: BLE001 - the harness's own code: the others must still go
                self.host.log.warning("engram session: agent %s: withdrawing %s failed: %s", self.id, definition.name, error)

    async def _watch(self):
        """Wait until the child ends (False) or its list changed and was read again (True)."""
        ended, changed = asyncio.ensure_future(self.child.ended.wait()), asyncio.ensure_future(self._relist.wait())
        try:
            await asyncio.wait({ended, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel(), changed.cancel()
        if self.child.ended.is_set():
            return False
        self._relist.clear()
        try:
            await self._generation(await self.child.list_tools(timeout=self.host.config.connect_timeout))
        except EngramError as error:
            self.host.log.warning("engram session: agent %s: the changed tool list could not be used: %s", self.id, error)
            return not isinstance(error, ChildError) or bool(self.definitions)
        return True

    async def _drop_child(self):
        child, self.child = self.child, None
        if child is not None:
            await self.host._pool.discard(self.cwd, child)

    async def _fail(self, error):
        self.host.log.warning("engram session: agent %s gets no memory tools: %s", self.id, error)
        self._up.clear()
        await self._drop_child()
        await self._withdraw(self.definitions)
        if self.host._agents.get(self.id) is self:
            del self.host._agents[self.id]
        if not self.ready.done():
            self.ready.set_result(False)


class _Pool:
    """Children by (folder, settings): one for each agent, or shared ones when the config asks for a pool."""

    def __init__(self, host):
        self.host = host
        self._shared = {}
        self._closing = set()

    async def take(self, cwd, timeout):
        """Return a connected child for a folder. Raises ChildError."""
        if not self.host.config.pool:
            return await self._fresh(cwd, timeout)
        key = self._key(cwd)
        row = self._shared.get(key)
        if row is None or row.is_over():
            await self._make_room()
            row = self._shared[key] = _Shared(asyncio.ensure_future(self._fresh(cwd, timeout)))
        row.users += 1
        row.keep()
        try:
            return await asyncio.shield(row.child)
        except BaseException:
            row.users -= 1
            if row.users <= 0 and self._shared.get(key) is row:
                self._retire(key)
            raise

    async def release(self, cwd, child):
        """An agent no longer needs its child: it ends, or stays for others and ends when idle for long."""
        row = self._shared.get(self._key(cwd)) if self.host.config.pool else None
        if row is None or not row.holds(child):
            await child.close()
            return
        row.users -= 1
        if row.users <= 0:
            row.end_later(self.host.config.idle, lambda: self._retire(self._key(cwd)))

    async def discard(self, cwd, child):
        """A child that died: nobody gets it any more."""
        key = self._key(cwd)
        row = self._shared.get(key)
        if row is not None and row.holds(child):
            del self._shared[key]
            row.keep()
        await child.close()

    async def close(self):
        """End every child."""
        rows, self._shared = list(self._shared.values()), {}
        for row in rows:
            row.keep()
            if not row.child.done():
                row.child.cancel()
        await asyncio.gather(*(row.close() for row in rows), *self._closing, return_exceptions=True)

    async def _fresh(self, cwd, timeout):
        child = await self.host._open_child(cwd)
        try:
            await child.initialize(timeout=timeout)
        except BaseException:
            await child.close()
            raise
        return child

    async def _make_room(self):
        if len(self._shared) < self.host.config.pool:
            return
        for key, row in list(self._shared.items()):
            if row.users <= 0:
                del self._shared[key]
                row.keep()
                await row.close()
                return
        raise ChildError(f"all {self.host.config.pool} pooled memory servers are in use.")

    def _retire(self, key):
        row = self._shared.pop(key, None)
        if row is not None:
            task = asyncio.ensure_future(row.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _key(self, cwd):
        return os.path.realpath(cwd), json.dumps([self.host._words, self.host.config.env], sort_keys=True)


class _Shared:
    """A pooled child (a task that gives it), how many agents use it, and when it ends if nobody does."""

    def __init__(self, child):
        self.child = child
        self.users = 0
        self._timer = None

    def is_over(self):
        done = self.child.done()
        return done and (self.child.cancelled() or self.child.exception() is not None or self.child.result().ended.is_set())

    def holds(self, child):
        return self.child.done() and not self.child.cancelled() and self.child.exception() is None and self.child.result() is child

    def keep(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_later(self, seconds, retire):
        self.keep()
        self._timer = asyncio.get_running_loop().call_later(seconds, retire)

    async def close(self):
        try:
            child = await self.child
        except (EngramError, asyncio.CancelledError):
            return
        await child.close()
