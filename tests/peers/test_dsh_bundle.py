"""The DeepSeek Harness bundle under Node, with the real Cordis, agent, tool and system-prompt services."""
import json
import os
import shutil
import subprocess

import pytest

import build
from engram.session import guide, names
from tests.trials import count

pytestmark = pytest.mark.peers
HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "engram", "link", "dsh")


@pytest.fixture
def modules():
    """The folder that holds node_modules with the harness's packages and this bundle; skips without them."""
    folder = os.path.join(build.WORK, "peers-npm")
    if not shutil.which("node") or not os.path.isdir(os.path.join(folder, "node_modules", "@deepseek-ai", "cordis")):
        pytest.skip("Node or the DeepSeek Harness packages are not installed (build.py test --peers)")
    goal = os.path.join(folder, "node_modules", "dsh-engram-session")
    shutil.rmtree(goal, ignore_errors=True)
    shutil.copytree(BUNDLE, goal)
    shutil.copy(os.path.join(HERE, "dsh_bundle.mjs"), folder)
    return folder


@pytest.fixture
def bundle(modules, built, tmp_path):
    """Return a function of a mode: what the bundle did, with its own home, as the script printed it."""

    def run(mode, rounds=0, **config):
        env = {**os.environ, "BUNDLE_MARK": str(tmp_path), "BUNDLE_ROUNDS": str(rounds), "BUNDLE_CONFIG": json.dumps(config),
               "SOME_API_KEY": "x", "HOME": str(tmp_path / "home")}
        done = subprocess.run(["node", "dsh_bundle.mjs", built, str(tmp_path / "work"), mode], cwd=modules, env=env,
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return run


def nothing_is_left(seen):
    assert (seen["left"], seen["toolsAtEnd"], "mcp__" in seen["promptAtEnd"]) == (0, [], False)
    assert "ProcessWrap" not in seen["handles"]


def test_two_sessions_have_their_own_tools_and_projects_and_all_is_gone_afterwards(bundle):
    seen = bundle("projects")
    assert seen["ready"]
    assert seen["tools"] == seen["toolsB"]
    assert "mcp__engram__mem_save" in seen["tools"]
    assert seen["toolsC"] == seen["global"] == []
    assert "mcp__engram__mem_save" in seen["prompt"]
    assert "Memory" not in seen["promptC"]
    assert (seen["A"]["value"]["structuredContent"]["project"], seen["B"]["value"]["structuredContent"]["project"]) == ("a", "b")
    assert not seen["saved"]["error"]
    assert seen["wrong"]["error"]
    assert "Chose pnpm" in seen["found"]
    assert "Chose pnpm" not in seen["foundB"]
    assert seen["children"] == 2
    assert seen["oneLess"]
    nothing_is_left(seen)


def test_a_server_that_dies_is_started_again_and_a_call_waits_for_it(bundle):
    seen = bundle("crash")
    assert not seen["again"]["error"], seen["again"]["text"]
    assert seen["replaced"]
    assert seen["toolsAfter"] == seen["tools"]
    nothing_is_left(seen)


def test_sessions_of_one_folder_share_a_child_when_asked(bundle):
    seen = bundle("projects", pool=2, idleMs=50)
    assert seen["A"]["value"]["structuredContent"]["project"] == "a"
    nothing_is_left(seen)


def test_random_starts_crashes_and_stops_leave_nothing_behind(bundle):
    nothing_is_left(bundle("churn", rounds=count(40, 200)))


def test_without_a_program_there_are_no_tools_and_no_protocol(bundle):
    seen = bundle("none", binary="/nowhere/engram", args=["mcp"])
    if not shutil.which("engram"):
        assert (seen["ready"], seen["tools"], "Memory" in seen["prompt"]) == (False, [], False)
    nothing_is_left(seen)


def test_names_results_and_protocol_are_those_of_the_python_host(modules):
    with open(os.path.join(HERE, "..", "data", "session", "names.json"), encoding="utf-8") as file:
        table = json.load(file)
    raws = sorted({raw for needed, _ in guide.LINES for raw in needed})
    results = [{"content": [{"type": "text", "text": "a"}, None, {"type": "image"}]}, {"content": [], "structuredContent": {"a": 1}}, {},
               {"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}, {"type": "resource_link", "uri": "u"}]}]
    code = ("import { publicName, protocolText, render, definitions } from 'dsh-engram-session/protocol.js'\n"
            "const [table, raws, results] = JSON.parse(process.argv[1])\n"
            "console.log(JSON.stringify([table.map(([server, raw]) => publicName(server, raw)),\n"
            "  protocolText(new Map(raws.map(raw => [raw, `mcp__e__${raw}`]))), results.map(result => render('t', result)),\n"
            "  definitions('engram', [{name: 'a.b'}, {name: 'a_b'}, {name: 'a/b'}]).made.map(row => row.name)]))")
    done = subprocess.run(["node", "--input-type=module", "-e", code, json.dumps([table, raws, results])], cwd=modules, capture_output=True,
                          text=True, timeout=60, check=True)
    public, text, rendered, made = json.loads(done.stdout)
    assert public == [row[2] for row in table]
    assert text == guide.section({raw: f"mcp__e__{raw}" for raw in raws}).text
    assert [json.loads(t) if t.startswith("{") else t for t in rendered] == [
        json.loads(t) if t.startswith("{") else t for t in (names.render("t", result) for result in results)]
    assert made == [row.name for row in names.definitions("engram", [{"name": "a.b"}, {"name": "a_b"}, {"name": "a/b"}])[0]]
