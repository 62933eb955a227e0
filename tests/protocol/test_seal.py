"""The sealed state: nobody else makes one, and none is good for another purpose."""
from __future__ import annotations

import pytest

from engram.protocol.seal import Seal, digest
from tests.trials import count, dice

KEY = b"k" * 32


def test_a_sealed_mapping_opens_as_it_was():
    seal = Seal(KEY, "requestState")
    payload = {"entry": "e", "expires": 12.5, "call": "ü"}
    assert seal.open(seal.close(payload)) == payload


def test_every_changed_character_voids_the_seal():
    seal = Seal(KEY, "requestState")
    text = seal.close({"entry": "e"})
    for at in range(len(text)):
        for other in "Aa0-_.=":
            changed = text[:at] + other + text[at + 1:]
            assert changed == text or seal.open(changed) is None


@pytest.mark.parametrize("text", ["", ".", "..", "v1", "v1.", "v1..", "v1.e30.", "forged", "v1.e30.AAAA", "ü.ü.ü",
                                  "\ud800.a.b", "v1.e30=.x" * 9])
def test_what_was_never_sealed_does_not_open(text):
    assert Seal(KEY, "requestState").open(text) is None


def test_a_seal_is_void_under_another_key_and_for_another_purpose():
    text = Seal(KEY, "requestState").close({"entry": "e"})
    assert Seal(b"j" * 32, "requestState").open(text) is None
    assert Seal(KEY, "approval").open(text) is None
    assert Seal(KEY, "requestStates").open(text) is None


def test_padding_or_white_space_added_to_a_seal_voids_it():
    seal = Seal(KEY, "requestState")
    text = seal.close({"entry": "e"})
    assert not [extra for extra in ("=", " ", "\n", "A", ".") if seal.open(text + extra) or seal.open(extra + text)]


def test_random_text_never_opens():
    roll, seal = dice("seal"), Seal(KEY, "requestState")
    for _ in range(count(500, 20_000)):
        text = "".join(roll.choice("v1.abcABC-_=é") for _ in range(roll.randrange(80)))
        assert seal.open(text) is None


def test_the_digest_does_not_depend_on_the_order_of_keys():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})
