"""The official clients and the official conformance suite against the built server, every message held against the schemas.

The clients and what judges them are in `../shared/mcp-clients`: Python SDK, TypeScript SDK v1 and v2, a raw edge
prober, the conformance suite through a bridge.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

import build

pytestmark = pytest.mark.peers

ELICIT = ("accept", "decline", "cancel", "none")
ID = "keep-the-changelog-short"
# Every tool, in an order that makes sense; the commit of a token that was never given is an error result.
CALLS = [("engram_save", {"text": "TYPE: rule | TEXT: Keep the changelog short.", "scope": "workspace"}),
         ("engram_save_session", {"text": "TYPE: knowledge | TEXT: Invoices are archived after ninety days.", "scope": "workspace"}),
         ("engram_note", {"text": "Half way through the release."}), ("engram_load", {"query": "changelog"}),
         ("engram_route", {"query": "changelog"}), ("engram_search", {"query": "changelog", "limit": 5}), ("engram_search", {}),
         ("engram_verify", {}), ("engram_status", {}), ("engram_commit", {"approval_token": "never given"}),
         ("engram_set_role", {"roles": ["dev"]}), ("engram_set_rule_variant", {"variant": "strict"})]
# Scenarios that need tools or abilities that only the suite's own fixture server has, and why.
FIXTURES = {"server-stateless": "the tools test_missing_capability, test_streaming_elicitation and test_logging_tool"}
UNDECLARED = {"logging-set-level": "the capability `logging`, which this server does not declare"}


class World:
    """A home and a workspace with a store, and the built file under both names."""

    def __init__(self, root, built, shared):
        self.root, self.clients = root, os.path.join(shared, "mcp-clients")
        self.home, self.ws, self.bin = (str(root / name) for name in ("home", "my work", "bin"))
        for folder in (self.home, self.ws, self.bin):
            os.makedirs(folder)
        for name in ("engram", "engram-mcp"):
            os.symlink(built, os.path.join(self.bin, name))
        os.symlink(os.path.realpath(sys.executable), os.path.join(self.bin, "python3"))
        self.server = os.path.join(self.bin, "engram-mcp")
        self.env = {"HOME": self.home, "LANG": "C.UTF-8", "PATH": os.pathsep.join([self.bin, "/usr/local/bin", "/usr/bin", "/bin"])}
        self.call(os.path.join(self.bin, "engram"), "inject")

    def call(self, *words, code=0, env=None, seconds=300):
        done = subprocess.run(words, cwd=self.ws, env=self.env | (env or {}), capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL)
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
        return done

    def written(self):
        """Return the ids of the memories that are there."""
        store = os.path.join(self.ws, ".agents", ".engram")
        return sorted(name for kind in ("rules", "knowledge", "working") if os.path.isdir(os.path.join(store, kind))
                      for name in os.listdir(os.path.join(store, kind)) if name.endswith(".md"))

    def python(self, client, peer_python, *words):
        """Run one of the Python SDK's clients through every tool, resource and prompt."""
        calls = [word for name, arguments in CALLS for word in ("--call", f"{name}={json.dumps(arguments)}")]
        more = ["--read", "engram://index", "--read", "!engram://memory/nope", "--prompt", "propose", "--prompt", "!nope"]
        done = self.call(peer_python, os.path.join(self.clients, client), *words, *calls, *more, "--cwd", self.ws,
                         "--env", f"HOME={self.home}", "--env", f"PATH={self.env['PATH']}", "--", self.server)
        return json.loads(done.stdout)


@pytest.fixture
def world(tmp_path, built, shared):
    return World(tmp_path, built, shared)


@pytest.fixture(scope="session")
def modules():
    """Return the node_modules of the npm peers; skip without Node or the official SDKs."""
    commands = os.environ.get("ENGRAM_PEERS_BIN") or os.path.join(build.WORK, "peers-npm", "node_modules", ".bin")
    folder = os.path.dirname(commands)
    wanted = ("@modelcontextprotocol/sdk", "@modelcontextprotocol/client")
    missing = [name for name in wanted if not os.path.isdir(os.path.join(folder, name))]
    if missing or not shutil.which("node"):
        pytest.skip(f"not installed: {', '.join(missing) or 'node'} (build.py test --peers)")
    return folder


@pytest.mark.parametrize("elicit", ELICIT)
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_python_client_of_each_legacy_version_calls_every_tool(world, peer_python, version, elicit):
    report = world.python("client_legacy.py", peer_python, "--protocol-version", version, "--ping", "--elicit", elicit)
    assert report["protocolVersion"] == version and report["validation"]["errors"] == [] and report["failed_steps"] == []
    assert bool(world.written()) == (elicit == "accept" and version >= "2025-06-18")


@pytest.mark.parametrize("elicit", ELICIT)
@pytest.mark.parametrize("mode", ["auto", "pin"])
def test_the_python_client_of_2026_calls_every_tool(world, peer_python, mode, elicit):
    report = world.python("client_2026.py", peer_python, "--mode", mode, "--elicit", elicit)
    assert report["era"] == "modern" and report["validation"]["errors"] == [] and report["failed_steps"] == []
    assert len(world.written()) == (3 if elicit == "accept" else 0)


@pytest.mark.parametrize("elicit", ELICIT)
@pytest.mark.parametrize("sdk, mode", [("v1", "legacy"), ("v2", "legacy"), ("v2", "auto"), ("v2", "pin")])
def test_the_typescript_clients_call_every_tool(world, modules, peer_python, sdk, mode, elicit):
    transcript = str(world.root / "transcript.jsonl")
    calls = [word for name, arguments in CALLS for word in ("--call", f"{name}={json.dumps(arguments)}")]
    done = world.call("node", os.path.join(world.clients, "ts_client.mjs"), "--sdk", sdk, "--mode", mode, "--elicit", elicit,
                      "--record", transcript, *calls, "--call", "!engram_nope={}", "--read", "engram://index",
                      "--read", "!engram://memory/nope", "--prompt", "propose={}", "--", world.server, env={"MCP_NODE_MODULES": modules})
    report = json.loads(done.stdout)
    assert report["failed_steps"] == [] and report["errors"] == []
    assert len(world.written()) == (3 if elicit == "accept" else 0)
    assert "0 errors, 0 warnings" in world.call(peer_python, os.path.join(world.clients, "validate.py"), transcript).stdout


def test_the_session_surface_serves_the_same_clients(world, peer_python, modules):
    for words in (["client_legacy.py", "--protocol-version", "2025-06-18"], ["client_2026.py"]):
        done = world.call(peer_python, os.path.join(world.clients, words[0]), *words[1:], "--call", "mem_current_project={}",
                          "--call", 'mem_save={"title": "t", "content": "c"}', "--call", 'mem_search={"query": "c"}', "--cwd", world.ws,
                          "--env", f"HOME={world.home}", "--env", f"PATH={world.env['PATH']}", "--",
                          os.path.join(world.bin, "engram"), "mcp")
        report = json.loads(done.stdout)
        assert report["failed_steps"] == [] and report["validation"]["errors"] == []


def test_the_check_of_all_eras_and_raw_edge_cases_passes(world, peer_python, shared):
    done = world.call("bash", os.path.join(shared, "checks", "eras.sh"), os.path.join(world.bin, "engram"), seconds=900,
                      env={"MCP_PY": peer_python})
    assert "client runs clean" in done.stdout


@pytest.mark.parametrize("wire", ["2025-11-25", "2026-07-28"])
def test_the_conformance_suite_passes_but_for_its_own_fixtures(world, modules, peer_python, wire):
    if not os.path.isdir(os.path.join(modules, "@modelcontextprotocol", "conformance")):
        pytest.skip("not installed: @modelcontextprotocol/conformance (build.py test --peers)")
    done = world.call("bash", os.path.join(world.clients, "conformance.sh"), "--wire", wire, "--out", str(world.root / "out"), "--",
                      world.server, env={"MCP_CONF_DIR": os.path.dirname(modules), "MCP_PY": peer_python}, seconds=900)
    failed = {line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("FAIL ")}
    assert failed <= set(FIXTURES) | set(UNDECLARED), done.stdout
    assert "0 errors" in done.stdout
