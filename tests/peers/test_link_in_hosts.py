"""Registration in the real hosts, offline: each sees the server and connects after link, and no longer after unlink.

`../shared/host-checks/<host>.sh` asks the host itself; hosts are the npm peers.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.peers

SEEN, ABSENT, REJECTED = 0, 2, 4
HOSTS = ("claude", "codex", "gemini", "opencode")
CONFIGS = {"claude": ((), "work/.mcp.json"), "gemini": ((), "work/.gemini/settings.json"),
           "opencode": ((), "work/opencode.json"), "codex": (("--global",), "home/.codex/config.toml")}


class World:
    """A home, a workspace and a PATH with Engram and the hosts."""

    def __init__(self, root, built, shared, command):
        self.root, self.shared, self.command = root, shared, command
        self.home, self.ws, self.bin = (str(root / name) for name in ("home", "work", "bin"))
        for folder in (self.home, self.ws, self.bin):
            os.makedirs(folder)
        for name in ("engram", "engram-mcp"):
            os.symlink(built, os.path.join(self.bin, name))
        os.symlink(os.path.realpath(sys.executable), os.path.join(self.bin, "python3"))
        path = [self.bin, os.path.dirname(command("codex")), "/usr/local/bin", "/usr/bin", "/bin"]
        self.env = {"HOME": self.home, "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb", "PATH": os.pathsep.join(path)}
        self.call("git", "init", "-q", self.ws)

    def call(self, *words, env=None, code=0):
        done = subprocess.run(words, cwd=self.ws, env=self.env | (env or {}), capture_output=True, text=True, timeout=180,
                              stdin=subprocess.DEVNULL)
        assert code is None or done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def engram(self, *words, code=0):
        return self.call(os.path.join(self.bin, "engram"), *words, code=code)

    def seen(self, host, **env):
        """Return the exit code of the host's own check, and what it said."""
        done = self.call("bash", os.path.join(self.shared, "host-checks", f"{host}.sh"), self.ws, self.home, code=None,
                         env={"HOST_BIN": self.command(host), "HOST_TIMEOUT": "120", **env})
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def world(tmp_path, built, shared, peer_command):
    return World(tmp_path, built, shared, peer_command)


@pytest.mark.parametrize("level", [[], ["--global"]], ids=["workspace", "user"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_host_connects_after_link_and_sees_nothing_after_unlink(world, host, level):
    if host == "codex" and not level:
        pytest.skip("Codex reads MCP servers only from the user's file")
    said = world.engram("link", *level, host).stdout
    if host == "claude" and level:
        line = next(line for line in said.splitlines() if "claude mcp add" in line).split("run: ")[1]
        world.call("bash", "-c", line.replace("claude", world.command("claude"), 1))
    code, said = world.seen(host, GEMINI_STRICT="1", CODEX_STRICT="1")
    assert code == SEEN, said
    said = world.engram("unlink", *level, host).stdout
    if host == "claude" and level:
        line = next(line for line in said.splitlines() if "claude mcp remove" in line).split("run: ")[1]
        world.call("bash", "-c", line.replace("claude", world.command("claude"), 1))
    code, said = world.seen(host)
    assert code == ABSENT, said


@pytest.mark.parametrize("host", HOSTS)
def test_a_config_that_the_host_rejects_is_refused_by_link_too(world, host):
    level, name = CONFIGS[host]
    path = os.path.join(str(world.root), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = '[mcp_servers.engram\n' if host == "codex" else '{"mcpServers": {\n'
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    code, said = world.seen(host)
    assert code == REJECTED, said
    for command in ("link", "unlink"):
        done = world.engram(command, *level, host, code=None)
        assert done.returncode == 4 and path in done.stderr and "line 1" in done.stderr
        with open(path, encoding="utf-8") as file:
            assert file.read() == text


def test_claude_s_doctor_finds_nothing_wrong_with_what_link_wrote(world):
    world.engram("link", "claude")
    world.engram("link", "--global", "claude")
    done = world.call(world.command("claude"), "doctor", code=0, env={"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"})
    assert "Invalid settings" not in done.stdout and "[Error]" not in done.stdout


def test_codex_starts_strictly_and_lists_our_hooks_without_a_warning(world):
    world.engram("link", "--global", "codex")
    world.call(world.command("codex"), "app-server", "--strict-config", "--print-startup-config")
    answer = app_server(world, "hooks/list", {"cwds": [world.ws]})
    rows = json.dumps(answer)
    assert "engram hook codex" in rows and not any(one.get("warnings") or one.get("errors") for one in answer.get("data", []))


def test_codex_rewrites_its_config_and_the_entry_is_still_ours(world):
    world.engram("link", "--global", "codex")
    world.call(world.command("codex"), "mcp", "add", "other", "--", "other-server")
    assert ": unchanged" in world.engram("link", "--global", "codex").stdout
    world.engram("unlink", "--global", "codex")
    with open(os.path.join(world.home, ".codex", "config.toml"), encoding="utf-8") as file:
        text = file.read()
    assert "other-server" in text and "engram-mcp" not in text
    assert world.seen("codex")[0] == ABSENT
    world.call(world.command("codex"), "mcp", "get", "other")


def test_opencode_edits_its_config_and_link_takes_its_file_back(world):
    world.engram("link", "opencode", "--no-hooks", "--no-instructions")
    world.call(world.command("opencode"), "mcp", "list", env={"OPENCODE_PURE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                                                              "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"})
    with open(os.path.join(world.ws, "opencode.json"), encoding="utf-8") as file:
        assert "$schema" in file.read()
    assert ": unchanged" in world.engram("link", "opencode", "--no-hooks", "--no-instructions").stdout
    world.engram("unlink", "opencode")
    assert not os.path.exists(os.path.join(world.ws, "opencode.json"))


def test_claude_still_reads_the_team_s_agents_md(world, tmp_path):
    with open(os.path.join(world.ws, "AGENTS.md"), "w", encoding="utf-8") as file:
        file.write("# House rules\n\nMARK-HOUSE-4410\n")
    world.engram("link", "claude")
    log = str(tmp_path / "claude.log")
    world.call(sys.executable, os.path.join(world.shared, "host-checks", "e2e.py"), "claude", world.ws, world.home, "--bin",
               world.command("claude"), "--prompt", "hello", "--tool", "engram_status", "--args", "{}", "--log", log, code=None)
    with open(log, encoding="utf-8") as file:
        text = file.read()
    assert "MARK-HOUSE-4410" in text and "engram_load" in text


def app_server(world, method, params):
    """Ask `codex app-server` one thing and return its result."""
    process = subprocess.Popen([world.command("codex"), "app-server"], cwd=world.ws, env=world.env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for message in ({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "check", "version": "0"}}},
                        {"method": "initialized"}, {"id": 2, "method": method, "params": params}):
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2 and "method" not in answer:
                return answer["result"]
        raise AssertionError("no answer")
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(20)
