"""Frontmatter: what is read, what is refused, and what an edit leaves alone."""

import pytest

from engram.errors import MemoryFileError
from engram.store import frontmatter, memory
from engram.store.frontmatter import Document
from tests.cases import case_file
from tests.trials import count, dice


def values(name):
    return Document(case_file(f"frontmatter/{name}.md").decode("utf-8")).values


@pytest.mark.case("FM-01")
def test_a_colon_in_a_title_is_part_of_the_title():
    assert values("colon-title")["title"] == "Re: release plan (part: two)"


@pytest.mark.case("FM-01")
@pytest.mark.parametrize(
    "text",
    [
        "Re: plan",
        "a #b",
        "- x",
        "[x",
        "{",
        "no",
        "1e3",
        "01",
        "",
        " pad ",
        "'",
        '"',
        "\\",
        "é\u2028x",
        "a\tb",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "|",
        ">",
        "null",
        "~",
        "true",
        "x:",
        "?",
        "-",
        "---",
        "a: b",
        "key:\nvalue",
        "\x85",
        "\ufeff",
    ],
)
def test_what_is_written_reads_back_equal(text):
    header = f"---\n{frontmatter.render_entry('k', text)}\n{frontmatter.render_entry('l', [text, {'m': text}])}\n---\n"
    assert Document(header).values == {"k": text, "l": [text, {"m": text}]}


@pytest.mark.case("FM-02")
def test_dates_stay_text():
    assert {k: values("dates")[k] for k in ("title", "created", "updated", "tags")} == {
        "title": "2025-09-14",
        "created": "2025-10-05",
        "updated": "2025-10-05T10:00:00Z",
        "tags": ["2025-01-02", "plan"],
    }


@pytest.mark.case("FM-03")
def test_words_that_yaml_takes_for_booleans_stay_words():
    assert values("norway")["title"] == "NO"
    assert values("norway")["tags"] == ["no", "yes", "on", "off", "y", "n", "true", "null", "NO"]


@pytest.mark.case("FM-04")
def test_quoted_tags_are_whole_before_and_after_another_field_changes():
    raw = case_file("frontmatter/quoted-flow-tags.md")
    expected = ["on-call", "build step", "it's", "a, b"]
    assert memory.parse(raw, "x.md").tags == expected
    assert memory.parse(memory.edit(raw, {"title": "Other"}), "x.md").tags == expected


@pytest.mark.case("FM-08")
def test_a_tab_in_the_indentation_is_an_error_with_file_and_line():
    with pytest.raises(MemoryFileError) as caught:
        memory.parse(case_file("frontmatter/tab-indent.md"), "knowledge/tab-indent.md")
    assert (caught.value.file, caught.value.line, caught.value.kind) == ("knowledge/tab-indent.md", 6, "tab")


@pytest.mark.case("FM-11")
def test_rules_and_fences_in_the_body_are_body():
    raw = case_file("frontmatter/hr-in-body.md")
    found = memory.parse(raw, "x.md")
    assert set(found.meta) == {"id", "type", "author", "title"}
    assert "Part three KEEPME." in found.content
    edited = memory.edit(raw, {"title": "Other"})
    assert edited.partition(b"\n---\n")[2] == raw.partition(b"\n---\n")[2]


@pytest.mark.case("FM-12")
def test_a_second_header_is_left_as_it_is():
    raw = case_file("frontmatter/double-frontmatter.md")
    found = memory.parse(raw, "x.md")
    assert found.id == "outer"
    edited = memory.edit(memory.edit(raw, {"updated": "2026-01-01"}), {"updated": None})
    assert edited == raw


@pytest.mark.case("FM-13")
def test_a_crlf_header_is_read_and_kept():
    raw = case_file("frontmatter/crlf.md")
    found = memory.parse(raw, "x.md")
    assert (found.id, found.meta["title"]) == ("crlf", "Windows file")
    edited = memory.edit(raw, {"title": "Other", "updated": "2026-01-01"}, {"Content": "One.\nTwo.", "Origin": "New."})
    assert edited.count(b"\n") == edited.count(b"\r\n")


@pytest.mark.case("FM-14")
def test_a_byte_order_mark_hides_nothing_and_stays():
    raw = case_file("frontmatter/bom.md")
    assert memory.parse(raw, "x.md").meta["title"] == "With BOM"
    assert memory.edit(raw, {"title": "Other"}).startswith(b"\xef\xbb\xbf---\n")


@pytest.mark.case("FM-16")
def test_changing_one_field_changes_one_line():
    raw = case_file("frontmatter/comments-unknown-keys.md")
    edited = memory.edit(raw, {"lifecycle": "review_due"})
    old, new = raw.decode().split("\n"), edited.decode().split("\n")
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [("lifecycle: 'active'", "lifecycle: review_due")]


def test_a_comment_behind_a_changed_value_stays():
    raw = case_file("frontmatter/comments-unknown-keys.md")
    assert b"author: Other   # trailing remark\n" in memory.edit(raw, {"author": "Other"})


@pytest.mark.case("GT-01")
def test_conflict_marks_in_the_header_are_a_fault_and_in_the_body_too():
    raw = case_file("gitsync/conflict-frontmatter.md")
    body = b"---\nid: a\ntype: rule\n---\n# T\n\n## Content\n\n<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n"
    for text, line in ((raw, 5), (body, 9)):
        with pytest.raises(MemoryFileError) as caught:
            memory.parse(text, "x.md")
        assert (caught.value.kind, caught.value.line) == ("conflict", line)


def test_a_memory_about_conflict_marks_shows_them_in_a_fence():
    raw = b"---\nid: a\ntype: rule\n---\n# T\n\n## Content\n\n```\n<<<<<<< HEAD\n=======\n>>>>>>> other\n```\n"
    assert memory.parse(raw, "x.md").id == "a"


@pytest.mark.parametrize(
    ("header", "kind", "line"),
    [
        ("a: 1\nb: 2\na: 3", "duplicate-key", 4),
        ("a: &x 1", "anchor", 2),
        ("a: *x", "anchor", 2),
        ("a: !t 1", "anchor", 2),
        ("<<: *x", "anchor", 2),
        ("a: [1, 2", "header", 2),
        ('a: "x', "header", 2),
        ("a\nb: 1", "header", 2),
        ("a: [1,,2]", "header", 2),
        ("a: {b 1}", "header", 2),
        ('a: "\\q"', "header", 2),
        ("%YAML 1.2", "anchor", 2),
        ("a: [&x 1]", "anchor", 2),
        ("a: " + "[" * 60, "header", 2),
        ("a: {b: 1, b: 2}", "header", 2),
        ("a:\n  b: 1\n  b: 2", "duplicate-key", 4),
    ],
)
def test_what_is_outside_the_subset_is_an_error_with_its_line(header, kind, line):
    with pytest.raises(MemoryFileError) as caught:
        Document(f"---\n{header}\n---\nbody\n")
    assert (caught.value.kind, caught.value.line) == (kind, line)


@pytest.mark.parametrize(("text", "kind"), [("id: x\n", "no-header"), ("---\nid: x\n", "open-header"), ("", "no-header")])
def test_a_file_without_a_whole_header_is_an_error(text, kind):
    with pytest.raises(MemoryFileError) as caught:
        Document(text)
    assert caught.value.kind == kind


def test_every_form_of_the_subset_is_read():
    text = (
        "---\n# remark\na:\n- x\n- y: 1\n  z: [1, 2]\n-\n  - deep\nb: |\n  one\n   two\n\n  three\nc: >-\n  fold\n  ed\n\n  para\n"
        "d: {k: v, l: [a, \"b c\"]}\ne: multi\n  line  # c\nf: 'it''s'  # c\ng:\n  h: 1\n\n  i:\n    - p\nk: [a,\n  b] # c\nu: http://x.y/z#f\n"
        'n:\n"q k": "\\u00e9\\n"\n---\nbody'
    )
    assert Document(text).values == {
        "a": ["x", {"y": "1", "z": ["1", "2"]}, ["deep"]],
        "b": "one\n two\n\nthree\n",
        "c": "fold ed\npara",
        "d": {"k": "v", "l": ["a", "b c"]},
        "e": "multi line",
        "f": "it's",
        "g": {"h": "1", "i": ["p"]},
        "k": ["a", "b"],
        "u": "http://x.y/z#f",
        "n": "",
        "q k": "é\n",
    }


def generated(rng, depth=0):
    kind = rng.randrange(4 if depth < 3 else 1)
    if kind == 1:
        return [generated(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 2:
        return {word(rng): generated(rng, depth + 1) for _ in range(rng.randrange(3))}
    return (
        word(rng)
        if rng.random() < 0.7
        else "".join(rng.choice(" :#'\"[]{},&*!|>%@`-?\\\n\t\x01é漢🚀ab1") for _ in range(rng.randrange(12)))
    )


def word(rng):
    return "".join(rng.choice("abcxyz-_.") for _ in range(rng.randrange(1, 8)))


def test_generated_headers_read_back_equal_and_edits_undo_to_the_same_bytes():
    rng = dice("frontmatter")
    for _ in range(count(300, 20000)):
        header = {word(rng): generated(rng) for _ in range(rng.randrange(1, 7))}
        newline = rng.choice(("\n", "\r\n"))
        lines = ["---", *(frontmatter.render_entry(k, header[k]) for k in sorted(header)), "---", "", "body: [", "---", "x"]
        text = rng.choice(("", "\ufeff")) + newline.join(lines)
        document = Document(text)
        assert document.values == header
        assert document.edited({}) == text
        assert document.edited(header) == text
        key = rng.choice([*header, "zz-new"])
        changed = document.edited({key: "other value"})
        assert Document(changed).values == {**header, key: "other value"}
        assert Document(changed).edited({key: header.get(key)}) == text


def test_any_text_is_read_or_refused():
    rng = dice("header-noise")
    for _ in range(count(1000, 50000)):
        noise = "".join(rng.choice(" \n\t:-#'\"[]{},|>&abc1\r") for _ in range(rng.randrange(60)))
        try:
            document = Document(f"---\n{noise}\n---\nbody")
        except MemoryFileError as error:
            assert error.line >= 1
        else:
            assert document.edited({}) == f"---\n{noise}\n---\nbody"
