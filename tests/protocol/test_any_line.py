"""Whatever bytes come in: no crash, and every line that goes out is one message."""
from __future__ import annotations

import json

from tests.protocol.lines import Lines, sound
from tests.server.stub import Desk, request
from tests.trials import count, dice

CALLS = [("echo", {"text": "hi"}), ("keep", {"text": "x"}), ("other", {"text": "x"}), ("refuse", {}), ("echo", {}), ("nope", {}),
         ("echo", {"text": 5})]


def test_generated_and_mutated_lines_of_both_eras_give_valid_messages_and_no_crash():
    lines = Lines(dice("any line"), CALLS, ["stub://a", "stub://z", "x"])
    desk = Desk()
    for number in range(count(10_000, 100_000)):
        line = lines.line()
        for message in desk.say(line + b"\n"):
            assert sound(message) is None, (line, message)
        if number % 100 == 0:
            desk.clock.now += 10
            desk.loop.tick()
            desk.out.clear()
    assert desk.notes == []
    assert json.loads(json.dumps(desk.say(request("alive", "ping")))) == [{"jsonrpc": "2.0", "id": "alive", "result": {}}]
    assert not desk.loop._connection._in_flight or len(desk.loop._connection._in_flight) <= 64
