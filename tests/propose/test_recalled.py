"""What was recalled and is proposed back is not stored again (case RK-05), and what it corrected does not come first (RK-01)."""

from __future__ import annotations

import pytest

from engram import propose, recall
from tests.propose.conftest import on_disk

FACTS = (
    "TYPE: rule | TEXT: Use pnpm for installs. | CONTEXT: npm was slow.\n"
    "TYPE: knowledge | TEXT: Invoices retry with exponential backoff. They give up after a day.\n"
    "TYPE: skill\nTEXT: Rotate the signing key:\n1. create the new key\n2. publish it\n\n"
    "TYPE: rule | TEXT: Keep functions small. | STRICT: Keep functions under 40 lines."
)


@pytest.mark.case("RK-05")
def test_thirty_rounds_of_recalling_and_saving_leave_the_store_as_it_was(place):
    propose.accept(place, propose.save_session(place, FACTS, keep=False), by="force")
    before = on_disk(place)
    queries = ("installs with pnpm", "invoices backoff", "rotate the signing key", "keep functions small")
    for number in range(30):
        query = queries[number % 4]
        printed = [
            recall.load(place, query, limit=1).text,
            recall.search(place, query, limit=1).text,
            recall.load(place, query, disclosure="cards", limit=1).text,
        ]
        found = recall.load(place, query, limit=1).data["selected_keys"]
        printed += [recall.show(place, found[0].rpartition("/")[2].removesuffix(".md")).text]
        for text in printed:
            type = {"rules": "rule", "skills": "skill", "knowledge": "knowledge"}[found[0].partition(":")[2].partition("/")[0]]
            proposal = propose.save(place, text, type=type)
            verdicts = {row["verdict"] for row in proposal.candidates}
            assert verdicts == {"NOOP"}, (query, text, proposal.text)
            if proposal.asks:
                propose.commit(place, proposal.token)
    assert on_disk(place) == before


@pytest.mark.case("RK-05")
def test_a_whole_load_of_several_memories_proposed_back_is_nothing_new(place):
    propose.accept(place, propose.save_session(place, FACTS, keep=False), by="force")
    printed = recall.load(place, "installs with pnpm, invoices backoff, signing key, small functions")
    assert len(printed.data["body_keys"]) > 1
    for type in ("rule", "knowledge", None):
        assert not propose.save(place, printed.text, type=type).asks
    assert not propose.save(place, recall.load(place, "installs, invoices, signing key, functions", disclosure="cards").text).asks


@pytest.mark.case("RK-01")
def test_a_correction_stands_above_what_it_corrects(place):
    propose.accept(place, propose.save(place, "knowledge: The cache lifetime is 60 seconds.", keep=False), by="force")
    result = propose.accept(place, propose.save(place, "knowledge: The cache lifetime is 900 seconds.", keep=False), by="force")
    assert result.data["saved"][0]["verdict"] == "SUPERSEDE"
    loaded = recall.load(place, "cache lifetime")
    assert "900 seconds" in loaded.text and "60 seconds" not in loaded.text
