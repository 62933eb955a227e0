"""Verdicts over the data files: pairs of a memory and a candidate, with what is expected of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import build
from engram.propose import verdict
from engram.propose.statement import statements
from engram.store import memory
from tests.torture.place import statement
from tests.trials import count, dice

FOLDER = os.path.join(build.ROOT, "tests/data/verdicts")


def rows():
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            for number, row in enumerate(json.load(file), 1):
                yield pytest.param(row, id=f"{name.removesuffix('.json')}-{number}")


def stored(id, type, text):
    made = memory.new({"id": id, "type": type}, memory.title_of(text), [("Content", text if "\n" in text else f"- {text}")])
    return memory.parse(made, f"{memory.FOLDERS[type]}/{id}.md")


def outcome(judged):
    return judged.word, judged.hints[0][0] if judged.hints else None


OTHERS = [
    stored(f"other-{number}", type, text)
    for number, (type, text) in enumerate(
        (
            ("knowledge", "Thumbnails are rendered by the thumbnail farm."),
            ("rule", "Label every release with its build number."),
            ("skill", "Call the carrier.\n- Ask for the line test.\n- Note the ticket."),
            ("knowledge", "Seat holds vanish when the pool is full."),
            ("rule", "Quote every shell variable."),
            ("knowledge", "Người trực ca đọc hàng đợi lỗi mỗi sáng."),
            ("knowledge", "图标由设计团队维护。"),
        )
    )
]


@pytest.mark.parametrize("row", list(rows()))
def test_each_pair_has_the_verdict_and_hint_of_the_data(row):
    old = stored("the-memory", row["type"], row["memory"])
    type = row.get("candidate_type", row["type"])
    assert outcome(verdict.judge(row["candidate"], type, [old])) == (row["verdict"], row.get("hint"))
    # among others, in any order, it is the same
    crowd = [*OTHERS, old]
    for number in range(3):
        dice(f"crowd{number}").shuffle(crowd)
        judged = verdict.judge(row["candidate"], type, crowd)
        assert outcome(judged) == (row["verdict"], row.get("hint"))
        assert judged.why


def test_there_are_at_least_120_pairs_in_four_kinds_of_language_and_three_types():
    found = [param.values[0] for param in rows()]
    assert len(found) >= 120
    assert {row["type"] for row in found} == {"rule", "skill", "knowledge"}
    assert {param.id.split("-")[0] for param in rows()} == {"en", "vi", "zh", "mixed"}


def test_verdicts_do_not_depend_on_the_locale(tmp_path):
    code = (
        "import sys, json; sys.path.insert(0, %r)\n"
        "from tests.propose.test_verdicts import rows, stored, outcome, verdict\n"
        "print(json.dumps([outcome(verdict.judge(r['candidate'], r.get('candidate_type', r['type']), "
        "[stored('the-memory', r['type'], r['memory'])])) for r in [p.values[0] for p in rows()][::3]]))"
    ) % build.ROOT
    answers = set()
    for locale in ("C", "C.UTF-8", "tr_TR.UTF-8"):
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONHASHSEED": str(len(answers))}
        answers.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, cwd=build.ROOT).stdout)
    assert len(answers) == 1


def test_explaining_names_the_words_that_made_the_verdict():
    judged = verdict.judge("Use yarn for installs.", "rule", [stored("use-pnpm", "rule", "Use pnpm for installs.")])
    assert judged.word == "SUPERSEDE" and "pnpm" in judged.why[0] and "yarn" in judged.why[0] and "use-pnpm" in judged.why[0]


def test_a_contradiction_of_one_statement_among_several_does_not_retire_the_rest():
    old = stored("installs", "rule", "- Use pnpm for installs.\n- Commit the lock file.\n- Pin the registry.")
    judged = verdict.judge("Use yarn for installs.", "rule", [old])
    assert outcome(judged) == ("ADD", "possible duplicate")
    assert "contradicts one of its 3 statements" in judged.why[0]


def test_what_a_longer_memory_says_already_is_a_noop():
    old = stored("installs", "rule", "- Use pnpm for installs.\n- Commit the lock file.\n- Pin the registry.")
    assert outcome(verdict.judge("Commit the lock file.", "rule", [old])) == ("NOOP", None)
    assert outcome(verdict.judge("Pin the registry. Use pnpm for installs.", "rule", [old])) == ("NOOP", None)


def test_two_memories_that_it_contradicts_alike_leave_the_choice_to_a_person():
    rivals = [stored("a", "rule", "Use npm for installs."), stored("b", "rule", "Use yarn for installs.")]
    judged = verdict.judge("Use pnpm for installs.", "rule", rivals)
    assert judged.word == "ADD" and {id for _, id in judged.hints} == {"a", "b"}


def test_a_resolved_hint_is_gone_and_an_exact_duplicate_stays_one():
    old = stored("tabs", "rule", "Use tabs for indentation.")
    text = "Use tabs for indentation in Go files."
    assert verdict.judge(text, "rule", [old]).hints
    assert outcome(verdict.judge(text, "rule", [old], resolved=["tabs"])) == ("ADD", None)
    assert outcome(verdict.judge("Use yarn for indentation.", "rule", [old], resolved=["TABS"])) == ("ADD", None)
    assert verdict.judge("Use tabs for indentation.", "rule", [old], resolved=["tabs"]).word == "NOOP"


def test_generated_facts_with_words_of_their_own_are_never_duplicates():
    random = dice("facts")
    word = lambda: "".join(random.choice("ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()) for _ in range(4))
    known = [stored(f"m{n}", "knowledge", f"{word().capitalize()} feeds {word()} through {word()}.") for n in range(24)]
    for _ in range(count(50, 500)):
        judged = verdict.judge(f"{word().capitalize()} feeds {word()} through {word()}.", "knowledge", known)
        assert outcome(judged) == ("ADD", None), judged.why


def test_many_facts_about_like_things_do_not_contradict_each_other():
    """Fault L-14."""
    read_all = [stored(f"m{number}", "knowledge", statement(number)) for number in range(count(60, 300))]
    for number, memory_ in enumerate(read_all):
        others = read_all[max(0, number - 12) : number]
        assert outcome(verdict.judge(statement(number), "knowledge", others)) == ("ADD", None), memory_.content


def test_any_text_gets_a_verdict_without_an_error():
    random = dice("any")
    alphabet = "aA -*#`|.,;:\n\t()[]{}<>0123不用在的ếữ🧪\u200b\u202e\x07"
    known = [stored(f"m{n}", "knowledge", "x " + "".join(random.choice(alphabet) for _ in range(80))) for n in range(8)]
    for _ in range(count(100, 2000)):
        text = "".join(random.choice(alphabet) for _ in range(random.randrange(1, 200)))
        assert verdict.judge(text, "rule", known).word in ("ADD", "UPDATE", "SUPERSEDE", "NOOP")


def test_statements_are_list_entries_and_sentences_and_whole_fences():
    text = "First one. Second one!\n\n- entry, e.g. this one\n- entry two\n  goes on\n\n"
    text += "```sh\nrm -r build. Then go\n```\n1. numbered\n你好。再见。"
    assert statements(text) == [
        "First one.",
        "Second one!",
        "- entry, e.g. this one",
        "- entry two goes on",
        "```sh\nrm -r build. Then go\n```",
        "1. numbered",
        "你好。",
        "再见。",
    ]
