"""What real hosts send to a hook (tests/data/hooks) and how each is answered."""
import json
import os

import pytest

from engram.cli import hook_events

DATA = os.path.join(os.path.dirname(__file__), "..", "data", "hooks")


def captured(name):
    with open(os.path.join(DATA, name + ".jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read(host, payload, env=()):
    return hook_events.read(host, json.dumps(payload).encode(), dict(env))


@pytest.mark.parametrize("host, capture", [("claude", "claude-code-2.1.332"), ("codex", "codex-0.171.0"), ("gemini", "gemini-0.61.0")])
def test_of_all_that_a_real_host_reports_only_the_start_and_the_prompt_concern_us(host, capture, tmp_path):
    found = []
    for row in captured(capture):
        row["stdin"]["cwd"] = str(tmp_path)
        event = read(host, row["stdin"], row["env"])
        if event:
            assert (event.folder, event.name) == (str(tmp_path), row["event"])
            assert event.session == "00000000-0000-4000-8000-000000000001"
            found.append((event.kind, event.source, event.prompt))
    assert found == [("start", "startup", ""), ("prompt", "", "please save")]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_copilot_running_the_hooks_of_claude_gets_no_second_dose(event):
    row = captured("copilot-1.0.102")[1]
    payload = {"hook_event_name": event, "session_id": "s", "cwd": "/", "prompt": "please save", "source": "new"}
    assert read("claude", payload, row["env"]) is None


def test_cursor_running_the_hooks_of_claude_gets_no_second_dose():
    payload = {"hook_event_name": "UserPromptSubmit", "prompt": "x", "cursor_version": "2.4", "transcript_path": None}
    assert read("claude", payload) is None


def test_claude_started_from_a_shell_of_copilot_is_still_claude():
    row = captured("claude-code-2.1.332")[0]
    assert read("claude", row["stdin"], {**row["env"], "COPILOT_CLI": "1"}).kind == "start"


@pytest.mark.parametrize("prompt, left", [
    ("<hook_context>CTX</hook_context>\n\nplease save", "please save"),
    ("<hook_context>a</hook_context>\n<hook_context>b</hook_context>\n\nplease <hook_context>c</hook_context>save", "please save"),
    ("<hook_context>never closed please save", ""),
    ("please </hook_context> save", "please </hook_context> save"),
])
def test_what_gemini_reports_of_an_earlier_injection_is_taken_out_of_the_prompt(prompt, left):
    assert read("gemini", {"hook_event_name": "BeforeAgent", "prompt": prompt}).prompt == left


@pytest.mark.parametrize("host, payload, expected", [
    ("cursor", {"hook_event_name": "sessionStart", "conversation_id": "c", "cursor_version": "2.4"}, ("start", "c", "")),
    ("windsurf", {"agent_action_name": "pre_user_prompt", "trajectory_id": "t", "tool_info": {"user_prompt": "do it"}},
     ("prompt", "t", "do it")),
    ("opencode", {"hook_event_name": "UserPromptSubmit", "session_id": "o", "prompt": "do it"}, ("prompt", "o", "do it")),
    ("claude", {"hookEventName": "UserPromptSubmit", "sessionId": "s", "user_prompt": "do it"}, ("prompt", "s", "do it")),
])
def test_each_host_has_its_own_names_for_the_same_things(host, payload, expected):
    event = read(host, payload)
    assert (event.kind, event.session, event.prompt) == expected


def test_the_folder_is_the_events_own_then_the_hosts_then_the_process_one(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    start = {"hook_event_name": "sessionStart"}
    assert read("cursor", {**start, "cwd": str(one)}, {"CURSOR_PROJECT_DIR": str(two)}).folder == str(one)
    assert read("cursor", {**start, "workspace_roots": [str(one), str(two)]}).folder == str(one)
    assert read("cursor", start, {"CURSOR_PROJECT_DIR": str(two)}).folder == str(two)
    for absent in ("", "relative", str(tmp_path / "gone"), 7, None):
        assert read("cursor", {**start, "cwd": absent}).folder == os.getcwd()


@pytest.mark.parametrize("host, expected", [
    ("claude", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'a "b"\n\u2028é'}}),
    ("codex", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'a "b"\n\u2028é'}}),
    ("gemini", {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'a "b"\n\u2028é'}}),
    ("opencode", {"context": 'a "b"\n\u2028é'}),
])
def test_the_answer_is_in_the_hosts_own_format(host, expected):
    event = read(host, {"hook_event_name": "SessionStart"})
    said = hook_events.answer(host, event, 'a "b"\n\u2028é')
    assert said.isascii() and json.loads(said) == expected


def test_the_answer_for_cursor_and_windsurf():
    assert json.loads(hook_events.answer("cursor", read("cursor", {"event": "sessionStart"}), "x")) == {"additional_context": "x"}
    assert hook_events.answer("windsurf", read("windsurf", {"event": "pre_user_prompt"}), "x") == "x"


@pytest.mark.parametrize("host, empty", [("claude", "{}"), ("codex", "{}"), ("gemini", "{}"), ("cursor", "{}"), ("opencode", "{}"),
                                         ("windsurf", "")])
def test_the_empty_answer_of_each_host(host, empty):
    assert hook_events.answer(host, None, "") == empty


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b"null", b"7"])
def test_anything_but_an_object_is_a_value_error_that_says_so(data):
    with pytest.raises(ValueError, match="the event is not"):
        hook_events.read("claude", data, {})


@pytest.mark.parametrize("payload", [{}, {"hook_event_name": "Stop"}, {"hook_event_name": ["UserPromptSubmit"]}, {"event": {"a": 1}},
                                     {"hook_event_name": "sessionStart"}])
def test_another_event_is_nothing_to_do(payload):
    assert read("claude", payload) is None


@pytest.mark.parametrize("words, name", [
    (["claude"], "claude"), (["--host", "claude"], "claude"), (["--host=gemini"], "gemini"), (["antigravity"], "gemini"),
    (["open-code"], "opencode"), (["cascade"], "windsurf"), ([], None), (["emacs"], None), (["--json", "codex"], "codex"),
])
def test_the_host_is_named_as_today_or_as_the_earlier_implementation_did(words, name):
    assert hook_events.host(words) == name


def test_of_a_very_long_prompt_the_head_and_the_tail_are_kept():
    event = read("claude", {"hook_event_name": "UserPromptSubmit", "prompt": "fix this: " + "log line\n" * 100_000 + "in the parser"})
    assert event.prompt.startswith("fix this") and event.prompt.endswith("in the parser")
    assert len(event.prompt) <= hook_events.LONGEST_PROMPT + 1
