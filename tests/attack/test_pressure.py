"""No room, many at once, killed half-way: configs and stores under pressure, with real processes."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import time

import pytest

from tests.torture.concurrency import together
from tests.torture.place import leftovers
from tests.trials import count, dice

BIG = b'{\n  "mcpServers": {},\n  "padding": "' + b"x" * 20_000 + b'"\n}\n'


def config(place, data=BIG, *parts):
    path = os.path.join(place.home, *(parts or (".gemini", "settings.json")))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.case("CF-05")
@pytest.mark.parametrize("limit", [0, 1, 512, 4096, 8192])
@pytest.mark.parametrize("word", ["link", "unlink"])
def test_a_config_on_a_full_disk_keeps_its_bytes(place, limit, word):
    path = config(place)
    if word == "unlink":
        place.run("link", "--global", "gemini")
    before, listing = read(path), os.listdir(os.path.dirname(path))
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
    done = place.run(word, "--global", "gemini", code=None, **full)
    assert done.returncode == 5 and "Traceback" not in done.stderr and done.stderr.strip()
    assert read(path) == before and os.listdir(os.path.dirname(path)) == listing
    assert not leftovers(place.root)
    place.run(word, "--global", "gemini")
    assert read(path) != before


@pytest.mark.case("CF-07")
def test_eight_links_of_one_config_at_once_all_succeed(place):
    path = os.path.join(place.workspace, ".mcp.json")
    for _ in range(count(3, 20)):
        config(place, b'{"mcpServers": {"mine": {"command": "my-server"}}}\n', "..", "work", ".mcp.json")
        assert together(8, lambda _: place.run("link", "--no-hooks", "--no-instructions", "claude")) == []
        assert set(json.loads(read(path))["mcpServers"]) == {"mine", "engram"}
        assert not leftovers(place.root)


@pytest.mark.case("CF-07")
def test_links_and_unlinks_of_several_hosts_at_once_leave_every_config_whole(place):
    """A sibling: not the same change by all, and one user folder that remembers them."""
    texts = {}
    for host, parts in (
        ("gemini", (".gemini", "settings.json")),
        ("windsurf", (".codeium", "windsurf", "mcp_config.json")),
        ("codex", (".codex", "config.toml")),
    ):
        texts[host] = config(
            place, b'{"mcpServers": {"mine": {"command": "x"}}}\n' if host != "codex" else b'model = "x"\n', *parts
        )
    before = {host: read(path) for host, path in texts.items()}
    for _ in range(count(2, 10)):
        assert together(6, lambda number: place.run("link", "--global", list(texts)[number % 3])) == []
        assert together(6, lambda number: place.run("unlink", "--global", list(texts)[number % 3])) == []
        assert {host: read(path) for host, path in texts.items()} == before


@pytest.mark.case("CF-09")
def test_a_link_killed_with_the_lock_in_its_hand_does_not_hold_up_the_next_one(place):
    path = config(place)
    place.run("link", "--global", "gemini")
    place.run("unlink", "--global", "gemini")
    with open(os.path.join(place.home, ".engram", "links.lock"), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = place.start("link", "--global", "gemini")
        time.sleep(0.5)  # long enough to be waiting for us
        assert waiting.poll() is None
    # the lock is free again: whoever is killed now may hold it
    waiting.send_signal(signal.SIGKILL)
    waiting.wait()
    waiting.stdin.close()
    begin = time.monotonic()
    place.run("link", "--global", "gemini")
    assert time.monotonic() - begin < 5 * 10
    assert "engram" in json.loads(read(path))["mcpServers"]


@pytest.mark.case("CF-09")
def test_a_store_writer_killed_with_the_lock_in_its_hand_does_not_hold_up_the_next_one(place):
    place.save("The lighthouse lamp is serviced in May.")
    code = (
        f"import sys, time; sys.path.insert(0, {place.built + '/site-packages'!r})\n"
        "from engram.store import places\n"
        f"with places.find({place.workspace!r}).workspace.lock(): print('held', flush=True); time.sleep(1000)"
    )
    holder = subprocess.Popen([place.python, "-c", code], stdout=subprocess.PIPE, env=place.env)
    assert holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    place.save("The harbour crane is painted yellow.")
    assert len(place.memories()) == 2


def test_a_lock_that_is_held_is_waited_for_and_then_named(place):
    place.save("The lighthouse lamp is serviced in May.")
    with open(place.store("store.lock"), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place.run(
            "save", "--force", "--scope", "workspace", "TYPE: rule | TEXT: Lamps are checked weekly.", code=5
        )
        assert "store.lock" in done.stderr and "Traceback" not in done.stderr
        assert "lighthouse" in place.run("load", "lighthouse lamp").stdout  # readers never wait


@pytest.mark.case("ST-12")
def test_a_commit_killed_at_any_moment_leaves_all_of_a_candidate_or_none(place):
    random = dice("killed commits")
    before = {}
    for number in range(count(8, 100)):
        text = "\n".join(
            f"TYPE: knowledge | TEXT: Depot {number * 4 + row} keeps {random.randrange(10**9)} crates of type {row}."
            for row in range(4)
        )
        process = place.start("save-session", "--force", "--scope", "workspace")
        process.stdin.write(text.encode())
        process.stdin.close()
        time.sleep(random.uniform(0, 0.25))
        process.kill()
        process.wait()
        place.run("verify")
        now = place.memories()
        assert all(now[name] == data for name, data in before.items())
        assert all(
            data.startswith(b"---\n") and b"## Content" in data and data.endswith(b".\n") for data in now.values()
        )
        before = now
    place.save("The last crate is counted on Sunday.")
