"""The loop joined to a stub surface in memory: results in each version's shape, calls side by side, faults kept apart."""
from __future__ import annotations

import json

import pytest

from engram.protocol import eras
from tests.server.stub import Desk, Stub, call, modern, request


def reply(messages, id):
    found = [message for message in messages if message.get("id") == id and "method" not in message]
    assert len(found) == 1, messages
    return found[0]


@pytest.mark.parametrize("version", eras.LEGACY_VERSIONS)
def test_a_tool_row_has_the_fields_of_its_version_and_no_more(version):
    desk = Desk()
    desk.start(version)
    row = desk.say(request(1, "tools/list"))[0]["result"]["tools"][0]
    wanted = {"name", "description", "inputSchema"}
    if version >= "2025-03-26":
        wanted |= {"annotations"}
    if version >= "2025-06-18":
        wanted |= {"title", "outputSchema"}
    assert set(row) == wanted


@pytest.mark.parametrize("version", eras.LEGACY_VERSIONS)
def test_structured_content_comes_in_the_versions_that_know_it(version):
    desk = Desk()
    desk.start(version)
    result = desk.say(call(1, "echo", text="hi"))[0]["result"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert ("structuredContent" in result) == (version >= "2025-06-18")
    assert "isError" not in result and "resultType" not in result


def test_the_envelope_has_the_text_of_the_content():
    desk = Desk()
    result = desk.say(modern(1, "tools/call", name="echo", arguments={"text": "hi"}))[0]["result"]
    assert result["structuredContent"] == {"contract_version": "1", "ok": True, "data": {"length": 2, "text": "hi"}, "diagnostics": []}
    assert result["resultType"] == "complete" and "ttlMs" not in result


@pytest.mark.parametrize("name, arguments, code, said", [
    ("echo", {"text": 5}, "ENG_USAGE", "text must be a string"), ("echo", {"nope": 1}, "ENG_USAGE", "nope is not an argument"),
    ("keep", {}, "ENG_USAGE", "text is missing"), ("refuse", {}, "ENG_REFUSED", "line 3"), ("break", {}, "ENG_INTERNAL", "internal error"),
])
def test_a_failed_call_is_an_error_result_with_a_code(name, arguments, code, said):
    desk = Desk()
    desk.start()
    result = desk.say(call(1, name, **arguments))[0]["result"]
    structured = result["structuredContent"]
    assert result["isError"] is True and structured["ok"] is False and structured["error"]["code"] == code
    assert said in structured["error"]["message"] and structured["data"]["text"] == result["content"][0]["text"]
    assert desk.surface.written == []


def test_a_fault_of_ours_goes_to_stderr_and_not_onto_the_wire():
    desk = Desk()
    desk.start()
    replies = desk.say(call(1, "break"), request(2, "ping"))
    assert "ZeroDivisionError" in desk.notes[0] and "ZeroDivisionError" not in json.dumps(replies) and reply(replies, 2)["result"] == {}


def test_a_fault_in_a_resource_answers_all_the_same():
    class Broken(Stub):
        def read(self, context, uri):
            raise OSError("gone")

    desk = Desk(Broken())
    desk.start()
    assert desk.say(request(1, "resources/read", uri="stub://a"))[0]["error"]["code"] == -32603


def test_an_unknown_tool_and_an_unknown_prompt_are_bad_params():
    desk = Desk()
    desk.start()
    replies = desk.say(call(1, "nope"), request(2, "prompts/get", name="nope"), modern(3, "tools/call", name="nope"))
    assert [message["error"]["code"] for message in replies] == [-32602] * 3


def test_a_resource_that_does_not_exist_is_told_as_each_era_tells_it():
    desk = Desk()
    desk.start()
    legacy, now, odd = desk.say(request(1, "resources/read", uri="stub://z"), modern(2, "resources/read", uri="stub://z"),
                                request(3, "resources/read", uri="stub://\ud800"))
    assert (legacy["error"]["code"], now["error"]["code"], odd["error"]["code"]) == (-32002, -32602, -32002)
    assert legacy["error"]["data"] == now["error"]["data"] == {"uri": "stub://z"}


def test_resources_and_prompts_are_listed_and_read():
    desk = Desk()
    desk.start("2025-03-26")
    listed, templates, read, prompts, prompt = desk.say(
        request(1, "resources/list"), request(2, "resources/templates/list"), request(3, "resources/read", uri="stub://a"),
        request(4, "prompts/list"), request(5, "prompts/get", name="list"))
    assert listed["result"] == {"resources": [{"uri": "stub://a", "name": "a"}]}  # the title came in 2025-06-18
    assert templates["result"] == {"resourceTemplates": [{"uriTemplate": "stub://{x}", "name": "x"}]}
    assert read["result"] == {"contents": [{"uri": "stub://a", "text": "alpha"}]}
    assert prompts["result"]["prompts"]
    assert prompt["result"] == {"description": "A prompt", "messages": [{"role": "user", "content": {"type": "text", "text": "Do it."}}]}


def test_a_surface_without_resources_and_prompts_answers_probes_with_empty_lists():
    surface = Stub()
    surface.resources = surface.prompts = None
    desk = Desk(surface)
    assert desk.start()["capabilities"] == {"tools": {}, "logging": {}}
    lists = desk.say(request(1, "resources/list"), request(2, "resources/templates/list"), request(3, "prompts/list"))
    assert [list(message["result"].values()) for message in lists] == [[[]], [[]], [[]]]
    missing = desk.say(request(4, "resources/read", uri="x:y"), request(5, "prompts/get", name="x"))
    assert [message["error"]["code"] for message in missing] == [-32002, -32602]


def test_a_bare_tool_method_returns_plain_text_or_an_error():
    desk = Desk()
    desk.start()
    good, wrong, refused = desk.say(request(1, "echo", text="hi"), request(2, "echo", text=5), request(3, "refuse"))
    assert good["result"] == "hi"
    assert wrong["error"]["code"] == -32602 and "text" in wrong["error"]["message"]
    assert refused["error"]["code"] == -32603 and refused["error"]["data"] == {"code": "ENG_REFUSED"}


def test_an_answer_that_no_client_would_take_is_an_error_that_says_so():
    surface = Stub()
    surface.tools[0].input["properties"]["text"] = {"type": "string"}
    desk = Desk(surface)
    desk.start()
    result = desk.say(call(1, "echo", text="x" * 900_000))[0]["result"]
    assert result["isError"] and "too long" in result["content"][0]["text"]


@pytest.mark.parametrize("capabilities, asked", [({"roots": {}}, True), ({"roots": {"listChanged": True}}, True), ({}, False)])
def test_a_surface_that_wants_roots_gets_them_from_a_client_that_has_them(capabilities, asked):
    surface = Stub()
    surface.wants_roots = True
    desk = Desk(surface)
    desk.start(capabilities=capabilities)
    requests = [message for message in desk.out if message.get("method") == "roots/list"]
    assert bool(requests) == asked and surface.heard[0] == ("initialised", "test")
    if asked:
        desk.say({"jsonrpc": "2.0", "id": requests[0]["id"], "result": {"roots": [{"uri": "file:///a", "name": "a"}, 5]}})
        assert surface.heard[-1] == ("roots", [{"uri": "file:///a", "name": "a"}])
        desk.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        again = desk.out[-1]
        assert again["method"] == "roots/list" and again["id"] != requests[0]["id"]
        desk.say({"jsonrpc": "2.0", "id": again["id"], "error": {"code": -32601, "message": "no"}})
        assert surface.heard[-1] == ("roots", [])


def test_calls_run_side_by_side_and_ping_waits_for_none():
    desk = Desk(threads=True)
    desk.start()
    for id in range(10, 18):  # every worker is taken
        desk.say(call(id, "hold"))
    desk.say(request(1, "ping"), request(2, "tools/list"), call(3, "echo", text="waits for a worker"))
    assert {message["id"] for message in desk.out if "result" in message} >= {1, 2}
    desk.surface.go.set()
    for id in (*range(10, 18), 3):
        desk.wait(lambda message, id=id: message.get("id") == id)


def test_a_cancelled_modern_call_is_not_answered_and_a_legacy_one_under_way_may_be():
    desk = Desk(threads=True)
    desk.start()
    for message in (call(1, "hold"), modern(2, "tools/call", name="hold")):
        desk.say(message, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}})
    desk.surface.go.set()
    assert desk.workers.idle(10)
    assert [message["id"] for message in desk.out if message.get("id") in (1, 2)] == [1]


def test_a_call_that_was_cancelled_before_it_could_ask_asks_nothing():
    desk = Desk(threads=True)
    desk.start(capabilities={"elicitation": {}})
    keep = desk.surface.tools[1].run
    desk.surface.tools[1].run = lambda context, arguments: (desk.surface.go.wait(30), keep(context, arguments))[1]
    desk.say(call(1, "keep", text="x"), {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    desk.surface.go.set()
    assert desk.workers.idle(10)
    assert [message for message in desk.out if message.get("id") != 0] == [] and desk.surface.written == []
