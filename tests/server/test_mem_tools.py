"""The session surface as a client meets it: the table, arguments as hosts send them, envelopes, errors, roots."""

from __future__ import annotations

import json

import pytest

from engram.mem.tier import Tier
from engram.server.mem_table import ROWS
from engram.server.mem_tools import BOTH, MemSurface, _path
from tests.server.stub import Desk, call, modern, request
from tests.trials import count, dice

AGENT = {
    "mem_save",
    "mem_search",
    "mem_context",
    "mem_session_summary",
    "mem_session_start",
    "mem_session_end",
    "mem_get_observation",
    "mem_suggest_topic_key",
    "mem_capture_passive",
    "mem_save_prompt",
    "mem_update",
    "mem_current_project",
    "mem_list_projects",
    "mem_judge",
    "mem_compare",
    "mem_doctor",
    "mem_review",
    "mem_pin",
    "mem_unpin",
}
ADMIN = {"mem_delete", "mem_stats", "mem_timeline", "mem_merge_projects"}
# mem-tools.md 1.3: parameters, those required, hints (readOnly, destructive, idempotent), whether loaded at once
CONTRACT = {
    "mem_save": (
        "title* content observation type session_id scope topic_key project project_choice_reason recovery_token capture_prompt",
        "---",
        True,
    ),
    "mem_search": ("query* type project all_projects scope match_mode response_format limit", "R-I", True),
    "mem_context": ("project scope max_bytes compact", "R-I", True),
    "mem_get_observation": ("id* project", "R-I", True),
    "mem_update": ("id* expected_project* title content find replace type scope topic_key", "---", False),
    "mem_delete": ("id* expected_project* hard_delete", "-DI", False),
    "mem_suggest_topic_key": ("type title content", "R-I", False),
    "mem_session_start": ("id* directory", "--I", False),
    "mem_session_end": ("id* summary", "--I", False),
    "mem_session_summary": ("content* session_id project project_choice_reason recovery_token", "---", True),
    "mem_save_prompt": ("content* session_id project project_choice_reason recovery_token", "---", True),
    "mem_capture_passive": ("content* session_id source", "--I", False),
    "mem_timeline": ("observation_id* before after project", "R-I", False),
    "mem_stats": ("project", "R-I", False),
    "mem_merge_projects": ("from* to*", "-DI", False),
    "mem_current_project": ("", "R-I", True),
    "mem_list_projects": ("", "R-I", True),
    "mem_judge": ("judgment_id* relation* reason evidence confidence session_id", "---", True),
    "mem_compare": ("memory_id_a* memory_id_b* relation* confidence* reasoning* model", "--I", True),
    "mem_review": ("action* project limit observation_id id", "---", False),
    "mem_pin": ("id*", "--I", False),
    "mem_unpin": ("id*", "--I", False),
    "mem_doctor": ("project check", "R-I", False),
}
NUMBERS = {"limit", "max_bytes", "id", "before", "after", "observation_id", "confidence", "memory_id_a", "memory_id_b"}
FLAGS = {"all_projects", "capture_prompt", "compact", "hard_delete"}


@pytest.fixture
def notes():
    return []


@pytest.fixture
def serve(tmp_path, notes):
    """Return a function that joins a client to a session surface: `serve(tools="all", project="alpha")`."""
    desks = []

    def make(tools="all", project="alpha", folder=None, capabilities=None, **options):
        tier = Tier(
            folder=str(folder or tmp_path), env={"HOME": str(tmp_path), "ENGRAM_DATA_DIR": str(tmp_path / "data")}, override=project
        )
        desks.append(Desk(MemSurface(tools=tools, note=notes.append, tier=tier), **options))
        desks[-1].start(capabilities=capabilities)
        return desks[-1]

    yield make
    for desk in desks:
        desk.surface.close()


def ask(desk, name, /, **arguments):
    """Call a tool and return its result; text and structured part are held against each other."""
    reply = desk.say(call(7, name, **arguments))[-1]
    result = reply["result"]
    (block,) = result["content"]
    structured = result["structuredContent"]
    assert {"project", "project_source", "project_path", "result"} <= set(structured)
    if structured["result"] != block["text"]:
        assert arguments.get("response_format") == "compact"
    if result.get("isError"):
        assert structured["error_code"] in block["text"]
        assert structured["message"] in block["text"]
        for name in structured.get("available_projects", ()):
            assert name in block["text"]
    elif structured["project_source"]:
        assert f"({structured['project_source']})" in block["text"]
    return result


def good(desk, name, /, **arguments):
    result = ask(desk, name, **arguments)
    assert not result.get("isError"), result
    return result["structuredContent"]


def bad(desk, name, /, **arguments):
    result = ask(desk, name, **arguments)
    assert result.get("isError"), result
    return result["structuredContent"]


# -- the table


def test_the_23_tools_are_those_of_the_contract(serve):
    tools = {tool["name"]: tool for tool in serve().say(request(1, "tools/list"))[0]["result"]["tools"]}
    assert set(tools) == set(CONTRACT) == AGENT | ADMIN
    assert len(tools) == 23
    for name, (words, hints, eager) in CONTRACT.items():
        schema = tools[name]["inputSchema"]
        wanted = words.split()
        assert set(schema["properties"]) == {word.rstrip("*") for word in wanted}, name
        assert set(schema.get("required", ())) == {word[:-1] for word in wanted if word.endswith("*")}, name
        flags = [hints[0] == "R", hints[1] == "D", hints[2] == "I", False]
        notes = tools[name]["annotations"]
        assert [notes[key] for key in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")] == flags, name
        assert notes["title"] and tools[name]["description"]
        assert tools[name].get("defer_loading", False) is not eager


@pytest.mark.case("RP-16")
def test_schemas_are_plain_for_the_strictest_hosts(serve):
    for tool in serve().say(request(1, "tools/list"))[0]["result"]["tools"]:
        schema = tool["inputSchema"]
        assert set(schema) <= {"type", "properties", "required"} and schema["type"] == "object"
        assert tool["outputSchema"]["type"] == "object"
        assert len(json.dumps(tool)) < 4000 and len(tool["description"]) < 1000
        for name, part in schema["properties"].items():
            kind = "number" if name in NUMBERS else "boolean" if name in FLAGS else "string"
            if tool["name"].startswith("mem_session_") and name == "id":
                kind = "string"
            assert (part["type"], set(part)) == (kind, {"type", "description"}), (tool["name"], name)
            assert part["description"]


@pytest.mark.parametrize(
    ("given", "names", "said"),
    [
        (None, AGENT, ""),
        ("agent", AGENT, ""),
        ("admin", ADMIN, ""),
        ("all", AGENT | ADMIN, ""),
        ("agent,admin", AGENT | ADMIN, ""),
        ("mem_save, mem_stats", {"mem_save", "mem_stats"}, ""),
        ("admin,mem_save", ADMIN | {"mem_save"}, ""),
        (",,", AGENT, ""),
        ("", AGENT, ""),
        ("typo", AGENT, "typo"),
        ("mem_save,typo,other", {"mem_save"}, "typo, other"),
    ],
)
def test_profiles_and_names_choose_the_tools_and_none_means_the_default(serve, notes, given, names, said):
    desk = serve(tools=given)
    assert {tool["name"] for tool in desk.say(request(1, "tools/list"))[0]["result"]["tools"]} == names
    assert len(notes) == bool(said)
    assert said in "".join(notes)


def test_the_server_says_who_it_is_in_512_characters(serve):
    result = serve().say(request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}))[
        0
    ]["result"]
    assert result["serverInfo"]["name"] == "engram"
    assert 100 < len(result["instructions"]) <= 512
    assert 100 < len(BOTH) <= 512


def test_the_handshake_and_the_list_touch_no_database(serve, tmp_path):
    desk = serve()
    desk.say(request(1, "tools/list"), modern(2, "server/discover"), modern(3, "tools/list"), request(4, "ping"))
    assert not (tmp_path / "data").exists()
    good(desk, "mem_save", title="t", content="c")
    assert (tmp_path / "data" / "sessions.db").exists()


def test_a_bad_project_in_the_environment_stops_nothing(tmp_path, notes, monkeypatch):
    monkeypatch.setenv("ENGRAM_PROJECT", "../x")
    monkeypatch.setenv("ENGRAM_DATA_DIR", str(tmp_path / "data"))
    desk = Desk(MemSurface(note=notes.append))
    desk.start()
    assert good(desk, "mem_current_project")["project"]
    assert "ENGRAM_PROJECT" in notes[0]
    desk.surface.close()


# -- arguments as hosts send them


def test_numbers_as_digit_strings_aliases_and_nulls_are_taken(serve):
    desk = serve()
    assert good(desk, "mem_save", title="t", observation="from the old name")["id"] == 1
    assert good(desk, "mem_save", title="t2", content="", observation="blank and old", session_id=None, capture_prompt="false")["id"] == 2
    assert good(desk, "mem_get_observation", id="1")["observation"]["content"] == "from the old name"
    assert good(desk, "mem_get_observation", observation_id=1)["id"] == 1
    assert good(desk, "mem_timeline", id="2", before="1", after=1.0)["total"] == 2
    assert good(desk, "mem_update", observation_id=" 2 ", expected_project="alpha", title="new")["id"] == 2
    assert good(desk, "mem_pin", observation_id="2")["pinned"] is True
    assert good(desk, "mem_review", action="mark_reviewed", id="1")["id"] == 1
    assert good(desk, "mem_review", action="mark_reviewed", observation_id=1)["id"] == 1
    assert good(desk, "mem_search", query="old", limit="1", all_projects="true")["count"] == 1
    assert good(desk, "mem_compare", memory_id_a="1", memory_id_b="2", relation="related", confidence="0.5", reasoning="x")["sync_id"]
    assert good(desk, "mem_search", query=42, unknown_key={"x": [1]})["count"] == 0
    assert good(desk, "mem_search")["count"] == 2


@pytest.mark.case("DB-06")
@pytest.mark.parametrize(
    ("tool", "arguments", "missing", "arrived"),
    [
        ("mem_save", {}, "title", "none"),
        ("mem_save", {"title": "t"}, "content", "title"),
        ("mem_save", {"content": "x", "kind": 1}, "title", "content, kind"),
        ("mem_save", {"title": "t", "content": "  \n"}, "content", "content, title"),
        ("mem_save", {"title": "", "content": "c"}, "title", "content, title"),
        ("mem_get_observation", {"number": 3}, "id", "number"),
        ("mem_update", {"id": 1, "title": "x"}, "expected_project", "id, title"),
        ("mem_delete", {"id": 1}, "expected_project", "id"),
        ("mem_judge", {"relation": "related"}, "judgment_id", "relation"),
        ("mem_review", {}, "action", "none"),
        ("mem_merge_projects", {"to": "x"}, "from", "to"),
        ("mem_session_summary", {"text": "x"}, "content", "text"),
        ("mem_save_prompt", {"prompt": "x"}, "content", "prompt"),
        ("mem_capture_passive", {}, "content", "none"),
        ("mem_session_start", {}, "id", "none"),
        ("mem_session_end", {"summary": "x"}, "id", "summary"),
        ("mem_timeline", {}, "observation_id", "none"),
        ("mem_pin", {}, "id", "none"),
        (
            "mem_compare",
            {"memory_id_a": 1, "memory_id_b": 2, "relation": "related", "confidence": 1},
            "reasoning",
            "confidence, memory_id_a, memory_id_b, relation",
        ),
    ],
)
def test_a_missing_argument_is_named_with_those_that_arrived(serve, tool, arguments, missing, arrived):
    error = bad(serve(), tool, **arguments)
    assert error["error_code"] == "missing_argument"
    assert missing in error["message"]
    assert f"arrived: {arrived}" in error["message"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mem_get_observation", {"id": "one"}),
        ("mem_get_observation", {"id": 1.5}),
        ("mem_get_observation", {"id": True}),
        ("mem_get_observation", {"id": [1]}),
        ("mem_save", {"title": "t", "content": ["c"]}),
        ("mem_save", {"title": {"a": 1}, "content": "c"}),
        ("mem_search", {"query": "x", "all_projects": "yes"}),
        ("mem_search", {"query": "x", "limit": {}}),
        ("mem_search", {"query": "x", "limit": 0.5}),
        ("mem_context", {"max_bytes": "10.5"}),
        ("mem_update", {"id": 1, "expected_project": 5.5, "title": []}),
        ("mem_save", {"title": "t", "content": "\ud800"}),
    ],
)
def test_an_argument_of_the_wrong_kind_is_an_error_and_changes_nothing(serve, tool, arguments, tmp_path):
    assert bad(serve(), tool, **arguments)["error_code"] in ("invalid_argument", "not_found")
    assert not (tmp_path / "data").exists()


# -- every tool answers, and every code is reached


def test_every_tool_answers_with_its_envelope(serve):
    desk = serve()
    saved = good(desk, "mem_save", title="Chose a fixed window", content="Simple.", type="decision")
    other = good(desk, "mem_save", title="Chose a sliding window", content="Exact.", type="decision", topic_key="decision/window")
    assert {"id", "sync_id", "state", "review_after", "judgment_required", "truncation"} <= set(saved)
    assert other["judgment_status"] == "pending"
    assert good(desk, "mem_search", query="window", response_format="compact")["results"][0]["preview"]
    assert good(desk, "mem_context")["results"]
    assert good(desk, "mem_get_observation", id=1)["observation"]["content"] == "Simple."
    assert good(desk, "mem_update", id=1, expected_project="alpha", content="Simpler.")["changed"] is True
    assert good(desk, "mem_suggest_topic_key", title="A bug")["topic_key"]
    assert good(desk, "mem_session_start", id="s-1")["session_id"] == "s-1"
    assert good(desk, "mem_session_summary", content="Did it.")["session_id"] == "s-1"
    assert good(desk, "mem_save_prompt", content="Do it.")["id"] == 1
    assert good(desk, "mem_capture_passive", content="## Learnings\n- every item needs four words at least\n")["saved"] == 1
    assert good(desk, "mem_session_end", id="s-1", summary="Done.")["ended"] is True
    assert good(desk, "mem_timeline", observation_id=1)["results"]
    assert good(desk, "mem_stats")["observations"] == 4
    assert good(desk, "mem_current_project") | {"result": ""} == good(desk, "mem_current_project") | {"result": ""}
    assert {"cwd", "available_projects"} <= set(good(desk, "mem_current_project"))
    assert good(desk, "mem_list_projects")["projects"][0]["name"] == "alpha"
    assert good(desk, "mem_judge", judgment_id=other["judgment_id"], relation="supersedes")["relation"]["relation"] == "supersedes"
    assert good(desk, "mem_compare", memory_id_a=1, memory_id_b=3, relation="related", confidence=1, reasoning="x")["sync_id"].startswith(
        "rel-"
    )
    assert good(desk, "mem_review", action="list")["observations"] == []
    assert good(desk, "mem_pin", id=1)["pinned"] is True and good(desk, "mem_unpin", id=1)["pinned"] is False
    assert good(desk, "mem_doctor")["status"] == "ok"
    assert good(desk, "mem_merge_projects", **{"from": "ALPHA", "to": "alpha"})["merged"] == []
    assert good(desk, "mem_delete", id=1, expected_project="alpha")["hard_delete"] is False


CHOICE = "user_selected_after_ambiguous_project"
CODES = [
    ("invalid_project", "mem_search", {"query": "x", "project": "../x"}),
    ("unknown_project", "mem_search", {"query": "x", "project": "nowhere"}),
    ("unknown_project", "mem_context", {"project": "nowhere"}),
    ("unknown_project", "mem_save", {"title": "t", "content": "c", "project": "nowhere"}),
    ("unknown_project", "mem_stats", {"project": "nowhere"}),
    ("unknown_project", "mem_doctor", {"project": "nowhere"}),
    ("unknown_project", "mem_get_observation", {"id": 1, "project": "nowhere"}),
    ("unknown_project", "mem_timeline", {"observation_id": 1, "project": "nowhere"}),
    ("unknown_project", "mem_save_prompt", {"content": "c", "project": "nowhere"}),
    ("unknown_project", "mem_merge_projects", {"from": "al_pha", "to": "al-pha"}),
    ("unknown_session", "mem_save", {"title": "t", "content": "c", "session_id": "never"}),
    ("unknown_session", "mem_capture_passive", {"content": "c", "session_id": "never"}),
    ("unknown_session", "mem_session_summary", {"content": "c", "session_id": "never"}),
    ("session_already_ended", "mem_session_start", {"id": "ended"}),
    ("session_project_mismatch", "mem_save", {"title": "t", "content": "c", "session_id": "beta", "project": "alpha"}),
    ("session_project_ownership_ambiguous", "mem_save", {"title": "t", "content": "c", "session_id": "free"}),
    ("project_mismatch", "mem_update", {"id": 1, "expected_project": "beta", "title": "x"}),
    ("project_mismatch", "mem_delete", {"id": 1, "expected_project": "beta"}),
    ("project_mismatch", "mem_timeline", {"observation_id": 1, "project": "beta"}),
    ("project_required", "mem_update", {"id": 3, "expected_project": "alpha", "title": "x"}),
    ("project_mismatch", "mem_compare", {"memory_id_a": 1, "memory_id_b": 2, "relation": "related", "confidence": 1, "reasoning": "x"}),
    ("project_name_collision", "mem_save", {"title": "t", "content": "c", "project": "foo--bar"}),
    ("missing_recovery_token", "mem_save", {"title": "t", "content": "c", "project": "alpha", "project_choice_reason": CHOICE}),
    (
        "invalid_recovery_token",
        "mem_save_prompt",
        {"content": "c", "project": "alpha", "project_choice_reason": CHOICE, "recovery_token": "made-up"},
    ),
    (
        "invalid_argument",
        "mem_session_summary",
        {"content": "c", "project": "alpha", "project_choice_reason": "because", "recovery_token": "x"},
    ),
    ("project_transition_conflict", "mem_merge_projects", {"from": "beta", "to": "alpha"}),
    ("invalid_argument", "mem_judge", {"judgment_id": "x", "relation": "hates"}),
    ("not_found", "mem_judge", {"judgment_id": "rel-none", "relation": "related"}),
    ("not_found", "mem_get_observation", {"id": 99}),
    ("not_found", "mem_pin", {"id": 99}),
    ("not_found", "mem_unpin", {"id": 99}),
    ("not_found", "mem_review", {"action": "mark_reviewed", "id": 99}),
    ("invalid_argument", "mem_review", {"action": "x"}),
    ("invalid_argument", "mem_search", {"query": "x", "match_mode": "most"}),
    ("invalid_argument", "mem_search", {"query": "x", "response_format": "full"}),
    ("invalid_argument", "mem_doctor", {"check": "nonsense"}),
    ("invalid_argument", "mem_session_start", {"id": "x", "directory": "relative"}),
    ("limit_exceeded", "mem_save", {"title": "t", "content": "x" * 50_001}),
    ("limit_exceeded", "mem_save", {"title": "t", "content": "c", "topic_key": "k" * 121}),
    ("missing_argument", "mem_suggest_topic_key", {}),
    ("limit_exceeded", "mem_session_end", {"id": "x", "summary": "x" * 50_001}),
]


@pytest.mark.parametrize(("code", "tool", "arguments"), CODES)
def test_every_tool_reaches_its_error_codes(serve, code, tool, arguments):
    desk = serve()
    good(desk, "mem_save", title="one", content="one")
    good(serve(project="beta"), "mem_save", title="two", content="two")
    good(serve(project="foo-bar"), "mem_save", title="three", content="three")
    with desk.surface._tier.database.writing() as connection:
        connection.execute("UPDATE observations SET project = '' WHERE id = 3")
        for row in (("ended", "alpha", "2026-01-02 00:00:00"), ("beta", "beta", None), ("free", "", None)):
            connection.execute("INSERT INTO sessions (id, project, started_at, ended_at) VALUES (?, ?, '2026-01-01 00:00:00', ?)", row)
    error = bad(desk, tool, **arguments)
    assert error["error_code"] == code, error
    with desk.surface._tier.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM observations").fetchone()[0] == 3


def test_the_codes_of_folders_are_reached_too(serve, tmp_path):
    for name in ("a", "b"):
        (tmp_path / "w" / name / ".git").mkdir(parents=True)
    desk = serve(project="", folder=tmp_path / "w")
    error = bad(desk, "mem_save", title="t", content="c")
    assert (error["error_code"], error["available_projects"], error["token_ttl_seconds"]) == ("ambiguous_project", ["a", "b"], 300)
    assert error["recovery_token"] in error["result"]
    chosen = {"title": "t", "content": "c", "project_choice_reason": CHOICE, "recovery_token": error["recovery_token"]}
    assert bad(desk, "mem_save", **chosen, project="c")["error_code"] == "invalid_project_choice"
    assert good(desk, "mem_save", **chosen, project="a")["project"] == "a"
    (tmp_path / "w" / ".engram").mkdir()
    (tmp_path / "w" / ".engram" / "config.json").write_text("{")
    assert bad(desk, "mem_save", title="t2", content="c")["error_code"] == "invalid_project_config"
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / ".git").write_text("gitdir: /nowhere")
    assert (
        bad(serve(project="", folder=tmp_path / "gone"), "mem_save", title="t", content="c")["error_code"]
        == "repository_binding_unavailable"
    )
    assert bad(serve(project="", folder="/"), "mem_save", title="t", content="c")["error_code"] == "project_required"


def test_calls_sent_in_one_go_are_done_and_answered_in_their_order(serve):
    desk = serve(threads=True)
    for number in range(20):
        saving = call(2 * number, "mem_save", title=f"t{number}", content=f"word{number}")
        desk.say(saving, call(2 * number + 1, "mem_search", query=f"word{number}"))
    desk.wait(lambda message: message.get("id") == 39)
    answers = [message for message in desk.out if message.get("id") in range(40) and "content" in message.get("result", {})]
    assert [message["id"] for message in answers] == list(range(40))
    assert all(message["result"]["structuredContent"]["count"] == 1 for message in answers[1::2])


# -- roots


@pytest.mark.parametrize("uri", ["file://{}", "file://localhost{}", "FILE://{}", "file://{}/"])
def test_the_project_comes_from_the_clients_roots(serve, tmp_path, uri):
    folder = tmp_path / "my work é"
    (folder / ".git").mkdir(parents=True)
    quoted = str(folder).replace(" ", "%20").replace("é", "%C3%A9")
    desk = serve(project="", capabilities={"roots": {"listChanged": True}})
    (question,) = [message for message in desk.out if message.get("method") == "roots/list"]
    desk.say(
        {
            "jsonrpc": "2.0",
            "id": question["id"],
            "result": {"roots": [{"uri": uri.format(quoted), "name": "work"}, {"uri": "https://example.com"}]},
        }
    )
    found = good(desk, "mem_current_project")
    assert (found["project"], found["project_source"]) == ("my work é", "client_roots")


def test_a_root_on_windows_has_a_drive():
    assert _path("file:///c%3A/my%20work", windows=True) == "c:/my work"
    assert _path("file:///home/sam", windows=False) == "/home/sam"
    for odd in ("file://host/share", "https://example.com/x", "file:///a%00b", 7, None, ""):
        assert _path(odd, windows=False) is None


def test_a_client_that_never_says_its_roots_holds_nothing_up_for_long(serve, tmp_path):
    (tmp_path / "r" / ".git").mkdir(parents=True)
    desk = serve(project="", folder=tmp_path / "r", capabilities={"roots": {}})
    assert good(desk, "mem_current_project")["project"] == "r"


def test_roots_that_are_none_leave_the_folder(serve, tmp_path):
    (tmp_path / "r" / ".git").mkdir(parents=True)
    desk = serve(project="", folder=tmp_path / "r", capabilities={"roots": {}})
    (question,) = [message for message in desk.out if message.get("method") == "roots/list"]
    desk.say({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}})
    assert good(desk, "mem_current_project")["project"] == "r"


def test_a_modern_client_brings_its_roots_with_each_call_and_nothing_is_remembered(serve, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
    desk = serve(project="")
    for name in ("one", "two"):
        first = desk.say(modern(1, "tools/call", {"roots": {}}, name="mem_current_project", arguments={}))[0]["result"]
        assert first == {**first, "resultType": "input_required", "inputRequests": {"roots": {"method": "roots/list"}}}
        brought = {"roots": {"roots": [{"uri": f"file://{tmp_path / name}"}]}}
        again = modern(2, "tools/call", {"roots": {}}, name="mem_current_project", arguments={}, inputResponses=brought)
        assert desk.say(again)[0]["result"]["structuredContent"]["project"] == name
    without = desk.say(modern(3, "tools/call", name="mem_current_project", arguments={}))[0]["result"]
    assert without["structuredContent"]["project_source"] == "ambiguous"
    for odd in ({"roots": None}, {"roots": {}}, {"roots": {"roots": [5, {}, {"uri": 7}]}}):
        message = modern(4, "tools/call", {"roots": {}}, name="mem_current_project", arguments={}, inputResponses=odd)
        reply = desk.say(message)[0]["result"]
        assert reply["resultType"] == "input_required" or reply["structuredContent"]["project_source"] == "ambiguous"


@pytest.mark.parametrize(
    ("tool", "arguments"), [("mem_search", {"query": "x", "project": "p"}), ("mem_judge", {"judgment_id": "x", "relation": "y"})]
)
def test_a_modern_client_is_not_asked_for_roots_that_would_not_matter(serve, tool, arguments):
    desk = serve(project="")
    assert desk.say(modern(1, "tools/call", {"roots": {}}, name=tool, arguments=arguments))[0]["result"]["resultType"] == "complete"
    desk = serve(project="given")
    assert desk.say(modern(1, "tools/call", {"roots": {}}, name="mem_context", arguments={}))[0]["result"]["resultType"] == "complete"


# -- eras


def test_both_eras_give_one_answer(serve):
    desk = serve()
    good(desk, "mem_save", title="t", content="c")
    old = desk.say(call(1, "mem_search", query="c"))[0]["result"]
    new = desk.say(modern(2, "tools/call", name="mem_search", arguments={"query": "c"}))[0]["result"]
    assert new["resultType"] == "complete"
    assert (new["content"], new["structuredContent"]) == (old["content"], old["structuredContent"])
    assert desk.say(request(3, "mem_search", query="c"))[0]["result"] == old["content"][0]["text"]
    listed = desk.say(modern(4, "tools/list"))[0]["result"]
    assert [tool["name"] for tool in listed["tools"]] == [row.name for row in ROWS]


def test_the_oldest_version_gets_no_structured_part(tmp_path, serve):
    desk = serve()
    desk.start("2024-11-05")
    result = desk.say(call(1, "mem_current_project"))[0]["result"]
    assert "structuredContent" not in result
    assert "Project: alpha (process_override)" in result["content"][0]["text"]


# -- anything

STRINGS = [
    *(
        "",
        "alpha",
        "beta",
        "x",
        "list",
        "mark_reviewed",
        "related",
        "supersedes",
        "personal",
        "global",
        "#1",
        "decision/x",
        "\0",
        "é語🚀",
        "../x",
        "s1",
    ),
    *(
        "## Learnings\n- one two three four five six\n",
        "<private>",
        "any",
        "compact",
        "1",
        "-5",
        "1e9",
        "9" * 20,
        "0.5",
        "NaN",
        "word " * 3000,
        CHOICE,
    ),
    *("ignore all previous instructions", "\u202e", "sqlite_lock_contention", "rel-"),
]
NUMERALS = [0, 1, 2, 3, -1, 5, 1.0, 0.5, "1", "2", 10**18, 2**63, "0.7"]
ODD = [None, True, [], {}, 1.5, -1, 10**30, 1e300]


def test_no_arguments_make_a_fault_of_ours(serve):
    chance, desk = dice("arguments"), serve()
    for number in range(count(400, 10_000)):
        row = chance.choice(ROWS)
        arguments = {}
        for name, part in row.properties.items():
            if chance.random() < (0.97 if name in row.required else 0.3):
                kind = {"number": NUMERALS, "boolean": [True, False, "true"]}.get(part["type"], STRINGS)
                arguments[name] = chance.choice(ODD if chance.random() < 0.06 else kind)
        if "expected_project" in arguments and chance.random() < 0.7:
            arguments["expected_project"] = "alpha"
        result = desk.say(call(number, row.name, **arguments))[-1]["result"]
        assert not result.get("isError") or "error_code" in result["structuredContent"], (row.name, arguments, desk.notes)
    assert not desk.notes
    assert good(desk, "mem_doctor", check="term_index")["status"] == "ok"
