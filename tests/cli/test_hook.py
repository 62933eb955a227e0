"""`engram hook`: what a session is told when, what is kept of it, and that it never stops a prompt.

What is chosen and how it reads is recall's; here a stand-in chooses. tests/cli/test_hook_whole.py runs the whole.
"""
import io
import json
import os
import sqlite3
import threading
from collections import namedtuple

import pytest

from engram import files
from engram.cli import hook, hook_dose, hook_seen
from engram.cli.context import Context
from engram.store import places, trust, writing

Fresh = namedtuple("Fresh", "text marks reused held")
START = {"hook_event_name": "SessionStart", "source": "startup"}


class Stock(dict):
    """{name: version} of memories, and the names of those that trust holds back."""

    held = ()


class Stream(io.StringIO):
    def __init__(self, data=b""):
        super().__init__()
        self.buffer = io.BytesIO(data)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    place = places.find(str(root))
    writing.make(place.workspace)
    trust.trust_workspace(place)
    return root


@pytest.fixture
def memories(monkeypatch):
    """Stand in for recall: return {name: version}, each of which matches a prompt that says its name."""
    stock = Stock(rule=1, fact=1)

    def fresh(place, query, known, *, start=False, objective=None):
        chosen = {name: str(version) for name, version in stock.items() if name in query or start and name == "rule"}
        new = {name: mark for name, mark in chosen.items() if known.get(name) != mark}
        told = " ".join(f"{name}{version}" for name, version in new.items()) + (f" for {objective}" if objective else "")
        return Fresh(told, chosen, len(chosen) - len(new), [name for name in stock.held if name in query or start])


    monkeypatch.setattr("engram.recall.fresh", fresh, raising=False)
    return stock


@pytest.fixture
def say(workspace, memories):
    """Return a function that reports an event and returns what would be injected (None: nothing)."""
    def report(event, host="claude", session="s", cwd=workspace, env=(), raw=None):
        if isinstance(event, str):
            event = {"hook_event_name": "UserPromptSubmit", "prompt": event}
        data = json.dumps({"session_id": session, "cwd": str(cwd), **event}).encode() if raw is None else raw
        context = Context(stdin=Stream(data), stdout=Stream(), stderr=Stream(), env={**os.environ, **dict(env)}, cwd="/")
        assert hook.main([host], context) == 0
        report.note = context.stderr.buffer.getvalue().decode()
        printed = context.stdout.buffer.getvalue().decode()
        report.printed = printed
        if host == "windsurf":
            return printed or None
        answer = json.loads(printed)
        assert bool(answer) == (answer != {})
        return answer.get("additional_context", answer.get("context", answer.get("hookSpecificOutput", {}).get("additionalContext")))
    return report


def settings(workspace, **values):
    (workspace / ".agents/.engram/engram.config.json").write_text(json.dumps(values))


def test_a_session_gets_a_memory_once_and_again_only_when_it_changed(say, memories):
    assert say(START) == "rule1"
    assert say("the fact") == "fact1"
    assert say("the fact and the rule") is None
    memories["fact"] = 2
    assert say("the fact and the rule") == "fact2"
    assert say("the rule") is None


def test_going_back_to_an_earlier_task_brings_nothing_twice(say):
    assert [say(prompt) for prompt in ("fact", "rule", "fact", "rule")] == ["fact1", "rule1", None, None]


def test_sessions_are_told_apart_and_hosts_that_name_none(say):
    assert say("fact") and say("fact", session="other") and say("fact", session="") and say("fact", session="", host="codex")
    assert say("fact") is None and say("fact", session="other") is None and say("fact", session="") is None


def test_a_session_reported_to_the_hooks_of_two_hosts_is_told_once(say):
    assert say("fact") and say("fact", host="codex") is None


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_after_a_new_start_of_the_session_memories_come_again(say, source):
    assert say(START) == "rule1" and say("fact") == "fact1"
    assert say({**START, "source": source}) == "rule1"
    assert say("fact") == "fact1" and say("fact") is None


@pytest.mark.parametrize("host, prompt, start, fact", [
    ("claude", "UserPromptSubmit", "rule1", None),  # brings back what came with prompts
    ("codex", "UserPromptSubmit", None, None),  # brings back everything
    ("gemini", "BeforeAgent", "rule1", "fact1"),  # brings back nothing of it
])
def test_a_resumed_session_gets_again_what_its_host_does_not_bring_back(say, memories, host, prompt, start, fact):
    prompt = {"hook_event_name": prompt, "prompt": "the fact"}
    assert say(START, host=host) == "rule1" and say(prompt, host=host) == "fact1"
    assert say({**START, "source": "resume"}, host=host) == start and say(prompt, host=host) == fact
    memories["rule"] = 2
    assert say({**START, "source": "startup"}, host=host) == "rule2"


def test_a_rule_that_came_with_a_prompt_does_not_come_again_when_the_session_is_resumed(say):
    assert say("the rule") == "rule1" and say({**START, "source": "resume"}) is None and say("the rule") is None


def test_one_start_reported_twice_is_told_once(say):
    assert say(START) == "rule1" and say(START) is None


def test_hooks_of_the_user_and_of_the_workspace_running_at_once_tell_a_prompt_once(say, workspace, memories, monkeypatch):
    both = threading.Barrier(2)
    got = hook_seen.Session.got

    def late(session, kinds):
        found = got(session, kinds)
        both.wait(10)  # both have looked before either claims
        return found

    monkeypatch.setattr(hook_seen.Session, "got", late)
    said = []
    def report():
        stdout = Stream()
        data = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "fact", "session_id": "s", "cwd": str(workspace)}).encode()
        hook.main(["claude"], Context(stdin=Stream(data), stdout=stdout, stderr=Stream(), env=os.environ, cwd="/"))
        said.append(stdout.buffer.getvalue())
    threads = [threading.Thread(target=report) for _ in range(2)]
    [thread.start() for thread in threads], [thread.join(20) for thread in threads]
    assert sorted(b"fact1" in text for text in said) == [False, True]


@pytest.mark.parametrize("read, told", [
    ("auto", ["rule1", "fact1", None]), ("startup", ["rule1", None, None]), ("always", ["rule1", "fact1", "fact1"]),
    ("manual", [None, None, None]), ("off", [None, None, None]),
])
def test_the_setting_read_says_when_hooks_load(say, workspace, read, told):
    settings(workspace, read=read)
    assert [say(START), say("fact"), say("fact")] == told


def test_proof_adds_one_line_that_says_what_was_loaded_reused_or_skipped(say, workspace, memories):
    settings(workspace, proof="compact")
    assert say(START).splitlines() == ["Engram proof: loaded 1.", "", "rule1"]
    assert say("fact and rule").splitlines() == ["Engram proof: loaded 1, reused 1.", "", "fact1"]
    assert say("fact") == "Engram proof: reused 1, unchanged in this session."
    assert say("nothing") == "Engram proof: skipped, nothing matches."
    settings(workspace, proof="compact", read="manual")
    assert say("fact") == "Engram proof: skipped, `read` is `manual`."


def test_windsurf_shows_its_proof_line_and_nothing_else(say, workspace):
    prompt = {"agent_action_name": "pre_user_prompt", "trajectory_id": "t", "tool_info": {"user_prompt": "the fact"}}
    assert say(prompt, host="windsurf", cwd=workspace) is None
    settings(workspace, proof="compact")
    assert say(prompt, host="windsurf", cwd=workspace) == \
        "Engram proof: 1 match this prompt (fact); hooks can't load them here, engram_load can."
    assert say({**prompt, "tool_info": {"user_prompt": "other"}}, host="windsurf", cwd=workspace) == \
        "Engram proof: skipped, nothing matches."


def test_cursor_gets_its_session_start(say):
    assert say({"hook_event_name": "sessionStart", "conversation_id": "c"}, host="cursor") == "rule1"


def test_opencode_gets_the_whole_text_for_each_prompt_less_what_its_start_brought(say, memories):
    assert say(START, host="opencode") == "rule1"
    assert [say("fact and rule", host="opencode") for _ in range(2)] == ["fact1", "fact1"]


def test_gemini_is_not_routed_by_what_was_injected_before(say):
    prompt = {"hook_event_name": "BeforeAgent", "prompt": "<hook_context>the fact</hook_context>\n\nthe rule"}
    assert say(prompt, host="gemini") == "rule1"


def test_the_objective_of_the_session_reaches_its_start(say):
    assert say(START, env={"ENGRAM_SESSION_OBJECTIVE": "release"}) == "rule1 for release"


def test_an_untrusted_workspace_gets_one_line_once_and_its_memories_after_a_look(say, workspace, memories):
    place = places.find(str(workspace))
    os.unlink(os.path.join(place.user_dir, trust.FILE))
    assert say(START) is None  # nothing in it, nothing to say
    (workspace / ".agents/.engram/rules").mkdir(exist_ok=True)
    (workspace / ".agents/.engram/rules/a.md").write_text("---\nid: a\n---\n")
    line = say({**START, "source": "resume"})
    assert line == hook_dose.UNSEEN and "\n" not in line
    assert say("fact") is None
    assert say("fact", session="other") == hook_dose.UNSEEN and say("fact", session="other") is None
    trust.trust_workspace(place)
    assert say("fact") == "fact1"


def test_a_rule_that_changed_since_the_last_look_is_left_out_and_said_once(say, memories):
    memories.held = ["evil"]
    line = hook_dose.HELD.format(1)
    assert say(START) == f"rule1\n\n{line}"
    assert say("evil") is None and say("fact evil") == "fact1"
    assert say("evil", session="other") == line and say("evil", session="other") is None


def test_the_folder_of_the_event_counts_for_store_and_settings_alike(say, workspace, tmp_path):
    inside = workspace / "src" / "deep"
    inside.mkdir(parents=True)
    settings(workspace, read="always")
    assert [say("fact", cwd=inside) for _ in range(2)] == ["fact1", "fact1"]


@pytest.mark.parametrize("host, empty", [("claude", "{}"), ("codex", "{}"), ("gemini", "{}"), ("cursor", "{}"), ("opencode", "{}"),
                                         ("windsurf", "")])
def test_without_a_store_the_host_gets_its_empty_answer_and_no_file_appears(say, tmp_path, host, empty, clean_environment):
    bare = tmp_path / "bare"
    bare.mkdir()
    data = os.path.join(clean_environment, "data")
    for name in ("SessionStart", "UserPromptSubmit", "BeforeAgent", "sessionStart", "pre_user_prompt"):
        say({"hook_event_name": name, "prompt": "the fact"}, host=host, cwd=bare, env={"ENGRAM_DATA_DIR": data})
        assert (say.printed, say.note) == (empty, "")
    assert os.listdir(bare) == [] and not os.path.exists(data)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[1]", b"{" * 100_000,
                                 b'{"cwd": 7, "hook_event_name": "UserPromptSubmit", "prompt": {}}'])
def test_whatever_comes_in_the_answer_is_the_empty_one(say, raw):
    assert say(None, raw=raw) is None and say.printed == "{}"
    assert say.note.count("\n") <= 1 and "Traceback" not in say.note


def test_an_unknown_host_and_any_failure_inside_end_well_and_say_why(say, memories, monkeypatch):
    assert say(START, host="emacs") is None and "no such host: emacs" in say.note
    monkeypatch.setattr("engram.recall.fresh", lambda *_, **__: 1 / 0)
    assert say(START) is None and "ZeroDivisionError" in say.note


def test_a_terminal_instead_of_an_event_is_told_what_belongs_there(workspace):
    stdin, stdout, stderr = Stream(), Stream(), Stream()
    stdin.isatty = lambda: True
    assert hook.main(["claude"], Context(stdin=stdin, stdout=stdout, stderr=stderr)) == 0
    assert stdout.buffer.getvalue() == b"{}" and b"on standard input" in stderr.buffer.getvalue()


def test_help_says_what_it_writes(workspace):
    stdout = Stream()
    assert hook.main(["--help"], Context(stdin=Stream(), stdout=stdout)) == 0
    assert b"no prompt text" in stdout.buffer.getvalue()


def test_no_word_of_a_prompt_is_kept_anywhere(say, workspace, clean_environment):
    say(START), say("the fact about Zanzibar")
    kept = b""
    for top in (workspace, clean_environment):
        for folder, _, names in os.walk(top):
            kept += b"".join(files.read(os.path.join(folder, name)) for name in names)
    assert b"fact" in kept and b"anzibar" not in kept


def test_the_record_is_private_and_outside_the_workspace(say, workspace, clean_environment):
    before = sorted(os.path.join(folder, name) for folder, _, names in os.walk(workspace) for name in names)
    say(START), say("fact")
    assert before == sorted(os.path.join(folder, name) for folder, _, names in os.walk(workspace) for name in names)
    assert os.stat(os.path.join(clean_environment, ".engram", hook_seen.FILE)).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_record_costs_one_repetition(say, clean_environment, damage):
    assert say("fact") == "fact1"
    with open(os.path.join(clean_environment, ".engram", hook_seen.FILE), "wb") as file:
        file.write(damage)
    assert [say("fact"), say("fact")] == ["fact1", None]


def test_where_nothing_can_be_recorded_memories_come_all_the_same(say, clean_environment):
    os.mkdir(os.path.join(clean_environment, ".engram", hook_seen.FILE))
    assert [say("fact"), say("fact")] == ["fact1", "fact1"] and "can't keep" in say.note


def test_old_sessions_are_forgotten(tmp_path):
    old, new = (hook_seen.Session(str(tmp_path), name) for name in ("old", "new"))
    old.begin("startup", {"a": "1"}, now=1000.0)
    new.begin("startup", {"b": "1"}, now=1000.0 + hook_seen.KEPT_SECONDS + 1)
    assert (old.got(), new.got()) == ({}, {"b": "1"})


def test_a_session_never_heard_of_got_nothing_and_asking_makes_no_file(tmp_path):
    assert hook_seen.Session(str(tmp_path / "none"), "s").got() == {}
    assert os.listdir(tmp_path) == []


def test_a_record_that_somebody_holds_is_an_error_and_not_a_wait_for_ever(tmp_path):
    session = hook_seen.Session(str(tmp_path), "s")
    session.claim({"a": "1"})
    holder = sqlite3.connect(session.file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        session.claim({"a": "2"})
    holder.close()
