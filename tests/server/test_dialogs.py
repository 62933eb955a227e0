"""Asking the human, in both eras: every row of the answer table of mcp.md, and every way to cheat with a state."""
from __future__ import annotations

import json

import pytest

from tests.server.stub import Desk, Stub, call, modern, request

ASKS = {"elicitation": {}}
YES = {"action": "accept", "content": {"c1": True}}


def legacy(version="2025-11-25", capabilities=ASKS, **options):
    """Return a desk where the tool has asked, and the question."""
    desk = Desk(**options)
    desk.start(version, capabilities)
    asked = desk.say(call(1, "keep", text="x"))
    assert [message.get("method") for message in asked] == ["elicitation/create"]
    return desk, asked[0]


def answer(desk, question, **reply):
    return desk.say({"jsonrpc": "2.0", "id": question["id"], **reply})


def retry(desk, id, state, given, name="keep", arguments=None, capabilities=ASKS):
    return desk.say(modern(id, "tools/call", capabilities, name=name, arguments=arguments or {"text": "x"}, requestState=state,
                           inputResponses={"approval": given}))[0]


def asked(desk, id=1, text="x"):
    return desk.say(modern(id, "tools/call", ASKS, name="keep", arguments={"text": text}))[0]["result"]


def text(reply):
    return reply["result"]["content"][0]["text"]


# -- who is asked


@pytest.mark.case("AP-07")
@pytest.mark.parametrize("version, capabilities, options", [
    ("2025-11-25", {}, {}), ("2025-03-26", ASKS, {}), ("2024-11-05", ASKS, {}), ("2025-11-25", {"elicitation": {"url": {}}}, {}),
    ("2025-11-25", ASKS, {"elicit": False}),
])
def test_a_client_that_cannot_be_asked_gets_the_token(version, capabilities, options):
    desk = Desk(**options)
    desk.start(version, capabilities)
    reply, = desk.say(call(1, "keep", text="x"))
    assert text(reply) == "token: token-entry-1" and desk.surface.written == []
    now = Desk(**options).say(modern(1, "tools/call", {} if not options else ASKS, name="keep", arguments={"text": "x"}))[0]["result"]
    assert now["resultType"] == "complete" and now["structuredContent"]["data"]["approval_token"]


@pytest.mark.parametrize("version, mode", [("2025-06-18", None), ("2025-11-25", "form")])
def test_the_question_has_the_members_of_its_version(version, mode):
    _, question = legacy(version)
    assert question["params"].get("mode") == mode and question["params"]["message"] == "Keep x?"
    assert set(question["params"]["requestedSchema"]) <= {"type", "properties", "required"}


# -- legacy answers


def test_accept_writes_and_returns_no_token():
    desk, question = legacy()
    reply, = answer(desk, question, result=YES)
    assert reply["id"] == 1 and text(reply) == "saved" and desk.surface.written == ["x"]
    assert "approval_token" not in json.dumps(reply)


@pytest.mark.case("AP-08")
@pytest.mark.parametrize("after, at_once", [(0.005, True), (0.09, True), (0.11, False), (30, False)])
def test_decline_revokes_and_a_decline_at_once_is_no_persons(after, at_once):
    desk, question = legacy()
    desk.clock.now += after
    reply, = answer(desk, question, result={"action": "decline"})
    assert desk.surface.revoked == [("entry-1", at_once)] and desk.surface.written == [] and text(reply) == "declined"


@pytest.mark.parametrize("content", [{}, {"c1": False}, {"c1": "yes"}, None, [], "x"])
def test_an_accept_without_a_valid_choice_writes_nothing(content):
    desk, question = legacy()
    answer(desk, question, result={"action": "accept", "content": content})
    assert desk.surface.written == [] and desk.surface.revoked == ["entry-1"]


@pytest.mark.case("AP-09")
@pytest.mark.parametrize("reply", [
    {"result": {"action": "cancel"}}, {"error": {"code": -32601, "message": "no"}}, {"result": {"action": "maybe"}}, {"result": {}},
    {"result": None}, {"result": []}, {"error": None},
])
def test_cancel_and_a_client_error_fall_back_to_the_token(reply):
    desk, question = legacy()
    made, = answer(desk, question, **reply)
    assert text(made).startswith("nothing was saved") and "token-entry-1" in text(made)
    assert made["result"]["structuredContent"]["data"]["text"] == text(made)
    assert desk.surface.written == [] and desk.surface.revoked == []


@pytest.mark.case("AP-09")
def test_silence_falls_back_after_60_s_and_a_ping_never_waits():
    desk, question = legacy()
    assert desk.say(request(2, "ping"))[0]["result"] == {}
    desk.clock.now += 59.9
    assert 0 < desk.loop.tick() <= 0.2 and not [message for message in desk.out if message.get("id") == 1]
    desk.clock.now += 0.1
    assert desk.loop.tick() is None
    assert text(desk.out[-1]).startswith("nothing was saved") and desk.out[-1]["id"] == 1


def test_a_late_accept_is_ignored_and_a_late_decline_still_revokes():
    for given, revoked in ((YES, []), ({"action": "cancel"}, []), ({"action": "decline"}, [("entry-1", False)])):
        desk, question = legacy()
        desk.clock.now += 61
        desk.loop.tick()
        assert answer(desk, question, result=given) == []
        assert desk.surface.written == [] and desk.surface.revoked == revoked
        assert answer(desk, question, result=YES) == [] and desk.surface.written == []


def test_a_second_answer_is_ignored():
    desk, question = legacy()
    answer(desk, question, result={"action": "cancel"})
    assert answer(desk, question, result=YES) == [] and desk.surface.written == []


def test_a_cancelled_call_ends_unwritten_and_unanswered_and_its_dialog_is_withdrawn():
    desk, question = legacy()
    out = desk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert out == [{"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": question["id"], "reason": "the call was cancelled"}}]
    assert answer(desk, question, result=YES) == [] and desk.surface.written == []


def test_at_the_end_of_input_a_waiting_call_ends_at_once_unwritten():
    desk, question = legacy()
    desk.loop.end()
    assert desk.out[-1]["id"] == 1 and text(desk.out[-1]).startswith("nothing was saved")
    assert answer(desk, question, result=YES) == [] and desk.surface.written == []


def test_two_dialogs_wait_side_by_side_and_are_not_mixed_up():
    desk, first = legacy()
    second = desk.say(call(2, "keep", text="y"))[0]
    assert answer(desk, second, result=YES)[0]["id"] == 2 and desk.surface.written == ["y"]
    assert answer(desk, first, result=YES)[0]["id"] == 1 and desk.surface.written == ["y", "x"]


def test_nobody_is_asked_a_thousand_questions_at_once():
    desk = Desk()
    desk.start(capabilities=ASKS)
    out = desk.say(*(call(id, "keep", text="x") for id in range(100)))
    assert sum(message.get("method") == "elicitation/create" for message in out) == 64
    assert sum("result" in message for message in out) == 36


def test_a_bare_tool_method_may_ask_too():
    desk = Desk()
    desk.start(capabilities=ASKS)
    question, = desk.say(request(1, "keep", text="x"))
    assert answer(desk, question, result=YES)[0] == {"jsonrpc": "2.0", "id": 1, "result": "saved"}


def test_a_batch_waits_for_the_answer():
    desk = Desk()
    desk.start("2025-03-26", ASKS)
    assert len(desk.say([call(1, "keep", text="x"), request(2, "ping")])[0]) == 2  # that version has no dialogs


# -- modern answers


def test_accept_in_a_retry_writes():
    desk = Desk()
    result = asked(desk)
    assert result["resultType"] == "input_required" and "ttlMs" not in result
    assert result["inputRequests"]["approval"]["method"] == "elicitation/create"
    reply = retry(desk, 2, result["requestState"], YES)
    assert reply["result"]["resultType"] == "complete" and text(reply) == "saved" and desk.surface.written == ["x"]


@pytest.mark.case("AP-08")
@pytest.mark.parametrize("after, at_once", [(0.05, True), (5, False)])
def test_decline_in_a_retry_revokes(after, at_once):
    desk = Desk()
    state = asked(desk)["requestState"]
    desk.clock.now += after
    assert text(retry(desk, 2, state, {"action": "decline"})) == "declined"
    assert desk.surface.revoked == [("entry-1", at_once)]


@pytest.mark.parametrize("given", [{"action": "cancel"}, {"action": "maybe"}, {}, None, 5, [], "accept"])
def test_cancel_or_nonsense_in_a_retry_falls_back_to_the_token(given):
    desk = Desk()
    reply = retry(desk, 2, asked(desk)["requestState"], given)
    assert text(reply).startswith("nothing was saved") and "token-entry-1" in text(reply) and desk.surface.written == []


def test_a_retry_without_an_answer_is_asked_again_and_extra_answers_are_ignored():
    desk = Desk()
    state = asked(desk)["requestState"]
    again = desk.say(modern(2, "tools/call", ASKS, name="keep", arguments={"text": "x"}, requestState=state,
                            inputResponses={"other": YES}))[0]["result"]
    assert again["resultType"] == "input_required"
    assert text(retry(desk, 3, again["requestState"], YES)) == "saved"


def test_an_answer_without_a_state_is_no_answer():
    desk = Desk()
    result = desk.say(modern(1, "tools/call", ASKS, name="keep", arguments={"text": "x"}, inputResponses={"approval": YES}))[0]["result"]
    assert result["resultType"] == "input_required" and desk.surface.written == []


@pytest.mark.case("AP-01", "AP-02")
@pytest.mark.parametrize("cheat", ["forged", "changed", "replayed", "expired", "tool", "plain tool", "arguments",
                                   "more arguments", "another server"])
def test_a_state_that_is_not_for_this_call_is_bad_params_and_writes_nothing(cheat):
    desk = Desk()
    state = asked(desk)["requestState"]
    more = {}
    if cheat == "forged":
        state = "v1.e30.AAAA"
    elif cheat == "changed":
        state = state[:-2] + ("AA" if state[-2:] != "AA" else "BB")
    elif cheat == "replayed":
        retry(desk, 2, state, {"action": "cancel"})
    elif cheat == "expired":
        desk.clock.now += 1801
    elif cheat == "tool":
        more = {"name": "other"}
    elif cheat == "plain tool":
        more = {"name": "echo"}
    elif cheat == "arguments":
        more = {"arguments": {"text": "y"}}
    elif cheat == "more arguments":
        more = {"arguments": {"text": "x", "scope": "global"}}
    elif cheat == "another server":
        desk = Desk(key=b"j" * 32)
        asked(desk)
    reply = retry(desk, 3, state, YES, **more)
    assert reply["error"]["code"] == -32602 and desk.surface.written == []


def test_a_state_of_another_workspace_is_void_even_under_the_same_key():
    desk, other = Desk(), Desk(workspace="/elsewhere")
    asked(other)
    assert retry(other, 2, asked(desk)["requestState"], YES)["error"]["code"] == -32602


def test_a_failed_try_does_not_use_up_the_state():
    desk = Desk()
    state = asked(desk)["requestState"]
    retry(desk, 2, state, YES, arguments={"text": "y"})
    assert text(retry(desk, 3, state, YES)) == "saved"


def test_a_state_survives_other_calls_and_a_handshake():
    desk = Desk()
    state = asked(desk)["requestState"]
    desk.start("2024-11-05")
    desk.say(call(5, "echo", text="z"))
    assert text(retry(desk, 2, state, YES)) == "saved"


def test_the_order_of_the_arguments_does_not_matter():
    surface = Stub()
    surface.tools[1].input["properties"]["b"] = {"type": "string"}
    desk = Desk(surface)
    state = desk.say(modern(1, "tools/call", ASKS, name="keep", arguments={"text": "x", "b": "1"}))[0]["result"]["requestState"]
    assert text(retry(desk, 2, state, YES, arguments={"b": "1", "text": "x"})) == "saved"


def test_open_questions_do_not_pile_up():
    desk = Desk()
    states = [asked(desk, id)["requestState"] for id in range(200)]
    assert len(desk.loop._dialogs._modern) <= 64
    assert text(retry(desk, 999, states[-1], YES)) == "saved"
    assert retry(desk, 998, states[0], YES)["error"]["code"] == -32602
    desk.clock.now += 2000
    asked(desk, 1000)
    assert len(desk.loop._dialogs._modern) == 1
