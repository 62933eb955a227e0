"""Children by (folder, settings): one for each agent, or shared ones when the config asks for a pool.

Must not know agents or tools.
"""
from __future__ import annotations

import asyncio
import json
import os

from engram.errors import EngramError
from engram.session.child import ChildError


class Pool:
    """Children by (folder, settings): one for each agent, or shared ones when the config asks for a pool."""

    def __init__(self, config, words, open_child):
        """`words` start a server; `open_child(cwd)` gives a Child that is not connected yet."""
        self.config = config
        self.words = words
        self.open_child = open_child
        self._shared = {}
        self._closing = set()

    async def take(self, cwd, timeout):
        """Return a connected child for a folder. Raises ChildError."""
        if not self.config.pool:
            return await self._fresh(cwd, timeout)
        key = self._key(cwd)
        row = self._shared.get(key)
        if row is None or row.is_over():
            await self._make_room()
            row = self._shared[key] = Shared(asyncio.ensure_future(self._fresh(cwd, timeout)))
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
        row = self._shared.get(self._key(cwd)) if self.config.pool else None
        if row is None or not row.holds(child):
            await child.close()
            return
        row.users -= 1
        if row.users <= 0:
            row.end_later(self.config.idle, lambda: self._retire(self._key(cwd)))

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
        child = await self.open_child(cwd)
        try:
            await child.initialize(timeout=timeout)
        except BaseException:
            await child.close()
            raise
        return child

    async def _make_room(self):
        if len(self._shared) < self.config.pool:
            return
        for key, row in list(self._shared.items()):
            if row.users <= 0:
                del self._shared[key]
                row.keep()
                await row.close()
                return
        raise ChildError(f"all {self.config.pool} pooled memory servers are in use.")

    def _retire(self, key):
        row = self._shared.pop(key, None)
        if row is not None:
            task = asyncio.ensure_future(row.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _key(self, cwd):
        return os.path.realpath(cwd), json.dumps([self.words, self.config.env], sort_keys=True)


class Shared:
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
