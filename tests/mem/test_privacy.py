"""What never reaches the disk: private parts and secrets, on every way in (cases SE-06, SE-08, SE-10)."""

from __future__ import annotations

import json
import os
import time

import pytest

from engram.mem import care, noting, privacy, reading, transfer, writing
from tests.cases import case_file
from tests.mem.conftest import rows
from tests.trials import dice

SECRETS = [
    (("".join(row["parts"])), "".join(row["secret"]))
    for row in map(json.loads, case_file("secrets/must-redact-handover.jsonl").decode().splitlines())
]
HARMLESS = [json.loads(line)["text"] for line in case_file("secrets/must-survive.jsonl").decode().splitlines()]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>b</private> c", "a [REDACTED] c"),
        ("a <PRIVATE>b\nc</Private> d", "a [REDACTED] d"),
        ("a <private>b", "a [REDACTED]"),
        ("a <private>b <private>c</private> d</private> e", "a [REDACTED] e"),
        ("<private>a</private><private>b</private>", "[REDACTED][REDACTED]"),
        ("a </private> b", "a </private> b"),
        ("a <private>b</private> c <private>d", "a [REDACTED] c [REDACTED]"),
        ("private things", "private things"),
        ("a < private > b </ private > c", "a [REDACTED] c"),
    ],
)
def test_private_parts_are_redacted_also_when_left_open_or_nested(text, kept):
    assert privacy.clean(text)[0] == kept
    assert privacy.clean(kept) == (kept, [])


def test_half_a_character_is_replaced_and_said():
    text, notes = privacy.clean("a\ud800b")
    assert text == "a\ufffdb"
    assert notes


def test_cleaning_twice_is_cleaning_once():
    chance = dice("clean")
    parts = [secret for secret, _ in SECRETS] + HARMLESS + ["<private>", "</private>", "\n", " ", "\ud800", "語", "[REDACTED]"]
    for _ in range(200):
        once = privacy.clean("".join(chance.choice(parts) for _ in range(6)))[0]
        assert privacy.clean(once)[0] == once


def everything_on_disk(folder):
    found = b""
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                found += file.read()
    return found


@pytest.mark.case("SE-06")
@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_on_no_way_in(tier, tmp_path, text, secret):
    said = []
    saved = lambda **more: said.append(writing.save(tier, **{"title": "t", "content": "c", **more}).text)
    saved(content=text)
    saved(title=f"title {text}", content="other")
    saved(content="third", type=text[:150])
    saved(content="fourth", topic_key=text[:100])
    said.append(writing.update(tier, id=1, expected_project="alpha", content=f"again {text}").text)
    said.append(writing.update(tier, id=1, expected_project="alpha", find="again", replace=text).text)
    said.append(noting.save_prompt(tier, content=text).text)
    said.append(noting.session_summary(tier, content=text).text)
    said.append(
        noting.capture_passive(tier, content=f"## Learnings\n- {' '.join(text.split())} and four more words\n", source=text[:90]).text
    )
    noting.session_start(tier, id="s")
    said.append(noting.session_end(tier, id="s", summary=text).text)
    said.append(care.compare(tier, memory_id_a=1, memory_id_b=2, relation="related", confidence=1, reasoning=text, model=text[:60]).text)
    with tier.database.reading() as connection:
        sync_ids = [row[0] for row in connection.execute("SELECT sync_id FROM relations")]
    said.append(care.judge(tier, judgment_id=sync_ids[0], relation="related", reason=text, evidence=text).text)
    said.append(reading.search(tier, query=text).text)
    path = tmp_path / "given.json"
    path.write_text(
        json.dumps(
            {
                "version": "0.2.0",
                "sessions": [{"id": "x", "project": "alpha", "directory": "", "summary": text}],
                "observations": [{"id": 90, "session_id": "x", "type": "manual", "title": text, "content": text}],
                "prompts": [{"id": 9, "session_id": "x", "content": text}],
            }
        )
    )
    assert "redacted" in transfer.import_from(tier, str(path)).text
    transfer.export_to(tier, str(tmp_path / "data" / "out.json"))
    tier.close()
    found = everything_on_disk(tmp_path / "data").decode("utf-8", "replace") + "".join(said)
    for line in secret.split("\n"):
        assert line not in found


@pytest.mark.case("SE-08")
@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_comes_back_byte_for_byte(tier, text):
    made = writing.save(tier, title="t", content=text)
    assert "Note:" not in made.text
    assert rows(tier)[0]["content"] == text
    assert reading.get_observation(tier, id=1).structured["observation"]["content"] == text


@pytest.mark.case("SE-10")
@pytest.mark.parametrize(
    "unit", ["ab", "a", "_-", "key=", "A", " ", "QUJD", "<", "< ", "<private ", "<private>", "## Learnings\n", "/a", "#1 [x] "]
)
def test_no_text_makes_a_save_hang(tier, unit):
    text = unit * (49_990 // len(unit)) + "!"
    start = time.monotonic()
    writing.save(tier, title="t", content=f"x{text}")
    noting.capture_passive(tier, content=text * 3 + "x")
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("query", ["AKIA" + "Q7W2E9R4T6Y1U3I5", "sam.field@corp-mail.dev"])
def test_a_query_with_a_secret_finds_the_row_that_had_it(tier, query):
    writing.save(tier, title="t", content=f"the value is {query}")
    assert reading.search(tier, query=query).structured["results"]
