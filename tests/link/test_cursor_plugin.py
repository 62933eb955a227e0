"""The Cursor plugin that `link --global cursor` makes, read and run by a stand-in for Cursor under Node."""
import json
import os
import shutil
import subprocess
import sys

import pytest

NODE = shutil.which("node")
pytestmark = [pytest.mark.skipif(NODE is None, reason="node is not installed"), pytest.mark.built]

# Finds plugins the way Cursor does, checks what a plugin must say, and runs its sessionStart hooks with an event.
CURSOR = """
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { spawnSync } from "node:child_process";
const [home, workspace] = process.argv.slice(2);
const json = (path) => JSON.parse(readFileSync(path, "utf8"));
const top = home + "/.cursor/plugins/local";
const found = [];
for (const folder of existsSync(top) ? readdirSync(top) : []) {
  const root = `${top}/${folder}`;
  const manifest = json(`${root}/.cursor-plugin/plugin.json`);
  if (!/^[a-z0-9-]+$/.test(manifest.name)) throw new Error("name");
  const hooks = json(`${root}/hooks/hooks.json`);
  if (hooks.version !== 1 || !hooks.hooks) throw new Error("hooks.json is not version 1");
  const said = [];
  for (const [event, rows] of Object.entries(hooks.hooks)) {
    for (const { command, timeout, ...rest } of rows) {
      if (Object.keys(rest).length) throw new Error("unknown keys: " + Object.keys(rest));
      const input = JSON.stringify({ hook_event_name: event, conversation_id: "c1", session_id: "c1", cursor_version: "2.4.0",
                                     workspace_roots: [workspace], model: "m", generation_id: "g" });
      const run = spawnSync(command, { shell: true, input, cwd: root, timeout: timeout * 1000, encoding: "utf8",
                                       env: { ...process.env, CURSOR_PROJECT_DIR: workspace } });
      if (run.status !== 0) throw new Error(`exit ${run.status}: ${run.stderr}`);
      said.push([event, JSON.parse(run.stdout).additional_context ?? null]);
    }
  }
  const mcp = json(`${root}/mcp.json`).mcpServers;
  found.push({ name: manifest.name, version: manifest.version, servers: Object.keys(mcp), said });
}
console.log(JSON.stringify(found));
"""


@pytest.fixture
def cursor(run, built, tmp_path, clean_environment, monkeypatch):
    """Return a function that lets the stand-in look for plugins and start a session: what it found."""
    bin, root = tmp_path / "bin", tmp_path / "a project"
    bin.mkdir(), root.mkdir()
    for name in ("engram", "engram-mcp"):
        os.symlink(built, bin / name)
    os.symlink(os.path.realpath(sys.executable), bin / "python3")
    monkeypatch.setenv("PATH", f"{bin}:{os.path.dirname(NODE)}:/usr/bin:/bin")
    (tmp_path / "cursor.mjs").write_text(CURSOR)

    def look():
        words = [NODE, str(tmp_path / "cursor.mjs"), str(clean_environment), str(root)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    look.root = root
    return look


def test_the_plugin_is_one_that_cursor_reads_and_its_hook_answers(run, cursor):
    run("link", "--global", "cursor", cwd=cursor.root)
    plugin, = cursor()
    assert (plugin["name"], plugin["servers"]) == ("engram", ["engram"]) and plugin["version"]
    assert plugin["said"] == [["sessionStart", None]]  # no store, nothing to say
    run("inject", cwd=cursor.root)
    run("save-session", "--force", text="TYPE: rule | TEXT: Sign every release with the green key.", cwd=cursor.root)
    assert "green key" in cursor()[0]["said"][0][1]
    run("unlink", "--global", "cursor", cwd=cursor.root)
    assert cursor() == []


def test_a_hook_of_the_workspace_beside_the_plugins_tells_the_session_once(run, cursor):
    run("inject", cwd=cursor.root)
    run("save-session", "--force", text="TYPE: rule | TEXT: Sign every release with the green key.", cwd=cursor.root)
    run("link", "--global", "cursor", cwd=cursor.root)
    run("link", "cursor", cwd=cursor.root)
    with open(cursor.root / ".cursor" / "hooks.json") as file:
        row, = json.load(file)["hooks"]["sessionStart"]
    event = json.dumps({"hook_event_name": "sessionStart", "session_id": "c1", "workspace_roots": [str(cursor.root)]})
    done = subprocess.run(["/bin/sh", "-c", row["command"]], input=event, capture_output=True, text=True, timeout=60, cwd=cursor.root)
    assert "green key" in json.loads(done.stdout)["additional_context"]
    assert cursor()[0]["said"] == [["sessionStart", None]]
