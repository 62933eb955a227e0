"""The OpenCode plugin under Node, with a stand-in for OpenCode and one for Engram."""
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

from engram.link import opencode_plugin

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

# Calls the plugin's hooks in the order of a script and prints what each request's system prompt would be.
HOST = """
import * as module from "./engram.mjs";
import * as copy from "./engram.mjs?the-other-place";
const init = async (from) => {
  const plugins = Object.values(from);
  if (plugins.length !== 1) throw new Error("OpenCode runs every export as a plugin");
  return plugins[0]({ directory: process.argv[2], worktree: process.argv[2], client: {}, project: {} });
};
let all = [await init(module)];
const seen = [];
for (const [name, input, output] of JSON.parse(process.argv[3])) {
  if (name === "again") { all = [await init(module)]; continue; } // the host starts its plugins anew
  if (name === "second copy") { all.push(await init(copy)); continue; }
  for (const hooks of all) await hooks[name]?.(input, output);
  if (name.startsWith("experimental")) seen.push(output.system);
}
console.log(JSON.stringify(seen));
"""


@pytest.fixture
def opencode(tmp_path):
    """Return a function that plays steps against the plugin: (system prompts, events that Engram got)."""
    log = tmp_path / "events.jsonl"

    def play(steps, engram=None, seconds=10):
        program = tmp_path / "a program"
        program.write_text(f"#!{sys.executable}\nimport json, sys, time\nevent = json.load(sys.stdin)\n"
                           f"open({str(log)!r}, 'a').write(json.dumps([sys.argv[1:], event]) + '\\n')\n"
                           + (engram or "print(json.dumps({'context': event['hook_event_name'] + ' ' + event.get('prompt', '')}))\n"))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (tmp_path / "engram.mjs").write_text(opencode_plugin.source([str(program), "hook", "opencode"], seconds))
        (tmp_path / "host.mjs").write_text(HOST)
        done = subprocess.run([NODE, "host.mjs", str(tmp_path), json.dumps(steps)], cwd=tmp_path, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return json.loads(done.stdout), events

    return play


def says(session, *texts, synthetic=False):
    parts = [{"type": "text", "text": text, "synthetic": synthetic} for text in texts] + [{"type": "file", "url": "x"}]
    return ["chat.message", {"sessionID": session}, {"message": {}, "parts": parts}]


def asks(session=None):
    return ["experimental.chat.system.transform", {"sessionID": session} if session else {}, {"system": ["host"]}]


def test_a_session_starts_once_and_each_request_carries_its_start_and_its_latest_prompt(opencode, tmp_path):
    seen, events = opencode([says("s", "one", "more"), asks("s"), asks("s"), says("s", "two"), asks("s")])
    assert seen == [["host", "SessionStart ", "UserPromptSubmit one\nmore"]] * 2 + [["host", "SessionStart ", "UserPromptSubmit two"]]
    assert [(words, event["hook_event_name"]) for words, event in events] == [
        (["hook", "opencode"], "SessionStart"), (["hook", "opencode"], "UserPromptSubmit"), (["hook", "opencode"], "UserPromptSubmit")]
    assert {(event["session_id"], event["cwd"]) for _, event in events} == {("s", str(tmp_path))}


def test_of_the_users_plugin_and_the_workspaces_only_one_speaks(opencode):
    twice = [says("s", "one"), ["again", None, None], ["second copy", None, None]]
    seen, events = opencode([*twice, says("s", "two"), asks("s")])
    assert seen == [["host", "SessionStart ", "UserPromptSubmit two"]]
    assert [event["hook_event_name"] for _, event in events] == ["SessionStart", "UserPromptSubmit", "SessionStart", "UserPromptSubmit"]


def test_sessions_are_kept_apart_and_an_older_host_gets_the_latest(opencode):
    seen, _ = opencode([says("a", "one"), says("b", "two"), asks("a"), asks("b"), asks(), asks("unknown")])
    assert [system[-1] for system in seen] == ["UserPromptSubmit one", "UserPromptSubmit two", "UserPromptSubmit two", "host"]


def test_what_is_not_the_users_own_text_asks_nothing(opencode):
    seen, events = opencode([says("s", "made up", synthetic=True), says("s", "  "), asks("s")])
    assert (seen, events) == ([["host"]], [])


def test_nothing_new_keeps_the_text_and_an_empty_one_takes_it_back(opencode):
    answers = "print({'one': '{\"context\": \"A\"}', 'two': '{}', 'three': '{\"context\": \"\"}'}.get(event.get('prompt'), '{}'))\n"
    seen, _ = opencode([says("s", "one"), asks("s"), says("s", "two"), asks("s"), says("s", "three"), asks("s")], answers)
    assert seen == [["host", "A"], ["host", "A"], ["host"]]


def test_a_session_that_is_deleted_is_forgotten(opencode):
    seen, _ = opencode([says("s", "one"), ["event", {"event": {"type": "session.deleted", "properties": {"info": {"id": "s"}}}}, None],
                        asks("s"), ["event", {"event": {"type": "other"}}, None], ["event", {}, None]])
    assert seen == [["host"]]


@pytest.mark.parametrize("engram", ["sys.exit(3)\n", "print('not JSON')\n", "print('[1]')\n", "print('null')\n",
                                    "print(json.dumps({'context': 7}))\n",
                                    "time.sleep(60)\n"])
def test_whatever_engram_does_the_prompt_goes_on(opencode, engram):
    seen, _ = opencode([says("s", "one"), asks("s")], engram, seconds=1 if "sleep" in engram else 10)
    assert seen == [["host"]]


def test_without_engram_the_prompt_goes_on(tmp_path):
    (tmp_path / "engram.mjs").write_text(opencode_plugin.source([str(tmp_path / "gone"), "hook", "opencode"], 10))
    (tmp_path / "host.mjs").write_text(HOST)
    done = subprocess.run([NODE, "host.mjs", os.fspath(tmp_path), json.dumps([says("s", "one"), asks("s")])],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, json.loads(done.stdout)) == (0, [["host"]]), done.stderr


def test_words_with_quotes_and_backslashes_stay_what_they_are():
    words = ["C:\\Users\\demo\\engram.exe", 'a "b" `${c}`', "hook", "opencode"]
    text = opencode_plugin.source(words, 10)
    assert json.loads(text[text.index("COMMAND = ") + 10:text.index(";\nconst LIMIT")]) == words
