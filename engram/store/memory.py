"""One memory: a Markdown file with a header, read into a value, made anew, or edited in place.

Pure: bytes in, bytes out. Must not know where files lie or which of them are approved. Schema v1, v2 and v3
are read (upstream-format.md, b); what is made here is v3.
"""
from __future__ import annotations

import re
import unicodedata

from engram.errors import EngramError, MemoryFileError
from engram.files import sha256
from engram.store import dates, ids
from engram.store.frontmatter import Document, render_entry

TYPES = ("rule", "skill", "knowledge")
FOLDERS = {"rule": "rules", "skill": "skills", "knowledge": "knowledge"}
LARGEST = 1024 * 1024
LEVELS = {"base": 0, "basic": 0, "core": 0, "foundation": 0, "foundational": 0, "fundamental": 0,
          "intermediate": 1, "mid": 1, "advanced": 2, "deep": 2}
VARIANTS = ("light", "balanced", "strict")
HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
CODE_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s|(?<=[。！？])")
LIST_KEYS = ("tags", "triggers", "depends_on", "role", "evidence_refs", "derived_from", "source_files", "source_hashes",
             "supersedes", "task_types", "parent")
DATE_KEYS = ("valid_from", "valid_until")


class Memory:
    """A memory file that could be read. `rel` is its path under the store root, with `/`."""

    __slots__ = ("body", "id", "meta", "raw", "rel", "scope", "sections", "sha256", "title", "type", "valid_from", "valid_until")

    def __repr__(self):
        return f"<Memory {self.key}>"

    @property
    def key(self):
        """`<scope>:<path>`, as tools name a memory (mcp.md, "Results")."""
        return f"{self.scope}:{self.rel}"

    def list(self, name):
        """Return a header value as a list of texts; a lone text counts as a list of one (fault L-9)."""
        value = self.meta.get(name)
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if "," in value else [value]
        return [str(item) for item in value or () if isinstance(item, (str, int)) and str(item).strip()]

    def text(self, name, default=""):
        """Return a header value as text; a list or mapping, and an empty one, count as absent."""
        value = self.meta.get(name)
        return value if isinstance(value, str) and value not in ("", "~", "null") else default

    tags = property(lambda self: self.list("tags"))
    triggers = property(lambda self: self.list("triggers"))
    depends_on = property(lambda self: self.list("depends_on"))
    role = property(lambda self: self.list("role"))
    supersedes = property(lambda self: self.list("supersedes"))
    evidence_refs = property(lambda self: self.list("evidence_refs"))
    lifecycle = property(lambda self: self.text("lifecycle", "active"))
    tier = property(lambda self: self.text("tier", "durable"))
    superseded_by = property(lambda self: self.text("superseded_by"))

    @property
    def confidence(self):
        """high, medium or low; medium when the file says nothing."""
        value = self.text("confidence").lower()
        return value if value in ("high", "medium", "low") else "medium"

    @property
    def authority(self):
        """instruction or reference; by type when the file says nothing."""
        value = self.text("authority").lower()
        return value if value in ("instruction", "reference") else "reference" if self.type == "knowledge" else "instruction"

    @property
    def revision(self):
        """The revision, from 1."""
        value = self.text("revision")
        return int(value) if value.isascii() and value.isdigit() and 0 < int(value) < 10 ** 6 else 1

    @property
    def level(self):
        """The depth: 0 base, 1 intermediate, 2 advanced, or a number."""
        value = (self.text("level") or self.text("dependency_depth") or self.text("depth")).lower()
        return LEVELS.get(value, int(value) if value.isascii() and value.isdigit() and len(value) < 4 else 0)

    @property
    def content(self):
        """The text under `## Content`; the whole body below the title when there is no such section."""
        return self.sections["Content"] if "Content" in self.sections else _below_title(self.body).strip("\n")

    @property
    def summary(self):
        """The first sentence of the content, on one line, without list and quote marks."""
        return first_sentence(self.content) or self.title

    @property
    def variants(self):
        """The wordings of a rule that the file has: a mapping of light, balanced, strict to text."""
        made = {}
        for name, text in self.sections.items():
            if name.startswith("Rule Variants/") and text.strip():
                made[name.partition("/")[2].lower()] = text.strip("\n")
        return {name: made[name] for name in VARIANTS if name in made}

    def rule_text(self, variant):
        """Return the wording of a rule for a variant; the nearest one that the file has, else the content."""
        mine = self.variants
        for name in {"light": ("light", "balanced"), "strict": ("strict", "balanced")}.get(variant, ("balanced",)):
            if name in mine:
                return mine[name]
        return self.content


def parse(raw, rel, scope="workspace"):
    """Read the bytes of a memory file. Raises MemoryFileError with line and reason."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MemoryFileError(f"not UTF-8: byte 0x{raw[error.start]:02x} at offset {error.start}.", kind="encoding", file=rel,
                              line=raw.count(b"\n", 0, error.start) + 1) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise MemoryFileError("a NUL character: this is not text.", kind="binary", file=rel, line=line)
    try:
        document = Document(text)
        memory = _read(document)
    except MemoryFileError as error:
        error.file = rel
        raise
    memory.raw, memory.rel, memory.scope, memory.sha256 = raw, rel, scope, sha256(raw)
    return memory


def _read(document):
    memory = Memory()
    memory.meta = document.values
    memory.id = memory.text("id")
    memory.type = memory.text("type").lower()
    if not memory.id:
        raise MemoryFileError("the header has no `id`.", kind="no-id", line=1)
    try:
        ids.check(memory.id)
    except EngramError as error:
        raise MemoryFileError(error.message, kind="bad-id", line=_line(document, "id")) from None
    if memory.type not in TYPES:
        raise MemoryFileError("the header has no `type` of rule, skill or knowledge.", kind="no-type", line=_line(document, "type"))
    for name in DATE_KEYS:
        value = memory.text(name)
        try:
            setattr(memory, name, (dates.end if name == "valid_until" else dates.instant)(value) if value else None)
        except ValueError as error:
            raise MemoryFileError(f"`{name}: {value}` is {error}.", kind="date", line=_line(document, name)) from None
    memory.body = unicodedata.normalize("NFC", document.body.replace("\r\n", "\n"))
    _refuse_conflict(memory.body, document.close + 2)
    memory.title, memory.sections = _outline(memory.body)
    memory.title = memory.title or memory.text("title") or memory.id
    return memory


def first_sentence(text):
    """Return the first sentence of Markdown text on one line, without list, quote and heading marks."""
    for line in text.split("\n"):
        line = re.sub(r"^[\s>]*(?:[-*+]\s+|\d{1,3}[.)]\s+|#{1,6}\s+)?", "", line).strip()
        if line and not CODE_FENCE.match(line):
            line = " ".join(line.split())
            cut = SENTENCE_END.search(line)
            return line[:cut.start()].rstrip() if cut else line
    return ""


def title_of(text, *, longest=70):
    """Return a title for a text: its first sentence without the final stop, cut between words at `longest`."""
    title = first_sentence(text).rstrip(".!?。！？ ")
    title = title[:1].upper() + title[1:]
    if len(title) <= longest:
        return title
    cut = title[:longest - 1]
    return (cut.rpartition(" ")[0] if " " in cut else cut).rstrip(",;:- ") + "…"


def new(header, title, sections):
    """Return the bytes of a new memory file: sorted header, title, sections in order.

    `header` maps keys to text, numbers and lists; a None is left out. `sections` is a list of
    (heading, text); a heading may be deeper (`### Light`).
    """
    lines = ["---", *(render_entry(key, header[key]) for key in sorted(header) if header[key] is not None), "---", "", f"# {title}"]
    for heading, text in sections:
        lines += ["", heading if heading.startswith("#") else f"## {heading}", *(["", *text.split("\n")] if text else [])]
    return unicodedata.normalize("NFC", "\n".join(lines) + "\n").encode("utf-8")


def edit(raw, changes=None, sections=None):
    """Return the bytes of a memory file with header keys and sections changed, every other byte kept.

    `changes` maps keys to new values (None removes); `sections` maps `Content`, `Origin`, … to the section's
    whole new text; one that the file doesn't have is added at the end. Line ends and BOM stay as they are.
    """
    text = raw.decode("utf-8")
    for name, new_text in (sections or {}).items():
        text = _with_section(text, name, new_text)
    return Document(text).edited(changes or {}).encode("utf-8")


def _with_section(text, name, new_text):
    document = Document(text)
    carriage = document.newline[:-1]
    body = document.lines[document.close + 1:]
    span = next((s for s in _spans(body) if s[0] == name), None)
    lines = [line + carriage for line in unicodedata.normalize("NFC", new_text).strip("\n").split("\n")]
    if span is None:
        while body and not body[-1].strip():
            body.pop()
        body += [carriage, f"## {name}{carriage}", carriage, *lines, ""]
    else:
        _, first, last = span
        while first < last and not body[first].strip():
            first += 1
        while last > first and not body[last - 1].strip():
            last -= 1
        body[first:last] = lines
    return document.bom + "\n".join(document.lines[:document.close + 1] + body)


def _outline(body):
    """Return (title, sections): the first `#` heading, and `##` headings (and `##/###`) mapped to their text."""
    lines = body.split("\n")
    title = next((text for _, depth, text in _headings(lines) if depth == 1), "")
    sections = {}
    for name, first, last in _spans(lines):
        text = "\n".join(lines[first:last]).strip("\n")
        sections.setdefault(name, []).append(text)
    return title, {name: "\n\n".join(texts) for name, texts in sections.items()}


def _spans(lines):
    """Return (name, first, last) of each section: `##`, and `###` in it as `Above/Below`; a `##` spans its `###`s."""
    spans, above = [], None
    marks = [row for row in _headings(lines) if row[1] <= 3]
    ends, nearest = {}, {1: len(lines), 2: len(lines), 3: len(lines)}
    for index, depth, _ in reversed(marks):
        ends[index] = min(nearest[above_it] for above_it in range(1, depth + 1))
        nearest[depth] = index
    for index, depth, name in marks:
        if depth == 1:
            continue
        end = ends[index]
        if depth == 2:
            above = name
            spans.append((name, index + 1, end))
        elif above is not None:
            spans.append((f"{above}/{name}", index + 1, end))
    return spans


def _headings(lines):
    """Yield (index, depth, text) of each heading outside code."""
    for index, line, fenced in _unfenced(lines):
        if not fenced and line.startswith("#"):
            found = HEADING.match(line.rstrip("\r"))
            if found:
                text = found[2].rstrip(" \t")
                bare = text.rstrip("#")  # closing marks go, the # of a name such as C# stays
                yield index, len(found[1]), bare.rstrip(" \t") if not bare or bare[-1] in " \t" else text


def _unfenced(lines):
    """Yield (index, line, whether it is in or at a code fence)."""
    fence = None
    for index, line in enumerate(lines):
        found = CODE_FENCE.match(line)
        if fence is None:
            fence = found[1] if found else None
            yield index, line, found is not None
        else:
            yield index, line, True
            if found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not line.strip().strip(fence[0]):
                fence = None


def _refuse_conflict(body, first_line):
    if "<<<<<<< " not in body:
        return
    opened = None
    for index, line, fenced in _unfenced(body.split("\n")):
        if fenced:
            continue
        if line.startswith("<<<<<<< "):
            opened = index
        elif line.startswith(">>>>>>> ") and opened is not None:
            raise MemoryFileError("Git left a conflict here; resolve both sides first.", kind="conflict", line=first_line + opened)


def _below_title(body):
    lines = body.split("\n")
    for index, depth, _ in _headings(lines):
        if depth == 1:
            return "\n".join(lines[index + 1:])
    return body


def _line(document, key):
    return document.entries[key].first + 1 if key in document.entries else 1
