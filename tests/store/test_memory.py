"""Memory files: what is read, made and edited; ids, dates, ignore rules."""

import json

import pytest

from engram.errors import MemoryFileError, Refused
from engram.store import dates, ids, ignore, memory
from tests.cases import case_file


def made(**header):
    base = {"id": "a", "type": "rule", "author_name": "Sam Field", "author_email": "sam.field@example.com"}
    return memory.new({**base, **header}, "A title", [("Content", "- Text.")])


def test_a_new_memory_is_sorted_quoted_where_needed_and_reads_back():
    raw = made(tags=["a b", "c"], revision=1, valid_until=None)
    assert raw.decode() == (
        '---\nauthor_email: sam.field@example.com\nauthor_name: "Sam Field"\nid: a\nrevision: 1\ntags: ["a b", c]\ntype: rule\n---\n\n'
        "# A title\n\n## Content\n\n- Text.\n"
    )
    found = memory.parse(raw, "rules/a.md")
    assert (found.key, found.title, found.content, found.tags, found.revision) == (
        "workspace:rules/a.md",
        "A title",
        "- Text.",
        ["a b", "c"],
        1,
    )


def test_an_edit_of_one_section_keeps_every_other_byte():
    raw = (
        b"---\nid: a\ntype: skill\nx_own: [1,  2]   # mine\n---\n\n# T\n\nIntro.\n\n## Content\n\n1. One\n"
        b"2. Two\n\n```sh\n# not a heading\n"
        b"## nor this\n```\n\n## Notes\n\n| a | b |\n|---|---|\n\n\n## Content-like\n\nlast"
    )
    edited = memory.edit(raw, sections={"Notes": "New note."})
    assert edited == raw.replace(b"| a | b |\n|---|---|", b"New note.")
    assert "## nor this" in memory.parse(edited, "x.md").content


def test_a_section_that_is_not_there_is_added_at_the_end():
    raw = b"---\nid: a\ntype: rule\n---\n# T\n\n## Content\n\n- a"
    edited = memory.edit(raw, sections={"Origin": "Because."})
    assert edited == raw + b"\n\n## Origin\n\nBecause.\n"
    assert memory.parse(edited, "x.md").sections["Origin"] == "Because."


def test_a_rule_shows_the_nearest_variant_that_it_has():
    text = b"---\nid: a\ntype: rule\n---\n# T\n\n## Content\n\n- c\n\n## Rule Variants\n\n### Light\n\nl\n\n### Balanced\n\nb\n"
    found = memory.parse(text, "x.md")
    assert [found.rule_text(v) for v in ("light", "balanced", "strict", "off")] == ["l", "b", "b", "b"]
    assert memory.parse(text.partition(b"## Rule")[0], "x.md").rule_text("strict") == "- c"


def test_a_lone_word_where_a_list_belongs_is_a_list():
    raw = b"---\nid: a\ntype: rule\ntags: alpha, beta\nrole: backend\n---\n# T\n\n## Content\n\n- c\n"
    found = memory.parse(raw, "x.md")
    assert (found.tags, found.role) == (["alpha", "beta"], ["backend"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- Use pnpm. Not npm.", "Use pnpm."),
        ("1. First, e.g. this. Then", "First, e.g."),
        ("> quoted\nmore", "quoted"),
        ("日本語です。次", "日本語です。"),
        ("```\ncode\n```\nAfter", "code"),
        ("", ""),
        ("v1.2 is out! Yes", "v1.2 is out!"),
    ],
)
def test_the_first_sentence_has_no_marks(text, sentence):
    assert memory.first_sentence(text) == sentence


def test_a_title_is_cut_between_words():
    title = memory.title_of("the booking service keeps reservations in postgresql and caches seat maps in redis for a minute.")
    assert title == "The booking service keeps reservations in postgresql and caches seat…"
    assert memory.title_of("Use pnpm.") == "Use pnpm"


@pytest.mark.case("ST-01")
def test_a_file_that_is_not_utf8_is_a_fault_with_its_offset():
    with pytest.raises(MemoryFileError, match="offset 40"):
        memory.parse(case_file("store/latin1.md"), "knowledge/latin1.md")


@pytest.mark.case("ST-03")
def test_a_nul_character_is_a_fault():
    with pytest.raises(MemoryFileError, match="NUL") as caught:
        memory.parse(case_file("store/nul-inside.md"), "x.md")
    assert caught.value.line == 11


@pytest.mark.case("TM-03")
@pytest.mark.parametrize("value", ["2026-02-30", "2026-1-5", "05/06/2026", "soon", "2026-13-01", "2026-01-01T25:00"])
@pytest.mark.parametrize("key", ["valid_from", "valid_until"])
def test_an_impossible_date_is_a_fault_that_names_field_and_value(key, value):
    with pytest.raises(MemoryFileError, match=f"{key}: {value}"):
        memory.parse(made(**{key: value}), "x.md")


@pytest.mark.case("TM-01")
def test_dates_with_and_without_zone_are_ordered_by_instant():
    texts = ["2026-01-31 23:59:59+07:00", "2026-01-31T23:59:59", "2026-01-31T23:59:59Z", "2026-01-31"]
    assert sorted(texts, key=dates.instant) == ["2026-01-31", texts[0], texts[1], texts[2]]
    assert dates.end("2026-01-31") == dates.instant("2026-02-01")
    assert dates.instant(dates.stamp(1769903999.5)) == 1769903999
    assert dates.instant("2024-02-29") == 1709164800


@pytest.mark.case("ST-05")
def test_titles_without_ascii_letters_give_ids_of_their_own():
    taken = set()
    for pair in json.loads(case_file("store/titles-handover.json"))["pairs_must_give_two_files"]:
        for title in pair:
            taken.add(ids.unique(ids.make(title, "knowledge"), taken))
    assert len(taken) == 8
    assert not any(name in ("", "_", "untitled") for name in taken)


@pytest.mark.case("ST-07")
def test_ids_are_portable_file_names():
    names = json.loads(case_file("store/titles-handover.json"))["must_be_portable_names"]
    for title in [*names, "COM¹", "a" * 300, "…", "-", "x/../y", "\u202eabc", "ﬁle ＡＢ"]:
        made_id = ids.make(title, "rule")
        assert ids.name_problem(made_id) is None
        assert ids.check(made_id) == made_id
        assert len(made_id) <= 64
        assert made_id == made_id.lower()
        assert made_id.isascii()


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("Use pnpm", "use-pnpm"),
        ("Élodie doesn't own Đường", "elodie-doesnt-own-duong"),
        ("日本語 API の設定", None),
        ("Straße nach Łódź", "strasse-nach-lodz"),
    ],
)
def test_an_id_is_made_of_folded_words(text, id):
    assert ids.make(text, "rule") == (id or ids.make(text, "rule"))
    assert id or ids.make(text, "rule").startswith("rule-")


def test_a_taken_id_gets_a_number_within_the_limit():
    long = "a" * 64
    assert ids.unique("x", {"x", "x-2"}) == "x-3"
    assert ids.unique(long, {long}) == "a" * 62 + "-2"


@pytest.mark.case("SE-01")
@pytest.mark.parametrize(
    "id",
    [
        "../../../etc/passwd",
        "a/../../x",
        "/etc/passwd",
        "~/x",
        "knowledge/../../x.md",
        "..",
        "a\\b",
        "C:x",
        "con",
        "nul.md",
        "x\0y",
        "a\nb",
        "x.",
        " x",
        "a" * 300,
        "COM1",
        "a:b",
    ],
)
def test_an_id_that_could_lead_outside_is_refused(id):
    with pytest.raises(Refused):
        ids.check(id)


@pytest.mark.parametrize(
    ("patterns", "hidden", "shown"),
    [
        ("*.draft.md", ["rules/a.draft.md"], ["rules/a.md"]),
        ("knowledge/", ["knowledge/a.md", "knowledge/x/b.md"], ["rules/knowledge.md"]),
        ("/rules/a.md", ["rules/a.md"], ["rules/x/a.md"]),
        ("private/**", ["private/a.md"], ["privatex/a.md", "x/private/a.md"]),
        ("**/tmp-*", ["rules/tmp-a.md", "rules/x/tmp-b.md"], ["rules/a-tmp.md"]),
        ("*.md\n!keep.md", ["rules/a.md"], ["rules/keep.md"]),
        ("rules/\n!rules/keep.md", ["rules/keep.md"], []),
        ("# remark\n\n  \n", [], ["rules/a.md"]),
        ("a[0-9].md\n\\!x.md\nb?.md", ["rules/a1.md", "rules/!x.md", "rules/b1.md"], ["rules/ax.md", "rules/b.md"]),
        ("rules/**/x.md", ["rules/x.md", "rules/a/b/x.md"], ["x.md"]),
        ("[", [], ["rules/a.md"]),
    ],
)
def test_ignore_rules_are_those_of_git(patterns, hidden, shown):
    ignored = ignore.compile(patterns)
    assert [path for path in hidden if not ignored(path)] == []
    assert [path for path in shown if ignored(path)] == []


def test_ignore_rules_agree_with_git(tmp_path):
    import subprocess

    paths = [f"{a}/{b}" for a in ("rules", "knowledge", "rules/sub") for b in ("a.md", "b1.md", "keep.md", "x y.md", "ä.md")]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    for patterns in (
        "*.md\n!keep.md",
        "rules/*\n!rules/sub",
        "sub/",
        "/rules/*.md",
        "b[1-3].md",
        "r*/a.md",
        "**/sub/**",
        "x\\ y.md",
        "*\n!*/\n!a.md",
        "ä.*",
    ):
        (tmp_path / ".gitignore").write_text(patterns)
        listed = subprocess.run(
            ["git", "-c", "core.quotepath=off", "ls-files", "-o", "--exclude-standard"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        ours = ignore.compile(patterns)
        assert {p for p in paths if not ours(p)} == {p for p in listed if p in paths}, patterns
