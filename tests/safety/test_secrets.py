"""Secrets and personal data go, whatever they wear; ordinary text stays."""

import random

import pytest

from engram import safety
from tests.safety import corpus
from tests.trials import count


@pytest.mark.parametrize(("kind", "text", "secret"), corpus.secrets())
def test_a_secret_of_each_kind_goes(kind, text, secret):
    kept, findings = safety.redact(text)
    assert secret not in kept
    assert kind in [finding.kind for finding in findings]
    assert all(secret not in finding.label for finding in findings)
    half = secret[len(secret) // 4:-(len(secret) // 4)]
    assert len(half) < 8 or half not in kept


def test_the_corpus_holds_at_least_sixty_kinds():
    assert len({kind for kind, _, _ in corpus.secrets()}) >= 60


@pytest.mark.parametrize("text", corpus.ordinary())
@pytest.mark.case("SE-08")
def test_ordinary_text_stays_byte_for_byte(text):
    outcome = safety.scan(text)
    assert outcome.redacted == text
    assert outcome.clean


def test_there_are_enough_ordinary_texts():
    assert len(corpus.ordinary()) >= 120


@pytest.mark.parametrize(("text", "secret"), corpus.shared_secrets())
@pytest.mark.case("SE-06")
def test_shared_secrets_go(text, secret):
    assert secret not in safety.redact(text)[0]


def test_redacting_again_changes_nothing():
    for _, text, _ in corpus.secrets():
        kept, _ = safety.redact(text)
        assert safety.redact(kept) == (kept, [])


def test_secrets_go_from_within_longer_texts_and_only_they():
    chosen = random.Random(5)
    calm = [text for text in corpus.ordinary() if "\n" not in text and not text.startswith(("-----", "key:"))]
    for _ in range(count(60, 600)):
        parts = []
        for _ in range(6):
            parts.append((chosen.choice(calm), None))
            _, text, secret = chosen.choice(corpus.secrets())
            parts.append((text, secret))
        text = "\n\n".join(part for part, _ in parts)
        kept, _ = safety.redact(text)
        for part, secret in parts:
            assert secret is None and part in kept or secret is not None and secret not in kept


def test_a_finding_has_the_place_of_the_secret():
    _, findings = safety.redact("one\ntwo  password=hunter2\nsam.field@example.com")
    assert [(f.kind, f.category, f.line, f.column) for f in findings] == [("password", "secret", 2, 15), ("email", "personal", 3, 1)]


def test_places_count_in_the_original_text_though_it_was_normalised():
    kept, findings = safety.redact("ﬃ\u200b **gh" + "p_**" + "a1B2c3D4e5" * 4 + " ok")
    assert kept == "ﬃ\u200b **[redacted-github-token] ok"
    assert findings[0].column == 6


def test_a_private_key_goes_as_a_whole_even_when_it_is_cut_off():
    for end in ("-----END RSA PRIVATE KEY-----", ""):
        kept, _ = safety.redact("before\n-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n" + end)
        assert "MII" not in kept
        assert "hkiG" not in kept
        assert kept.startswith("before\n[redacted-private-key]")


def test_the_author_in_a_memory_header_may_have_an_address():
    text = "---\nid: a\nauthor: Sam Field\nauthor_email: sam.field@example.com\n---\n\nBody.\n"
    assert safety.scan_file(text).clean
    assert safety.scan_file(text).redacted == text
    assert not safety.scan_file(text + "Ask sam.field@example.com.\n").clean


HUGE = {
    "ab": "ab" * 100_000, "a!": "a" * 199_999 + "!", "_-": "_-" * 100_000, "key=": "key= " * 40_000, "A": "A" * 200_000,
    "blanks": " " * 200_000,
    "base64": "QUJDREVGR0hJSktMTU5P" * 10_000, "1": "1" * 200_000, "1 1": "1 " * 100_000, "ignore": "ignore " * 28_000, "ignore all":
     "ignore all " * 18_000,
    "comment": "<!--" * 50_000, "tag": "<a " * 66_000, "login": "://a:" * 40_000, "@": "@" * 200_000, "a@a.": "a@a." * 50_000, "eyJ-":
     "eyJ-" * 50_000, "eyJa.": "eyJa." * 40_000,
    "begin end": "-----BEGIN PRIVATE KEY-----" * 7_000 + "-----END PRIVATE KEY-----", "begin": "-----BEGIN PRIVATE KEY-----" * 7_000,
     "password=": "password=" * 22_000, "password: ": "password: " * 20_000, "quote":
     'password="' * 20_000, "letters": "a " * 100_000,
    "lines": "\n" * 200_000, "accents": "é" * 200_000, "zero": "a\u200b" * 100_000, "token": "token='a " * 20_000,
    "flag": "--token " * 25_000,
     "is": "key is " * 28_000,
    "mysql": "mysql " * 33_000, "curl": "curl -u " * 25_000, "you": "you are now " * 16_000, "stars": "*" * 200_000,
    "pass": "pass" * 50_000,
     "sk-": "sk-" * 66_000,
    "span": "<span hidden " * 15_000, "basic": "Basic " * 33_000, "cookie": "Cookie: a=" * 20_000, "&#": "&#" * 100_000, "-": "-" * 200_000,
     "0": "0" * 200_000, "10.": "10." * 66_000,
    "vi": "bỏ qua các " * 18_000, "zh": "忽略所有" * 50_000, "private": "<private" * 25_000, "open": "< private" * 22_000,
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.case("SE-10")
def test_no_text_makes_the_scan_hang(name):
    text = HUGE[name]
    within(lambda: (safety.scan(text), safety.visible(text), safety.without_private(text)))


def within(work):
    """Run the work in a thread's time: a quadratic pattern would need minutes, the limit is ten times the 2 s allowed."""
    import time
    begun = time.process_time()
    work()
    assert time.process_time() - begun < 20
