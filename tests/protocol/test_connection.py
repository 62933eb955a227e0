"""The protocol core joined to nothing: lines in, events and lines out (mcp.md, Two eras in one process)."""
from __future__ import annotations

import json

import pytest

from engram.protocol import eras
from engram.protocol.connection import Answer, Cancelled, Connection, Face, Initialised, Request, RootsChanged, Send
from tests.server.stub import NAMESPACE, initialize, modern, request

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def connection(version=None, capabilities=None):
    made = Connection(Face({"name": "x", "version": "1", "title": "X"}, "Use it.", {"tools": {}}), ["engram_load"])
    if version:
        receive(made, initialize(version, capabilities))
    return made


def receive(connection, message):
    """Take a message; bytes to send come back as messages."""
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    return [json.loads(event.data) if isinstance(event, Send) else event for event in connection.receive(line)]


def one(connection, message):
    found = receive(connection, message)
    assert len(found) == 1, found
    return found[0]


def code(connection, message):
    return one(connection, message)["error"]["code"]


# -- eras


@pytest.mark.parametrize("message, era", [
    (request(1, "tools/list"), "legacy"),
    (request(1, "tools/list", _meta={"progressToken": 1}), "legacy"),
    (request(1, "tools/list", _meta=None), "legacy"),
    (modern(1, "tools/list"), "modern"),
])
def test_the_era_is_that_of_the_message(message, era):
    event = one(connection("2025-11-25"), message)
    assert isinstance(event, Request) and event.era == era


@pytest.mark.parametrize("key", ["protocolVersion", "clientCapabilities", "clientInfo"])
def test_each_modern_key_claims_the_modern_era_and_the_rest_is_asked_for(key):
    value = "2026-07-28" if key == "protocolVersion" else {}
    assert code(connection("2025-11-25"), request(1, "tools/list", _meta={NAMESPACE + key: value})) == -32602


def test_discovery_without_a_version_is_bad_params():
    assert code(connection(), request(1, "server/discover")) == -32602
    assert code(connection("2025-11-25"), request(1, "server/discover")) == -32602


def test_client_info_is_not_required():
    message = modern(1, "server/discover")
    del message["params"]["_meta"][NAMESPACE + "clientInfo"]
    assert "result" in one(connection(), message)


@pytest.mark.parametrize("version, wanted", [
    ("2025-11-25", -32022), ("2099-01-01", -32022), ("", -32022), (7, -32602), (None, -32602), ([], -32602),
])
def test_another_modern_version_is_refused_with_what_is_supported(version, wanted):
    message = modern(1, "tools/list")
    message["params"]["_meta"][NAMESPACE + "protocolVersion"] = version
    error = one(connection(), message)["error"]
    assert error["code"] == wanted
    if wanted == -32022:
        assert error["data"] == {"supported": ["2026-07-28"], "requested": version}


def test_nothing_is_remembered_from_a_modern_request():
    made = connection()
    one(made, modern(1, "tools/list", {"elicitation": {}}))
    assert code(made, request(2, "tools/list")) == -32600
    receive(made, initialize("2025-06-18"))
    assert not one(made, request(3, "tools/list")).shows_forms
    assert not one(made, modern(4, "tools/list")).shows_forms


@pytest.mark.parametrize("method", ["ping", "initialize", "engram_load", "logging/setLevel", "resources/subscribe", "nope",
                                    "subscriptions/listen"])
def test_methods_that_the_modern_era_lacks(method):
    assert code(connection(), modern(1, method)) == -32601


def test_a_log_level_is_taken_and_a_wrong_one_is_not():
    made = connection("2025-11-25")
    assert one(made, request(1, "logging/setLevel", level="debug"))["result"] == {}
    assert code(made, request(2, "logging/setLevel", level="loud")) == code(made, request(3, "logging/setLevel")) == -32602


@pytest.mark.parametrize("method", ["nope", "resources/subscribe", "completion/complete", "subscriptions/listen", ""])
def test_methods_that_the_legacy_era_lacks(method):
    assert code(connection("2025-11-25"), request(1, method)) == -32601


# -- handshake


@pytest.mark.parametrize("offered, answered", [
    *((version, version) for version in eras.LEGACY_VERSIONS),
    ("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25"), ("2024-10-07", "2025-11-25"), ("", "2025-11-25"),
])
def test_a_known_version_is_echoed_and_an_unknown_one_never(offered, answered):
    assert one(connection(), initialize(offered))["result"]["protocolVersion"] == answered


@pytest.mark.parametrize("change", [{"protocolVersion": None}, {"protocolVersion": 5}, {"capabilities": None}, {"capabilities": []},
                                    {"clientInfo": "x"}])
def test_an_incomplete_initialize_is_bad_params(change):
    message = initialize()
    message["params"].update(change)
    assert code(connection(), message) == -32602
    assert code(connection(), request(1, "initialize")) == -32602


def test_before_initialize_only_ping_is_served_and_the_error_names_both_ways_in():
    made = connection()
    assert one(made, request(0, "ping")) == {"jsonrpc": "2.0", "id": 0, "result": {}}
    error = one(made, request(1, "tools/list"))["error"]
    assert error["code"] == -32600 and "initialize" in error["message"] and "2026-07-28" in error["message"]
    assert code(made, request(2, "engram_load")) == -32600


def test_requests_right_after_initialize_are_served_without_waiting_for_initialized():
    assert isinstance(one(connection("2025-11-25"), request(1, "tools/list")), Request)


def test_a_second_initialize_starts_anew():
    made = connection("2025-11-25", {"elicitation": {}})
    assert one(made, request(1, "tools/list")).shows_forms
    assert one(made, initialize("2024-11-05"))["result"]["protocolVersion"] == "2024-11-05"
    event = one(made, request(2, "tools/list"))
    assert event.version == "2024-11-05" and not event.shows_forms


def test_the_server_info_has_a_title_from_the_version_that_knows_it():
    assert one(connection(), initialize("2025-03-26"))["result"]["serverInfo"] == {"name": "x", "version": "1"}
    assert one(connection(), initialize("2025-06-18"))["result"]["serverInfo"] == {"name": "x", "version": "1", "title": "X"}


# -- requests


@pytest.mark.parametrize("id", [0, -7, "", "5", 5, 2 ** 53 + 1, 10 ** 40, "\ud800"])
def test_an_id_comes_back_with_its_value_and_type(id):
    reply = one(connection(), request(id, "ping"))
    assert reply["id"] == id and type(reply["id"]) is type(id)


@pytest.mark.parametrize("id", [None, 1.5, True, False, {}, [], 1.0])
def test_what_is_no_id_is_an_invalid_request_without_one(id):
    reply = one(connection("2025-11-25"), {"jsonrpc": "2.0", "id": id, "method": "ping"})
    assert reply["error"]["code"] == -32600 and "id" not in reply


@pytest.mark.parametrize("message, id", [
    (42, None), ("x", None), (None, None), ({}, None), ({"jsonrpc": "2.0"}, None), ({"method": 7}, None),
    ({"id": 5, "method": "ping"}, 5), ({"jsonrpc": "1.0", "id": 5, "method": "ping"}, 5),
    ({"jsonrpc": 2, "id": "5", "method": "ping"}, "5"),
    ({"jsonrpc": "2.0", "id": 5, "method": 7}, 5), ({"jsonrpc": "2.0", "id": 5}, 5), ({"jsonrpc": "2.0", "id": 5, "method": None}, 5),
])
def test_a_value_that_is_no_request_is_invalid_under_its_id_if_it_has_one(message, id):
    reply = one(connection("2025-11-25"), message)
    assert reply["error"]["code"] == -32600 and reply.get("id") == id


@pytest.mark.parametrize("message", [
    {"jsonrpc": "2.0", "method": "tools/list"}, {"jsonrpc": "2.0", "method": "nope", "params": []}, {"method": "nope"},
    {"jsonrpc": "2.0", "method": "tools/call", "params": "x"}, {"jsonrpc": "2.0", "method": "initialize"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12345}},
    {"jsonrpc": "2.0", "id": 99, "result": {}}, {"jsonrpc": "2.0", "id": 98, "error": {"code": 1, "message": "x"}},
    {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}}, {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
])
def test_notifications_and_stray_responses_get_no_reply_of_any_kind(message):
    assert receive(connection("2025-11-25"), message) == []
    assert receive(connection(), message) == []


@pytest.mark.case("RP-02")
@pytest.mark.parametrize("method, params", [
    ("tools/call", []), ("tools/call", "x"), ("tools/call", 5), ("tools/call", None), ("tools/call", {}), ("tools/call", {"name": 5}),
    ("tools/call", {"name": "x", "arguments": [1]}), ("tools/call", {"name": "x", "arguments": "y"}), ("tools/list", {"cursor": "!!!"}),
    ("tools/list", {"cursor": ""}), ("resources/read", {}), ("resources/read", {"uri": 5}), ("prompts/get", {}),
    ("prompts/get", {"name": "x", "arguments": {"a": 5}}), ("tools/list", {"_meta": []}),
])
def test_params_of_the_wrong_shape_are_bad_params(method, params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    assert code(connection("2025-11-25"), message) == -32602


@pytest.mark.parametrize("member, value", [("requestState", 5), ("requestState", {}), ("inputResponses", []), ("inputResponses", "x")])
def test_the_members_of_a_retry_have_their_types_too(member, value):
    assert code(connection(), modern(1, "tools/call", name="x", **{member: value})) == -32602


def test_absent_and_null_params_are_the_same():
    made = connection("2025-11-25")
    assert one(made, {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None}).params == {}


def test_unknown_members_are_let_through():
    assert "result" in one(connection(), {**request(1, "ping"), "x-extra": 1})


def test_a_tool_name_is_a_method_in_the_legacy_era_and_its_result_is_plain():
    made = connection("2025-11-25")
    event = one(made, request(1, "engram_load", query="x", _meta={"progressToken": 1}))
    assert event.method == "tools/call" and event.params == {"name": "engram_load", "arguments": {"query": "x"}}
    assert json.loads(made.result(event, "plain")) == {"jsonrpc": "2.0", "id": 1, "result": "plain"}


# -- answers


@pytest.mark.parametrize("method, cached", [*((method, True) for method in eras.CACHE if method != "server/discover"),
                                            ("tools/call", False), ("prompts/get", False)])
def test_modern_results_carry_their_members_and_legacy_ones_none(method, cached):
    made = connection("2025-11-25")
    needs = {"tools/call": {"name": "x"}, "prompts/get": {"name": "x"}, "resources/read": {"uri": "x"}}.get(method, {})
    result = json.loads(made.result(one(made, modern(1, method, **needs)), {"x": 1}))["result"]
    assert result["resultType"] == "complete" and result["_meta"][NAMESPACE + "serverInfo"]["name"] == "x"
    assert ("ttlMs" in result, "cacheScope" in result) == (cached, cached)
    assert json.loads(made.result(one(made, request(2, method, **needs)), {"x": 1}))["result"] == {"x": 1}


def test_discovery_says_what_the_handshake_says():
    made = connection()
    found, first = one(made, modern(1, "server/discover"))["result"], one(made, initialize())["result"]
    assert found["supportedVersions"] == ["2026-07-28"] and "serverInfo" not in found
    assert found["instructions"] == first["instructions"]
    assert {**found["capabilities"], "logging": {}} == first["capabilities"]  # a level is taken in the legacy era alone
    assert isinstance(found["ttlMs"], int) and found["ttlMs"] >= 0 and found["cacheScope"] == "public"


def test_a_request_is_answered_once():
    made = connection("2025-11-25")
    event = one(made, request(1, "tools/list"))
    assert made.result(event, {}) and not made.result(event, {}) and not made.error(event, -1, "x")


def test_two_requests_of_one_id_are_both_answered():
    made = connection("2025-11-25")
    first, second = one(made, request(1, "tools/list")), one(made, request(1, "tools/list"))
    assert made.result(second, {}) and made.result(first, {})


def test_a_cancelled_request_is_not_answered():
    made = connection("2025-11-25")
    event = one(made, request("a", "tools/call", name="x"))
    cancelled = one(made, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}})
    assert isinstance(cancelled, Cancelled) and cancelled.request is event
    assert made.cancel(event) == b"" and made.result(event, {}) == b"" and event.cancelled


def test_the_id_of_a_cancellation_has_a_type():
    made = connection("2025-11-25")
    one(made, request(5, "tools/call", name="x"))
    assert receive(made, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "5"}}) == []
    assert receive(made, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": True}}) == []


# -- the other way


def test_an_answer_to_a_request_of_ours_is_an_event_once():
    made = connection("2025-11-25")
    id, line = made.ask("roots/list", {})
    assert json.loads(line) == {"jsonrpc": "2.0", "id": id, "method": "roots/list"}
    answer = one(made, {"jsonrpc": "2.0", "id": id, "result": {"roots": []}})
    assert isinstance(answer, Answer) and answer.result == {"roots": []}
    assert receive(made, {"jsonrpc": "2.0", "id": id, "result": {"roots": []}}) == []


@pytest.mark.parametrize("reply", [{"error": {"code": -32601, "message": "no"}}, {"result": None}, {"result": 5}, {"error": None}])
def test_an_answer_that_is_no_result_has_none(reply):
    made = connection("2025-11-25")
    id, _ = made.ask("roots/list", {})
    assert one(made, {"jsonrpc": "2.0", "id": id, **reply}).result is None


def test_the_end_of_the_handshake_and_new_roots_are_events_only_after_it_began():
    made = connection()
    assert receive(made, INITIALIZED) == []
    receive(made, initialize("2025-11-25", {"roots": {}}))
    event = one(made, INITIALIZED)
    assert type(event) is Initialised and event.client["name"] == "test" and event.capabilities == {"roots": {}}
    assert type(one(made, {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})) is RootsChanged


@pytest.mark.case("AP-07")
@pytest.mark.parametrize("version, declared, shows", [
    ("2024-11-05", {"elicitation": {}}, False), ("2025-03-26", {"elicitation": {}}, False), ("2025-06-18", {"elicitation": {}}, True),
    ("2025-11-25", {"elicitation": {}}, True), ("2025-11-25", {"elicitation": {"form": {}}}, True),
    ("2025-11-25", {"elicitation": {"form": {}, "url": {}}}, True), ("2025-11-25", {"elicitation": {"url": {}}}, False),
    ("2025-11-25", {}, False), ("2025-11-25", {"elicitation": True}, False), ("2025-11-25", {"elicitation": None}, False),
])
def test_who_can_be_asked_through_a_form(version, declared, shows):
    assert one(connection(version, declared), request(1, "tools/list")).shows_forms is shows
    if version >= "2025-06-18":
        assert one(connection(), modern(1, "tools/list", declared)).shows_forms is shows


# -- batches


def test_a_batch_gets_one_array_in_the_version_that_has_them():
    made = connection("2025-03-26")
    events = receive(made, [request(5, "ping"), request(6, "nope"), 7, initialize(id=8)])
    codes = [(reply.get("id"), reply.get("error", {}).get("code")) for reply in events[0]]
    assert codes == [(5, None), (6, -32601), (None, -32600), (8, -32600)]


def test_a_batch_waits_for_its_last_answer():
    made = connection("2025-03-26")
    first, second = receive(made, [request(1, "tools/list"), request(2, "tools/list"), INITIALIZED])[:2]
    assert made.result(second, {"x": 2}) == b""
    assert [reply["id"] for reply in json.loads(made.result(first, {"x": 1}))] == [2, 1]


def test_a_batch_of_notifications_gets_no_reply():
    assert [type(event) for event in receive(connection("2025-03-26"), [INITIALIZED, {"jsonrpc": "2.0", "method": "x"}])] == [Initialised]


def test_a_cancelled_item_leaves_the_array_without_it():
    made = connection("2025-03-26")
    first, second = receive(made, [request(1, "tools/list"), request(2, "tools/list")])
    assert made.result(first, {}) == b""
    assert [reply["id"] for reply in json.loads(made.cancel(second))] == [1]
    lone, = receive(made, [request(3, "tools/list")])
    assert made.cancel(lone) == b""


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_one_invalid_request_everywhere_else(version):
    reply = one(connection(version), [request(5, "ping"), request(6, "ping")])
    assert reply["error"]["code"] == -32600 and "id" not in reply


def test_an_empty_and_an_endless_batch_are_one_invalid_request():
    made = connection("2025-03-26")
    assert code(made, []) == -32600
    assert code(made, [request(1, "ping")] * 1001) == -32600


def test_a_modern_request_in_a_batch_is_refused_by_itself():
    replies = one(connection("2025-03-26"), [request(1, "ping"), modern(2, "tools/list")])
    assert [reply.get("error", {}).get("code") for reply in replies] == [None, -32600]
