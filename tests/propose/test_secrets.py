"""Secrets, personal data and orders through every write path of this room (propose.md, Safety; cases SE-06, SE-08, SE-10 to SE-12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

import build
from engram import files, propose, recall
from engram.errors import EngramError, Refused
from engram.store import memory
from tests.propose.conftest import AUTHOR, make_place, on_disk
from tests.trials import count

DATA = os.path.join(build.ROOT, "tests/data")


def rows(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


MUST_GO = [
    ("".join(row["parts"]), "".join(row["secret"]))
    for name in ("safety/must-go.jsonl", "cases/secrets/must-redact-handover.jsonl")
    for row in rows(name)
    if "".join(row["secret"]) not in AUTHOR.values()  # the author's own address stands in every header, as it should
]
MUST_STAY = [row["text"] for name in ("safety/must-stay.jsonl", "cases/secrets/must-survive.jsonl") for row in rows(name)]
ORDERS = [row["text"] for row in rows("safety/orders.jsonl") if row.get("lines")]


def everything(*folders):
    """Return the bytes of every file below folders, one after the other."""
    return b"\0".join(
        files.read(os.path.join(folder, name)) or b"" for top in folders for folder, _, names in os.walk(top) for name in names
    )


def said(result):
    return json.dumps([result.text, result.data, result.diagnostics], ensure_ascii=False)


def through_every_path(place, text):
    """Send a text down each write path and return all that was said on the way."""
    heard = []

    def attempt(work):
        try:
            made = work()
        except EngramError as error:
            heard.append(f"{error} {error.data}")
            return
        if isinstance(made, propose.Proposal):
            heard.extend([made.text, said(made.result())])
            if made.asks:
                made = propose.commit(place, made.token)
                heard.append(said(made))
        else:
            heard.append(said(made))

    block = f"TYPE: knowledge\nTEXT: {text}"
    attempt(lambda: propose.save(place, text))
    attempt(lambda: propose.save_session(place, f"TYPE: rule | TEXT: Unit one spins.\n{block}"))
    attempt(lambda: propose.save(place, "Wheel two turns.", context=text, triggers=[text], depends_on=[text], role=[text]))
    attempt(lambda: propose.save(place, f"TYPE: rule\nTEXT: Axle three squeaks.\nSTRICT: {text}\nCONTEXT: {text}\nTRIGGERS: {text}"))
    attempt(lambda: propose.save(place, f"TYPE: {text} | TEXT: x"))
    attempt(lambda: propose.save(place, f"TEXT: x | UPDATE: {text}"))
    attempt(lambda: propose.save(place, "Lamp four glows.", update=text))
    attempt(lambda: propose.note(place, text, objective=text))
    attempt(lambda: propose.observe(place, text, session=text, source_file=None))
    proposal = propose.save(place, f"Bell {files.sha256(text.encode())[:12]} rings.")
    if proposal.asks:
        attempt(lambda: propose.commit(place, proposal.token, note=text))
    for entry in propose.pending(place):
        propose.revoke(place, entry.entry, "tidied")
    return "\n".join(heard)


@pytest.mark.case("SE-06")
def test_nothing_of_a_secret_is_in_any_byte_or_answer_whatever_the_path(tmp_path):
    place = make_place(tmp_path)
    chosen = MUST_GO if count(0, 1) else MUST_GO[::12] + MUST_GO[-4:]
    assert len(MUST_GO) >= 60
    for text, secret in chosen:
        heard = through_every_path(place, text)
        assert secret not in heard and json.dumps(secret)[1:-1] not in heard, text
        kept = everything(place.root, place.env["HOME"])
        assert secret.encode() not in kept and secret.encode("utf-16-le") not in kept, text
    assert len(on_disk(place)) >= len(chosen)


@pytest.mark.case("SE-06")
def test_no_secret_shows_in_what_the_command_line_prints(place):
    for text, secret in MUST_GO[:: 40 if not count(0, 1) else 4]:
        done = subprocess.run(
            [sys.executable, "-m", "engram", "ss", "--force"],
            input=f"TYPE: knowledge\nTEXT: {text}",
            capture_output=True,
            text=True,
            cwd=place.root,
            env={**place.env, "PYTHONPATH": build.ROOT},
        )
        assert secret not in done.stdout + done.stderr and secret.encode() not in everything(place.root, place.env["HOME"])


def test_the_preview_names_kind_and_place_of_what_was_redacted(place):
    key = "AK" + "IA" + "Q7W2E9R4T6Y1U3I5"
    proposal = propose.save_session(place, f"TYPE: rule | TEXT: Unit one spins.\nTYPE: knowledge | TEXT: The key is {key} for staging.")
    line = next(line for line in proposal.text.split("\n") if line.startswith("Redacted: "))
    assert "line 2" in line and "column 36" in line and key not in proposal.text and proposal.text.count("Redacted: ") == 1


@pytest.mark.case("SE-08")
def test_ordinary_text_is_stored_and_comes_back_byte_for_byte(place):
    assert len(MUST_STAY) >= 120
    kept, corpus = [], MUST_STAY[:: count(2, 1)]
    for at in range(0, len(corpus), 20):
        proposal = propose.save_session(place, "\n\n".join(f"TYPE: knowledge\nTEXT: {text}" for text in corpus[at : at + 20]))
        assert "Redacted: " not in proposal.text, proposal.text
        texts = {row.number: row.fields["text"].strip() for row in proposal.rows}
        assert [text.strip().replace("\r\n", "\n") for text in corpus[at : at + 20]] == list(texts.values())
        if proposal.asks:
            added = [texts[row["number"]] for row in propose.accept(place, proposal).data["saved"] if row["verdict"] == "ADD"]
            bodies = b"\n".join(on_disk(place).values()).decode()
            assert all(text in bodies for text in added)
            kept += added
    # what was not added is what an earlier line of the corpus says already or resembles
    assert len(kept) >= 0.8 * len(corpus)
    active = [found for rel, raw in on_disk(place).items() if (found := memory.parse(raw, rel)).lifecycle == "active"]
    texts = [recall.load(place, ids=[found.id]).text for found in active[:20]]
    assert all(any(text in shown for text in MUST_STAY) for shown in texts)


def test_orders_are_refused_with_the_line_before_any_preview(place):
    assert len(ORDERS) >= 30
    for text in ORDERS:
        for proposing, arguments in (
            (propose.save, (place, text)),
            (propose.save_session, (place, f"rule: Fine.\nTYPE: knowledge\nTEXT: {text}")),
            (propose.note, (place, text)),
            (propose.save, (place, f"TEXT: Fine.\nCONTEXT: {text}")),
        ):
            with pytest.raises(Refused) as caught:
                proposing(*arguments)
            assert caught.value.exit_code == 4 and caught.value.line >= 1, text
    assert on_disk(place) == {} and propose.pending(place) == []


@pytest.mark.case("SE-11", "SE-12")
@pytest.mark.parametrize("name", ["plain-override.md", "unicode-tags.md"])
def test_the_prepared_attacks_are_refused_and_what_they_hide_is_named(place, name):
    with open(os.path.join(DATA, "cases/injection", name), encoding="utf-8") as file:
        text = file.read().split("## Content\n")[1]
    with pytest.raises(Refused) as caught:
        propose.save(place, text)
    shown = f"{caught.value} {caught.value.data}"
    assert not any("\U000e0000" <= c <= "\U000e007f" for c in shown)
    if name == "unicode-tags.md":
        assert "earlier" in shown or "environment" in shown


@pytest.mark.case("SE-10")
@pytest.mark.parametrize(
    "unit",
    [
        "ab",
        "a",
        "_-",
        "key=",
        "A",
        " ",
        "aGVsbG8gd29ybGQ",
        "https://x.y/",
        "password: ",
        "-----BEGIN ",
        "| TEXT: ",
        "\n- ",
        "用",
        "rule: x\n",
    ],
)
def test_two_hundred_thousand_characters_are_answered_within_two_seconds(place, unit):
    text = (unit * 200_000)[:200_000]
    for proposing in (lambda: propose.save(place, text), lambda: propose.save_session(place, text), lambda: propose.note(place, text)):
        begin = time.monotonic()
        try:
            proposing()
        except EngramError:
            pass  # too long for a candidate, most of them
        assert time.monotonic() - begin < 20  # ten times what the case allows: a machine may be busy
    begin = time.monotonic()
    try:
        propose.observe(place, text)
    except EngramError:
        pass
    assert time.monotonic() - begin < 20
