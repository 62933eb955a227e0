"""The session host with real children: own tools, own folder, and nothing left whatever dies in between."""

import asyncio
import json
import logging
import os
import signal
import sys

import pytest

from engram.errors import NotFound
from engram.session import ChildError, SessionConfig, SessionHost, ToolFailed, ToolTimeout
from tests.trials import count, dice

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/session/server.py")
FAST = {"backoff": 0.01, "backoff_most": 0.05, "grace": 0.3, "connect_timeout": 20}


class Harness:
    """Registers tools by agent, as a harness would, and counts what was done."""

    def __init__(self):
        self.tools, self.log = {}, []

    def register(self, agent, definition):
        rows = self.tools.setdefault(agent, {})
        assert definition.name not in rows, "registered twice"
        rows[definition.name] = definition
        self.log.append(("+", agent, definition.raw))

    def unregister(self, agent, definition):
        self.tools.get(agent, {}).pop(definition.name, None)
        self.log.append(("-", agent, definition.raw))

    def names(self, agent):
        return sorted(self.tools.get(agent, {}))


def host(harness=None, behaviour=None, **settings):
    harness = harness or Harness()
    config = SessionConfig(**{**FAST, "command": [sys.executable, SERVER, json.dumps(behaviour or {})], "args": [], **settings})
    return SessionHost(config, on_register=harness.register, on_unregister=harness.unregister)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


def processes_in(group):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[2] == str(group) and fields[0] != "Z":
            found.append(int(pid))
    return found


async def gone(group, seconds=5.0):
    for _ in range(int(seconds / 0.02)):
        if not processes_in(group):
            return True
        await asyncio.sleep(0.02)
    return False


SAVE = "mcp__engram__mem_save"


@pytest.mark.case("SH-10", "SH-07")
def test_two_agents_in_two_folders_have_their_own_server_and_answers(tmp_path):
    harness = Harness()

    async def main():
        for name in "ab":
            (tmp_path / name).mkdir()
        async with host(harness) as live:
            assert await asyncio.gather(live.start("A", tmp_path / "a"), live.start("B", tmp_path / "b")) == [True, True]
            assert harness.names("A") == harness.names("B") == ["mcp__engram__mem_current_project", SAVE]
            calls = [live.call(agent, SAVE, {"text": agent * 3, "n": n}) for n in range(100) for agent in "AB"]
            for index, answer in enumerate(await asyncio.gather(*calls)):
                agent = "AB"[index % 2]
                assert answer.structured["arguments"] == {"text": agent * 3, "n": index // 2}
                assert answer.structured["cwd"] == str(tmp_path / agent.lower())
            assert not await live.start("C", tmp_path / "none")
            assert live.tools("C") == []
            with pytest.raises(NotFound):
                await live.call("A", "mem_save")
            with pytest.raises(NotFound):
                await live.call("C", SAVE)
            await live.stop("A")
            assert harness.names("A") == []
            assert (await live.call("B", SAVE)).text
        assert harness.names("B") == []

    run(main())


@pytest.mark.parametrize("cwd", [None, "", "  ", 7])
def test_an_agent_without_a_folder_gets_no_child_and_no_warning(cwd, caplog):
    async def main():
        async with host() as live:
            assert not await live.start("A", cwd)

    with caplog.at_level(logging.DEBUG, "engram.session"):
        run(main())
    assert [row.levelname for row in caplog.records if row.name == "engram.session"] == ["DEBUG"]


@pytest.mark.parametrize("behaviour", [{"exit": 3}, {"pages": "same"}, {"pages": "endless"}, {"pages": "error"}])
def test_a_first_connect_that_fails_is_one_warning_and_registers_nothing(behaviour, tmp_path, caplog):
    harness = Harness()

    async def main():
        async with host(harness, behaviour) as live:
            assert not await live.start("A", tmp_path)
            assert live.protocol is None

    with caplog.at_level(logging.INFO, "engram.session"):
        run(main())
    assert harness.log == []
    assert [row.levelname for row in caplog.records if row.name == "engram.session"] == ["WARNING"]


def test_an_empty_cursor_is_a_cursor(tmp_path):
    async def main():
        async with host(behaviour={"pages": "empty"}) as live:
            assert await live.start("A", tmp_path)
            assert len(live.tools("A")) == 2

    run(main())


def test_a_program_that_is_not_there_is_one_warning(tmp_path, caplog):
    async def main():
        async with host(command=[str(tmp_path / "no-such-program")]) as live:
            assert not await live.start("A", tmp_path)

    with caplog.at_level(logging.INFO, "engram.session"):
        run(main())
    assert len([row for row in caplog.records if row.levelname == "WARNING"]) == 1


def test_a_failing_registration_withdraws_what_was_registered(tmp_path):
    harness = Harness()

    def register(agent, definition):
        if definition.raw == "mem_current_project":
            raise RuntimeError("duplicate name")
        harness.register(agent, definition)

    async def main():
        live = host(harness)
        live.on_register = register
        async with live:
            assert not await live.start("A", tmp_path)

    run(main())
    assert harness.log == [("+", "A", "mem_save"), ("-", "A", "mem_save")]


def test_a_failing_withdrawal_holds_nothing_up(tmp_path):
    harness = Harness()

    def unregister(agent, definition):
        harness.log.append(("-", agent, definition.raw))
        raise RuntimeError("the harness is gone")

    async def main():
        live = host(harness)
        live.on_unregister = unregister
        async with live:
            assert await live.start("A", tmp_path)
            group = live._agents["A"].child.process.pid
        assert await gone(group)

    run(main())
    assert [row for row in harness.log if row[0] == "-"] == [("-", "A", "mem_current_project"), ("-", "A", "mem_save")]


def test_one_id_has_one_child_whatever_the_order_of_start_and_stop(tmp_path):
    harness = Harness()

    async def main():
        async with host(harness) as live:
            assert await asyncio.gather(*(live.start("A", tmp_path) for _ in range(5))) == [True] * 5
            first = live._agents["A"].child.process.pid
            leaving = asyncio.ensure_future(live.stop("A"))
            await asyncio.sleep(0)
            assert await live.start("A", tmp_path)
            await leaving
            second = live._agents["A"].child.process.pid
            assert await gone(first)
            assert harness.names("A") == ["mcp__engram__mem_current_project", SAVE]
            starting = asyncio.ensure_future(live.start("B", tmp_path))
            await asyncio.sleep(0.01)
            await live.stop("B")
            assert await starting is False
            assert harness.names("B") == []
            await live.stop("nobody")
        assert await gone(second)

    run(main())
    assert harness.tools == {"A": {}, **({"B": {}} if "B" in harness.tools else {})}


def test_a_server_that_dies_is_started_again_and_a_call_waits_for_it(tmp_path, caplog):
    harness = Harness()

    async def main():
        async with host(harness, {"die": 2}) as live:
            assert await live.start("A", tmp_path)
            first = (await live.call("A", SAVE)).structured["pid"]
            with pytest.raises(ChildError, match="ended"):
                await live.call("A", SAVE)
            second = (await live.call("A", SAVE)).structured["pid"]
            assert first != second
            assert harness.names("A") == ["mcp__engram__mem_current_project", SAVE]

    run(main())


def test_tools_are_withdrawn_when_the_tries_run_out(tmp_path, caplog):
    harness = Harness()

    async def main():
        async with host(harness, {"once": str(tmp_path / "started"), "die": 1}, tries=3) as live:
            assert await live.start("A", tmp_path)
            with pytest.raises(ChildError):
                await live.call("A", SAVE)
            with pytest.raises((ChildError, NotFound)):
                await live.call("A", SAVE)
            while live._agents:
                await asyncio.sleep(0.01)
            assert harness.names("A") == []
            assert live.protocol is None

    with caplog.at_level(logging.INFO, "engram.session"):
        run(main())
    assert "given up after 3 tries" in caplog.records[-1].message


def test_a_changed_tool_list_replaces_the_generation(tmp_path):
    harness = Harness()

    async def main():
        async with host(harness, {"change": True}) as live:
            assert await live.start("A", tmp_path)
            await live.call("A", SAVE)
            while harness.names("A") != ["mcp__engram__mem_search"]:
                await asyncio.sleep(0.01)

    run(main())
    signs = [row[0] for row in harness.log]
    assert signs == ["+", "+", "-", "-", "+", "-"]


def test_a_tool_that_fails_raises_its_text_and_time_has_a_limit(tmp_path):
    async def main():
        async with host(behaviour={"tools": ["fail"]}) as live:
            assert await live.start("A", tmp_path)
            with pytest.raises(ToolFailed, match="it failed"):
                await live.call("A", "mcp__engram__fail", ["not", "a", "mapping"])
            with pytest.raises(ToolFailed, match="JSON"):
                await live.call("A", "mcp__engram__fail", {"x": float("nan")})
        async with host(behaviour={"silent": True}) as live:
            assert await live.start("A", tmp_path)
            with pytest.raises(ToolTimeout):
                await live.call("A", SAVE, {}, timeout=0.1)
            cancelled = asyncio.ensure_future(live.call("A", SAVE))
            await asyncio.sleep(0.05)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled

    run(main())


def test_arguments_that_are_no_mapping_go_out_as_none(tmp_path):
    async def main():
        async with host() as live:
            assert await live.start("A", tmp_path)
            for arguments in (None, [1], "x", 3):
                assert (await live.call("A", SAVE, arguments)).structured["arguments"] == {}

    run(main())


@pytest.mark.case("SH-02")
@pytest.mark.parametrize("mode", ["log", "inherit"])
def test_a_server_that_floods_stderr_still_answers(tmp_path, mode, capfd):
    async def main():
        async with host(behaviour={"noise": 1_000_000}, stderr=mode) as live:
            assert await live.start("A", tmp_path)
            for _ in range(10):
                assert (await live.call("A", SAVE, timeout=20)).text

    run(main())


def test_lines_that_are_not_messages_harm_nothing(tmp_path):
    async def main():
        async with host(behaviour={"garbage": True}) as live:
            assert await live.start("A", tmp_path)
            assert (await live.call("A", SAVE)).text

    run(main())


@pytest.mark.case("SH-01")
def test_what_a_wrapper_started_ends_with_its_session(tmp_path):
    script = tmp_path / "wrapper.sh"
    script.write_text(f"#!/bin/sh\nsleep 1000 &\n{sys.executable} {SERVER}\n")
    script.chmod(0o755)

    async def main():
        async with host(command=[str(script)]) as live:
            assert await live.start("A", tmp_path)
            group = live._agents["A"].child.process.pid
            assert len(processes_in(group)) >= 3
            await live.stop("A")
            assert await gone(group)

    run(main())


@pytest.mark.case("SH-06")
def test_a_server_that_ignores_sigterm_is_killed_and_others_are_not_held_up(tmp_path):
    async def main():
        stubborn, good = host(behaviour={"stubborn": True}), host()
        async with stubborn, good:
            assert await asyncio.gather(stubborn.start("A", tmp_path), good.start("B", tmp_path)) == [True, True]
            group = stubborn._agents["A"].child.process.pid
            leaving = asyncio.ensure_future(stubborn.stop("A"))
            assert (await good.call("B", SAVE)).text
            await leaving
            assert await gone(group)

    run(main())


def test_no_credential_is_in_a_childs_environment(tmp_path, monkeypatch):
    for name in ("API_TOKEN", "DSH_HOME", "MY_SECRET", "GIT_PASSWORD"):
        monkeypatch.setenv(name, "x")

    async def main():
        async with host(env={"ENGRAM_PROJECT": "p", "SOME_KEY": "x"}) as live:
            assert await live.start("A", tmp_path)
            seen = (await live.call("A", SAVE)).structured["env"]
            assert seen["ENGRAM_PROJECT"] == "p"
            assert not set(seen) & {"API_TOKEN", "DSH_HOME", "MY_SECRET", "GIT_PASSWORD", "SOME_KEY"}

    run(main())


def test_pooled_agents_of_one_folder_share_a_child_and_idle_ones_end(tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()

    async def main():
        async with host(pool=2, idle=0.05) as live:
            for agent, folder in (("A", "a"), ("A2", "a"), ("B", "b")):
                assert await live.start(agent, tmp_path / folder)
            pids = {agent: live._agents[agent].child.process.pid for agent in ("A", "A2", "B")}
            assert pids["A"] == pids["A2"] != pids["B"]
            assert not await live.start("C", tmp_path / "c")  # both are in use
            await live.stop("A")
            assert (await live.call("A2", SAVE)).text
            await live.stop("A2")
            assert await gone(pids["A"])
            assert await live.start("C", tmp_path / "c")
            await live.stop("B")
            assert await live.start("B", tmp_path / "b")

    run(main())


def test_the_protocol_is_offered_where_the_tools_are(tmp_path):
    async def main():
        async with host(server_name="notes") as live:
            assert live.protocol is None
            assert await live.start("A", tmp_path)
            assert "mcp__notes__mem_save" in live.protocol.text
            assert live.protocol_for("B") is None

    run(main())


def test_random_starts_crashes_and_stops_leave_nothing_behind(tmp_path):
    rng, harness = dice("session"), Harness()
    groups = set()

    async def main():
        live = host(harness, grace=0.2)
        async with live:
            for _ in range(count(30, 200)):
                agent, action = rng.choice("ABCD"), rng.choice(("start", "stop", "crash", "call", "restart"))
                if action == "start":
                    asyncio.ensure_future(live.start(agent, tmp_path))
                elif action == "stop":
                    asyncio.ensure_future(live.stop(agent))
                elif action == "restart":
                    await live.stop(agent)
                    await live.start(agent, tmp_path)
                elif action == "crash" and agent in live._agents and live._agents[agent].child:
                    os.kill(live._agents[agent].child.process.pid, signal.SIGKILL)
                elif action == "call" and live.tools(agent):
                    try:
                        await live.call(agent, SAVE, timeout=2)
                    except (ChildError, ToolTimeout, NotFound):
                        pass
                groups.update(row.child.process.pid for row in live._agents.values() if row.child)
                await asyncio.sleep(rng.uniform(0, 0.03))
        for group in groups:
            assert await gone(group)
        assert live._agents == live._leaving == {}

    before = len(os.listdir("/proc/self/fd"))
    run(main())
    assert all(not rows for rows in harness.tools.values())
    assert len(os.listdir("/proc/self/fd")) <= before
