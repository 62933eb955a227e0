"""What the fuzz trial found, kept: each line once made the server answer with an internal error."""
from __future__ import annotations

import pytest

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


@pytest.mark.parametrize("value", [5, 1.5, "x", [1], [{"roots": 1}], True], ids=repr)
@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list", "prompts/list", "tools/list"])
def test_answers_where_nothing_was_asked_are_no_fault_of_the_server(place, method, value):
    with place.server(hello=None) as server:
        answer = server.request(method, {"_meta": META, "inputResponses": value})
        assert "result" in answer or answer["error"]["code"] == -32602
    assert b"Traceback" not in b"".join(server.noise)
