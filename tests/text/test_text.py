"""The tokeniser: what is one word, what is two, and what makes two words alike."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engram.text import explain, fold, is_common, plain, similarity, terms
from engram.text.typing_errors import slips, tolerance
from tests.trials import count, dice


@pytest.mark.parametrize(("text", "folded", "bare"), [
    ("STRASSE", "strasse", "strasse"), ("Straße", "strasse", "strasse"), ("ΚΑΝΌΝΑΣ", "κανόνασ", "κανονασ"),
    ("κανόνας", "κανόνασ", "κανονασ"),
    ("Đường", "đường", "duong"), ("Ёлка", "ёлка", "елка"), ("ﬁle", "file", "file"), ("Łódź", "łódź", "lodz"), ("ｅｎｇ", "eng", "eng"),
    ("İnşaat", "i̇nşaat", "insaat"), ("ข้อมูล", "ข้อมูล", "ข้อมูล"), ("हिन्दी", "हिन्दी", "हिन्दी")])
def test_folding_joins_forms_of_a_letter(text, folded, bare):
    assert fold(text) == folded and plain(text) == bare


@pytest.mark.parametrize(("text", "expected"), [
    ("userId", "userid user id"), ("retry_policy", "retrypolici retri polici"), ("k8s", "k8s"), ("sha256", "sha256 sha 256"),
    ("parseURLPath", "parseurlpath pars url path"), ("two-step", "twostep two step"), ("4.2.1", "4.2.1 4 2 1"), ("can't", "cant"),
    ("Anna's", "anna"), ("C++ C# C", "c++ c# c"), ("net_utils.parse_url", "netutil net util parseurl pars url"), ("", ""), ("?! --", ""),
    ("🚀go", "🚀 go")])
def test_compound_words_are_joined_and_apart(text, expected):
    assert terms(text) == expected.split()


@pytest.mark.parametrize("forms", ["retry retries retried retrying", "deploy deploys deployed deploying", "cache caches cached caching",
                                   "configure configures configured configuring configuration", "migrate migrated migrating migration",
                                   "stop stops stopped stopping", "policy policies", "address addresses addressed"])
def test_forms_of_a_word_have_one_stem(forms):
    assert len({terms(word)[0] for word in forms.split()}) == 1


@pytest.mark.parametrize("words", ["note not", "news new", "use us", "thing thin", "bus bu", "string str", "red reed", "process pro"])
def test_other_words_keep_apart(words):
    one, other = words.split()
    assert terms(one) != terms(other)


def test_unspaced_scripts_give_characters_and_pairs():
    assert terms("部署流程") == ["部", "部署", "署", "署流", "流", "流程", "程"]
    assert terms("升级lib-core再跑") == ["升", "升级", "级", "libcor", "lib", "core", "再", "再跑", "跑"]
    assert set(terms("ข้อมูล")) <= set(terms("สำรองข้อมูลก่อน"))


def test_common_words_are_known():
    assert all(is_common(term) for term in terms("the rules of a memory, and what is it?"))
    assert not any(is_common(term) for term in terms("deploy note redis"))


def test_any_text_has_terms_and_the_same_ones_each_time():
    dicing = dice("terms")
    for _ in range(count(500, 50_000)):
        text = "".join(chr(dicing.choice((dicing.randrange(128), dicing.randrange(0x3000), dicing.randrange(0x110000)))) for _ in range(30))
        found = terms(text)
        assert found == terms(text) and all(isinstance(term, str) and term for term in found)
        fold(text), plain(text)
    assert terms("a" * 200_000) and terms("ก" * 10_000)


def test_terms_are_the_same_in_another_process():
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom engram.text import terms\nprint(terms(sys.argv[2]))"
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    text = "userId in retry_policy 部署 café"
    said = {subprocess.run([sys.executable, "-c", code, root, text], capture_output=True, text=True, check=True,
                           env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}).stdout for seed in ("0", "1", "77")}
    assert said == {f"{terms(text)}\n"}


def test_slips_are_counted():
    assert slips("redis", "redis", 2) == 0 and slips("redis", "rdeis", 2) == 1 and slips("redis", "reds", 2) == 1
    assert slips("kubernetes", "kubernets", 2) == 1 and slips("postgres", "mongodb", 2) == 3
    assert tolerance("abc") == 0 and tolerance("redis") == 1 and tolerance("kubernetes") == 2 and tolerance("sha256") == 0


def test_similarity_is_symmetric_and_between_nothing_and_all():
    dicing = dice("similar")
    words = "always use tabs never spaces in go python files for the retry policy of redis".split()
    for _ in range(count(300, 5000)):
        a, b = (" ".join(dicing.choices(words, k=dicing.randint(0, 12))) for _ in range(2))
        assert 0.0 <= similarity(a, b) <= 1.0 and similarity(a, b) == similarity(b, a)
    assert similarity("Use pnpm here.", "use PNPM here") == 1.0 and similarity("", "") == 0.0 and similarity("redis", "tabs") < 0.2
    told = explain("Always use tabs in Go", "Never use tabs in Python")
    assert told["shared"] == ["tab"] and told["right"] == ["python"]
