"""Candidate text: fields, forms, limits (propose.md, Candidates)."""

from __future__ import annotations

import pytest

from engram.errors import UsageError
from engram.propose import candidates
from engram.propose.candidates import infer_type, parse
from tests.trials import count, dice


def values(text, **options):
    return [candidate.values() for candidate in parse(text, **options)]


def test_a_line_is_a_candidate_with_fields_in_any_order():
    assert values("TEXT: Run the tests. | CONTEXT: A broken release. | TYPE: rule") == [
        {"type": "rule", "text": "Run the tests.", "context": "A broken release."}
    ]
    assert values("TYPE: knowledge | TEXT: Invoices retry. | UPDATE: invoice-retry") == [
        {"type": "knowledge", "text": "Invoices retry.", "update": "invoice-retry"}
    ]


def test_the_same_fields_work_as_separate_lines_with_text_of_several_lines():
    text = "TYPE: workflow\nTEXT: Release:\n- tag\n- push\n\nCONTEXT: it broke\n\nTYPE: rule\nTEXT: Pin the registry.\nLEVEL: basic"
    assert values(text) == [
        {"type": "skill", "text": "Release:\n- tag\n- push", "context": "it broke"},
        {"type": "rule", "text": "Pin the registry.", "level": 0},
    ]
    assert [candidate.line for candidate in parse(text)] == [1, 8]


def test_short_forms_and_list_marks_open_a_candidate():
    assert values("rule: one | CONTEXT: because\nworkflow: two\n- TYPE: knowledge | TEXT: three\n2. knowledge: four") == [
        {"type": "rule", "text": "one", "context": "because"},
        {"type": "skill", "text": "two"},
        {"type": "knowledge", "text": "three"},
        {"type": "knowledge", "text": "four"},
    ]


def test_a_bar_that_no_known_field_follows_belongs_to_the_text():
    assert values("TYPE: knowledge | TEXT: Pipe it: ps | grep x | Level: info | wc")[0]["text"] == "Pipe it: ps | grep x | Level: info | wc"
    assert values("TEXT: a|TYPE: rule")[0]["text"] == "a|TYPE: rule"


def test_every_field_of_the_table_is_read():
    text = (
        "TYPE: rule | TEXT: t | ORIGIN: o | TRIGGERS: a, b, a | DEPENDS_ON: [x, y] | LEVEL: 2 | SUPERSEDES: z | ROLE: sre, dev "
        "| CONFIDENCE: Low | LIGHT: l | BALANCED: b | STRICT: s | NOT_DUPLICATE: n, m"
    )
    assert values(text) == [
        {
            "type": "rule",
            "text": "t",
            "context": "o",
            "triggers": ["a", "b"],
            "depends_on": ["x", "y"],
            "level": 2,
            "supersedes": "z",
            "role": ["sre", "dev"],
            "confidence": "low",
            "light": "l",
            "balanced": "b",
            "strict": "s",
            "not_duplicate": ["n", "m"],
        }
    ]


def test_more_than_six_entries_of_a_list_and_a_long_context_stay():
    """Fault L-33."""
    many = [f"word{number}" for number in range(30)]
    found = parse(f"TEXT: t | TRIGGERS: {', '.join(many)} | CONTEXT: {'why ' * 500}")[0]
    assert found.triggers == many and len(found.context) == 1999


def test_plain_text_is_one_candidate_whole():
    """Faults L-3, L-4."""
    text = "One. Two. Three. Four. Five. Six. Seven.\nrule: this is no field\n日本語のメモリです。 Élodie"
    assert values(text) == [{"text": text}]
    assert values(text, plain=False) == []
    assert values("  \n\n ") == [] == values("")


def test_fields_in_capitals_leave_lower_case_ones_to_the_text_and_the_other_way_round():
    assert values("Type: Rule | Text: Use pnpm. | context: installs") == [{"type": "rule", "text": "Use pnpm.", "context": "installs"}]
    assert values("TYPE: rule\nTEXT: Set\ntype: json\nin the header") == [{"type": "rule", "text": "Set\ntype: json\nin the header"}]


def test_a_code_fence_around_all_is_taken_off():
    assert values("```\nTYPE: rule | TEXT: a\nTYPE: rule | TEXT: b\n```") == [{"type": "rule", "text": "a"}, {"type": "rule", "text": "b"}]


def test_text_is_kept_as_nfc_with_lf():
    assert values("\ufeffTYPE: rule | TEXT: cafe\u0301\r\nTYPE: rule | TEXT: b\r\n") == [
        {"type": "rule", "text": "café"},
        {"type": "rule", "text": "b"},
    ]


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("TYPE: rule | TEXT: a\nTYPE: idea | TEXT: b", 2, "none of rule"),
        ("TYPE: rule | CONTEXT: a", 1, "no TEXT"),
        ("TYPE: rule | TEXT: a | TEXT: b", 1, "given twice"),
        ("TEXT: a | LEVEL: high", 1, "LEVEL"),
        ("TEXT: a | CONFIDENCE: sure", 1, "CONFIDENCE"),
        ("TEXT: a | UPDATE: x | SUPERSEDES: y", 1, "exclude"),
        ("TYPE: knowledge | TEXT: a | LIGHT: b", 1, "wordings of a rule"),
        ("Here are my candidates:\nTYPE: rule | TEXT: a", 1, "no candidate"),
        ("TEXT: a\0b", 1, "NUL"),
        ("TEXT: ok\nTEXT: \ud800", 2, "surrogate"),
    ],
)
def test_what_makes_no_sense_is_an_error_with_its_line(text, line, words):
    with pytest.raises(UsageError, match=words) as caught:
        parse(text)
    assert caught.value.line == line and caught.value.exit_code == 2


def test_limits_are_errors_that_say_so_never_a_cut():
    lines = [f"TYPE: rule | TEXT: Rule number {number}." for number in range(21)]
    assert len(parse("\n".join(lines[:20]))) == 20
    with pytest.raises(UsageError, match="21 candidates, and a proposal takes at most 20"):
        parse("\n".join(lines))
    fits = "TYPE: rule | TEXT: " + "é" * 8000
    assert len(parse(fits)[0].text) == 8000
    with pytest.raises(UsageError, match="at most 16384 fit"):
        parse("TYPE: rule | TEXT: " + "é" * 8200)
    with pytest.raises(UsageError, match="at most 16384 fit"):
        parse("x" * 16385)


@pytest.mark.parametrize(
    "text, type",
    [
        ("Always run the tests before a release.", "rule"),
        ("Use pnpm.", "rule"),
        ("Don't push on Fridays.", "rule"),
        ("We should prefer composition.", "rule"),
        ("Luôn chạy kiểm thử.", "rule"),
        ("不要提交生成的文件。", "rule"),
        ("Invoices retry with backoff.", "knowledge"),
        ("日本語のメモリです。", "knowledge"),
        ("The queue lives in Redis.", "knowledge"),
        ("First build the image, then push it. Our deploy workflow.", "skill"),
        ("Release:\n- tag\n- push", "skill"),
        ("1. Create a branch.\n2. Write a test.\n3. Push.", "skill"),
    ],
)
def test_a_type_left_out_is_inferred_always_the_same_way(text, type):
    assert {infer_type(text) for _ in range(3)} == {type}


def test_any_text_is_parsed_or_refused_with_a_clear_error():
    random = dice("candidates")
    pieces = [
        "TYPE: rule",
        "TEXT: ",
        " | ",
        "\n",
        "a",
        "b c",
        "- ",
        "rule: ",
        "```",
        "\r\n",
        "CONTEXT:",
        "é",
        "用",
        ":",
        "TRIGGERS: x",
        "\n\n",
        "LEVEL: 1",
    ]
    for _ in range(count(300, 5000)):
        text = "".join(random.choice(pieces) for _ in range(random.randrange(1, 25)))
        try:
            found = parse(text)
        except UsageError as error:
            assert error.message
            continue
        assert all(candidate.text.strip() for candidate in found)
        # nothing of the input's own words is lost
        said = "".join(str(candidate.values()) for candidate in found)
        assert "用" not in text or "用" in said or "用" in text.split("TYPE")[0] or not found
    assert candidates.MOST == 20
