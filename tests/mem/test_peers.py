"""Clients of others against `engram mcp`: the official SDK in every version and era, and the prober of edges."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.server.process import environment

pytestmark = [pytest.mark.built, pytest.mark.peers]
CALLS = (
    'mem_save={"title":"Chose a token bucket","content":"Per key."}',
    'mem_save={"title":"t","observation":"c","session_id":"never"}',
    'mem_search={"query":"token"}',
    'mem_get_observation={"id":"1"}',
    "mem_context",
    "mem_current_project",
    "mem_list_projects",
    "mem_doctor",
    "mem_stats",
    'mem_timeline={"observation_id":1}',
    'mem_update={"id":1,"expected_project":"p","title":"Chose it"}',
    "mem_save",
)
ROOTS = """
import anyio, sys
import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file://" + sys.argv[3])])

async def main():
    server = StdioServerParameters(command=sys.argv[2], args=["mcp"], cwd="/", env={"ENGRAM_DATA_DIR": sys.argv[4]})
    async with Client(stdio_client(server), mode=sys.argv[1], list_roots_callback=roots) as client:
        found = (await client.call_tool("mem_current_project", {})).structured_content
        print(found["project"], found["project_source"])

anyio.run(main)
"""


def clean(command, tmp_path, seconds=300):
    env = environment(ENGRAM_DATA_DIR=str(tmp_path / "data"), HOME=str(tmp_path))
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def words():
    return [word for call in CALLS for word in ("--call", call)]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_official_client_in_every_legacy_version(shared, peer_python, built, tmp_path, version):
    client = os.path.join(shared, "mcp-clients", "client_legacy.py")
    clean(
        [
            peer_python,
            client,
            "--protocol-version",
            version,
            "--ping",
            "--cwd",
            str(tmp_path),
            "--env",
            f"ENGRAM_DATA_DIR={tmp_path / 'data'}",
            *words(),
            "--",
            built,
            "mcp",
            "--tools=all",
            "--project",
            "p",
        ],
        tmp_path,
    )


@pytest.mark.parametrize("mode", ["auto", "pin"])
def test_the_official_client_in_the_modern_era(shared, peer_python, built, tmp_path, mode):
    client = os.path.join(shared, "mcp-clients", "client_2026.py")
    clean(
        [
            peer_python,
            client,
            "--mode",
            mode,
            "--cwd",
            str(tmp_path),
            "--env",
            f"ENGRAM_DATA_DIR={tmp_path / 'data'}",
            *words(),
            "--",
            built,
            "mcp",
            "--tools=all",
            "--project",
            "p",
        ],
        tmp_path,
    )


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_clients_roots_name_the_project(peer_python, built, tmp_path, mode):
    (tmp_path / "rooted" / ".git").mkdir(parents=True)
    out = clean([peer_python, "-c", ROOTS, mode, built, str(tmp_path / "rooted"), str(tmp_path / "data")], tmp_path)
    assert out.split() == ["rooted", "client_roots"]


def test_no_edge_of_the_wire_fails(shared, peer_python, built, tmp_path):
    prober = os.path.join(shared, "mcp-clients", "probe_edges.py")
    out = clean([peer_python, prober, "--tool", "mem_save", "--", built, "mcp"], tmp_path, 900)
    assert "'FAIL': 0" in out
