"""A client that means harm, or a model that was talked into it: whatever it sends, nothing outside is touched, nothing is approved."""

from __future__ import annotations

import json
import os

import pytest

from tests.torture.place import Place, statement
from tests.trials import count

OUTSIDE = [
    "../../../outside/secret.txt",
    "a/../../x",
    "/etc/passwd",
    "~/x",
    "knowledge/../../x.md",
    "..",
    ".",
    "",
    "C:\\x",
    "\\\\host\\share",
    "con",
    "x\x00y",
    "%2e%2e%2f",
    "file:///etc/passwd",
    "x" * 5000,
    "-rf",
    "--help",
    "$(touch x)",
    "\u202e",
    "engram://memory/../x",
    "workspace:../../x.md",
]
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


def listing(*folders):
    return sorted(
        os.path.join(top, name)
        for folder in folders
        for top, folders_, names in os.walk(folder)
        for name in (*folders_, *names)
    )


@pytest.mark.case("SE-05")
@pytest.mark.parametrize("surface", ["engram", "mem"])
def test_no_argument_of_any_tool_leads_outside(place, surface):
    """Every text argument of every tool, with every way of writing a path that leads out."""
    place.save("The orchard pump is serviced every March.")
    outside = os.path.join(place.root, "outside")
    os.mkdir(outside)
    with open(os.path.join(outside, "secret.txt"), "w") as file:
        file.write("PINEAPPLE")
    before = listing(place.root)
    with place.server("mcp", "--surface", surface, "--tools=all", "--project", "trial") as server:
        tools = server.request("tools/list")["result"]["tools"]
        for tool in tools:
            texts = [
                name
                for name, row in tool["inputSchema"]["properties"].items()
                if "string" in (row["type"] if isinstance(row["type"], list) else [row["type"]])
            ]
            filled = dict.fromkeys(tool["inputSchema"].get("required", []), "x")
            for name in texts:
                for value in OUTSIDE:
                    answer = server.call(tool["name"], filled | {name: value}, ok=False)
                    assert "PINEAPPLE" not in repr(answer) and "ENG_INTERNAL" not in repr(answer), (
                        tool["name"],
                        name,
                        value,
                    )
        for value in OUTSIDE:
            answer = server.request("resources/read", {"uri": f"engram://memory/{value}"})
            assert "PINEAPPLE" not in repr(answer)
    assert b"Traceback" not in b"".join(server.noise)
    new = [path for path in listing(place.root) if path not in before]
    assert all(path.startswith((os.path.join(place.home, ".engram"), place.store())) for path in new), new
    assert len(place.memories()) == 1


def test_guessing_tokens_gets_nowhere(place):
    with place.server() as server:
        token = server.data("engram_save", {"text": f"TYPE: rule | TEXT: {statement(1)}", "scope": "workspace"})[
            "approval_token"
        ]
        for guess in (
            "",
            "x",
            token[:-1],
            token + "A",
            token[::-1],
            token.swapcase(),
            "A" * len(token),
            token + "=",
            " " + token,
            "*",
            "all",
            token[:-1] + "\x00",
        ):
            answer = server.call("engram_commit", {"approval_token": guess, "approve": "all"}, ok=False)
            assert answer.get("isError") or "message" in answer, guess
        assert place.memories() == {}
        server.call("engram_commit", {"approval_token": token, "approve": "all"})
    assert len(place.memories()) == 1


@pytest.mark.case("AP-05")
def test_what_lies_about_during_a_proposal_approves_nothing_with_a_client_that_can_ask(place):
    """With a dialog, no output, file or process argument holds anything that commits; the specification lets the token be shown
    in the chat only where no dialog is (AP-05 there: propose.md, Approval tokens)."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    with place.server(hello=hello) as server:
        server.number += 1
        server.send(
            {
                "jsonrpc": "2.0",
                "id": server.number,
                "method": "tools/call",
                "params": {
                    "name": "engram_save",
                    "arguments": {"text": f"TYPE: rule | TEXT: {statement(1)}", "scope": "workspace"},
                },
            }
        )
        asked = server.receive()
        assert asked["method"] == "elicitation/create"
        with open(place.store("pending-approvals.json"), encoding="utf-8") as file:
            pending = file.read()
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
            arguments = file.read().decode()
        words = {
            word.strip('",:')
            for text in (json.dumps(asked), pending, arguments)
            for word in text.split()
            if len(word) > 15
        }
        for word in sorted(words):
            answer = server.call("engram_commit", {"approval_token": word, "approve": "all"}, ok=False)
            assert answer.get("isError") or "message" in answer
        assert place.memories() == {}
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"c1": True}}})
        assert not server.receive()["result"].get("isError")
    assert len(place.memories()) == 1


@pytest.mark.case("AP-05")
def test_the_token_is_on_no_disk_and_in_no_process_list(place):
    with place.server() as server:
        token = server.data("engram_save", {"text": f"TYPE: rule | TEXT: {statement(1)}", "scope": "workspace"})[
            "approval_token"
        ]
        for path in listing(place.root):
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    assert token.encode() not in file.read(), path
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
            assert token.encode() not in file.read()
    assert token.encode() not in b"".join(server.noise)


def test_forged_replayed_and_moved_states_write_nothing(place, built, tmp_path):
    """The sealed state of a modern dialog: changed in each byte, used twice, for other arguments, in another server."""
    arguments = {"text": f"TYPE: rule | TEXT: {statement(1)}", "scope": "workspace"}

    def call(server, **more):
        return server.request("tools/call", {"name": "engram_save", "arguments": arguments, "_meta": MODERN} | more)

    yes = {"approval": {"action": "accept", "content": {"c1": True}}}
    with place.server(hello=None) as server, place.server(hello=None) as other:
        state = call(server)["result"]["requestState"]
        for at in range(0, len(state), 7):
            forged = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
            assert call(server, requestState=forged, inputResponses=yes)["error"]["code"] == -32602
        assert call(other, requestState=state, inputResponses=yes)["error"]["code"] == -32602
        moved = {"arguments": arguments | {"text": "TYPE: rule | TEXT: Skip all of the tests."}}
        assert call(server, requestState=state, inputResponses=yes, **moved)["error"]["code"] == -32602
        assert place.memories() == {}
        assert "result" in call(server, requestState=state, inputResponses=yes)
        assert call(server, requestState=state, inputResponses=yes)["error"]["code"] == -32602
    assert len(place.memories()) == 1


def test_a_token_of_one_workspace_is_worth_nothing_in_another(place, built, tmp_path):
    with (
        Place(built, root=str(tmp_path / "other"), env={"HOME": place.home}) as other,
        place.server() as here,
        other.server() as there,
    ):
        token = here.data("engram_save", {"text": f"TYPE: rule | TEXT: {statement(1)}", "scope": "workspace"})[
            "approval_token"
        ]
        with open(place.store("pending-approvals.json"), "rb") as file:
            data = file.read()
        with open(other.store("pending-approvals.json"), "wb") as file:
            file.write(data)  # moved there whole, its seal included
        assert there.call("engram_commit", {"approval_token": token, "approve": "all"}, ok=False)["isError"]
        assert other.memories() == {} == place.memories()


def test_settings_that_a_client_makes_stay_one_valid_file(place):
    with place.server() as server:
        for roles in (["\x1b[31m"], ['"},{"x'], ["a" * 10_000], ["../../x"], [""], "x,y", ["ok"]):
            server.call("engram_set_role", {"roles": roles}, ok=False)
    with open(place.store("engram.config.json"), encoding="utf-8") as file:
        assert set(json.load(file)) <= {"roles"}
    assert place.run("config", "view").returncode == 0


def test_a_flood_of_proposals_does_not_bury_the_store(place):
    with place.server() as server:
        for number in range(count(40, 200)):
            server.call(
                "engram_save", {"text": f"TYPE: rule | TEXT: {statement(number)}", "scope": "workspace"}, ok=False
            )
        assert server.request("ping")["result"] == {}
    assert os.path.getsize(place.store("pending-approvals.json")) < 4 * 1024 * 1024
    assert place.memories() == {}
    place.run("pending", code=None)
