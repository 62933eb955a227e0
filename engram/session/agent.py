"""One agent of a session host: its child, the tools registered for it, and the task that keeps both.

Must not know the other agents, but for a predecessor of the same id. The task brings the tools up and keeps them up; stopping
cancels it, withdraws what is registered and lets the child go, in this order.
"""
from __future__ import annotations

import asyncio

from engram.errors import EngramError, NotFound
from engram.session.child import ChildError
from engram.session.names import definitions


class Agent:
    """`ready` is a future that tells whether the agent has its tools; `definitions` are those registered."""

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
            await self.host.pool.release(self.cwd, child)
        if not self.ready.done():
            self.ready.set_result(False)
        self.host.forget(self)

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
        self.child = await self.host.pool.take(self.cwd, timeout)
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
                await self.host.callback(self.host.on_register, self.id, definition)
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
                await self.host.callback(self.host.on_unregister, self.id, definition)
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
            await self.host.pool.discard(self.cwd, child)

    async def _fail(self, error):
        self.host.log.warning("engram session: agent %s gets no memory tools: %s", self.id, error)
        self._up.clear()
        await self._drop_child()
        await self._withdraw(self.definitions)
        self.host.forget(self)
        if not self.ready.done():
            self.ready.set_result(False)
