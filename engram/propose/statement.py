"""One statement, read: its words in order, what it denies, what it puts aside, and what a place in it means.

Pure text. Knows the tables of `grammar.py` and the word stems of `engram.text`; knows neither memories nor
verdicts. The reading is shallow on purpose: it has to be the same on every machine, and where it is not sure
it says so, and a person decides.
"""

from __future__ import annotations

import re

from engram.propose import grammar
from engram.safety.patterns import Pattern
from engram.text import fold, similarity
from engram.text.stems import stem

CHOICE, SUBJECT, SCOPE, OBJECT, UNSURE = "choice", "subject", "scope", "object", "unsure"
LONGEST = 1200  # characters; of a longer statement only the words are compared
_MEMO = 4096  # statements kept read: the same memories are compared again and again
_MARK = r"\x01[a-z]+\x02"
_WORD = Pattern(
    rf"{_MARK}|[\u3040-\u30ff\u3400-\u9fff]|v?\d+(?:[.,:]\d+)*(?:[a-zµ%]{{0,3}}(?![^\W\d_]))?"
    r"|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:[-_.'’/+#@:][^\W_\u3040-\u30ff\u3400-\u9fff]+)*(?:\+\+|#)?|[,;:=()，；：、（）]| - | – | — "
)
_BREAKS = frozenset(",;:()，；：、（）-–—")
_LIST_MARK = Pattern(r"^\s*(?:>\s*)*(?:[-*+•]\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+")
_SENTENCE = Pattern(r"(?<=[.!?])[\"')\]]*\s+(?=\S)|(?<=[。！？])|\s*[;；]\s+")
_HEADING = Pattern(r"^\s*#{1,6}\s+")
_CHOOSING, _PLACING, _ADDING, _UNITS = (
    {*table, *map(stem, table)} for table in (grammar.CHOOSING, grammar.PLACING, grammar.ADDING, grammar.UNITS)
)
_ABBREVIATION = Pattern(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)\.$", re.IGNORECASE)


class Word:
    """One word: `key` is what is compared, `shown` what stood there, `telling` whether it counts."""

    __slots__ = ("key", "shown", "kind", "determined", "after_break", "telling")

    def __init__(self, key, shown, kind, determined, after_break):
        self.key, self.shown, self.kind = key, shown, kind
        self.determined, self.after_break = determined, after_break
        self.telling = kind not in ("prep", "copula") or key in grammar.TELLING


_known = {}


def read(text):
    """Return the Statement of a text; one that was read before comes from memory."""
    found = _known.get(text)
    if found is None:
        if len(_known) >= _MEMO:
            _known.clear()
        found = _known[text] = Statement(text)
    return found


class Statement:
    """A sentence or list entry.

    `words` in order, `keys` those that count, `rejected` the keys it puts aside ("instead of …"), `turned` how many
    keys at the end stood in a clause in front, `reason` the "because …" that was set aside.
    """

    __slots__ = ("text", "plain", "words", "telling", "keys", "content", "negative", "ended", "rejected", "turned", "reason", "long")

    def __init__(self, text):
        self.text = text
        self.plain = plain(text)
        self.words, self.rejected, self.negative, self.ended, self.turned, self.reason = [], [], False, False, 0, ""
        self.long = len(text) > LONGEST
        if self.long:
            self.telling, self.keys = [], []
            self.content = frozenset(self.plain.split())
            return
        self._read(text)
        self.telling = [at for at, word in enumerate(self.words) if word.telling]
        self.keys = [self.words[at].key for at in self.telling]
        self.content = frozenset(word.key for word in self.words if word.kind in ("word", "number", "han", "verb") and word.telling)

    def _read(self, text):
        flat = fold(" ".join(_unmarked(text).split()))
        found = re.search(grammar.REASONS, flat)
        self.reason = found[0] if found else ""
        flat = flat.replace(self.reason, "", 1)
        flat = grammar.rewrite(flat)
        negations, determined, broken, putting_aside = 0, False, False, False
        pending = []
        for found in _WORD.finditer(flat):
            shown = found[0].strip()
            if shown[0] == "\x01":
                mark = shown[1:-1]
                if mark == "use":
                    pending.append(Word("use", "用", "choice", False, broken))
                elif mark == grammar.INSTEAD:
                    putting_aside = True
                elif mark == grammar.ENDED:
                    self.ended = True
                    negations += 1
                else:
                    negations += 1
                    putting_aside = False
                broken = False
                continue
            if shown in _BREAKS and shown != ":":
                broken, putting_aside = True, False
                continue
            if shown in grammar.DROPPED or shown.replace("'", "").replace("’", "") in grammar.DROPPED:
                determined = determined or shown in grammar.DETERMINERS
                continue
            word = self._word(shown, determined, broken, pending)
            determined = broken = False
            if word is None:
                continue
            if putting_aside:
                if word.kind == "prep" and self.rejected:
                    putting_aside = False
                elif word.kind not in ("prep", "copula", "choice"):
                    self.rejected.append(word.key)
                    continue
                else:
                    continue
            pending.append(word)
        self.negative = negations % 2 == 1
        self.words, clause = _turned(pending)
        self.turned = sum(word.telling for word in clause)

    def _word(self, shown, determined, broken, before):
        if shown in grammar.NUMBERS:
            shown = grammar.NUMBERS[shown]
        if re.match(r"v?\d", shown):
            return Word(shown.lstrip("v").replace(",", ""), shown, "number", determined, broken)
        if len(shown) == 1 and "\u3040" <= shown <= "\u9fff":
            kind = (
                "choice"
                if shown in grammar.CHOOSING
                else "copula"
                if shown in grammar.COPULAS
                else ("prep" if shown in grammar.PREPOSITIONS else "han")
            )
            return Word("use" if kind == "choice" else shown, shown, kind, determined, broken)
        if shown in grammar.PREPOSITIONS:
            return Word(shown, shown, "prep", determined, broken)
        if shown in ("used", "uses", "using"):
            return Word("use", shown, "choice", determined, broken)
        key = stem(shown.replace("-", "").replace("'s", "").replace("’s", "").replace("_", ""))
        kind = self._kind(shown, key, determined, before)
        return Word("use" if kind == "choice" else key, shown, kind, determined, broken)

    def _kind(self, shown, key, determined, before):
        if shown in grammar.COPULAS:
            return "copula"
        last = before[-1] if before else None
        if determined or last is not None and last.kind == "prep":
            return "word"  # "the build", "for installs": a name of a thing
        inflected = shown.endswith(("s", "ed", "ing")) and not shown.endswith("ss")
        if last is None and inflected:
            return "word"  # "deploys run …": an order begins with the bare verb
        if (
            last is not None
            and not inflected
            and shown.isascii()
            and not (last.shown.endswith("s") or last.kind in ("copula", "choice", "han", "number") or last.key in grammar.MODALS)
        ):
            return "word"
        if key in _CHOOSING:
            return "choice"
        if key in _PLACING:
            return "placing"
        if key in _ADDING:
            return "adding"
        return "word"


def _turned(words):
    """Put a leading clause ("before a release, run the tests") behind the rest: (words, the clause moved)."""
    if words and words[0].kind == "prep":
        cut = next((at for at, word in enumerate(words) if at and word.after_break), None)
        if cut is not None and cut <= 12:
            rest, clause = words[cut:], words[:cut]
            rest[0].after_break = False
            return rest + clause, clause
    return words, []


def plain(text):
    """Return text for the test of sameness: folded, one blank between words, no marks around or between."""
    flat = fold(" ".join(_unmarked(text).split()))
    return re.sub(r"[\s\"'`.,;:!?。，；：！？、“”‘’()（）]+", " ", flat).strip()


def _unmarked(text):
    text = _LIST_MARK.sub("", text)
    text = re.sub(r"\[([^\]\n]{1,200})\]\([^)\s]{1,500}\)", r"\1", text)
    return re.sub(r"(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|`+", "", text)


def statements(text):
    """Split Markdown text into its statements, as texts: list entries, sentences, lines of code whole."""
    made, fence = [], None
    for line in text.split("\n"):
        if fence is not None:
            made[-1] += "\n" + line
            if line.strip().startswith(fence):
                fence = None
            continue
        if line.lstrip().startswith(("```", "~~~")):
            fence = line.lstrip()[:3]
            made.append(line)
            continue
        if not line.strip() or _HEADING.match(line):
            continue
        mark = _LIST_MARK.match(line)
        mark = mark[0] if mark else ""
        joined = []
        for part in _SENTENCE.split(line[len(mark) :]):
            if joined and _ABBREVIATION.search(joined[-1]):
                joined[-1] += " " + part
            elif part.strip():
                joined.append(part)
        if joined:
            joined[0] = mark + joined[0]
        # a wrapped line goes on with its sentence
        if joined and made and not mark and _goes_on(made[-1], line):
            made[-1] += " " + joined.pop(0).strip()
        made += [part.strip() for part in joined]
    return made


def _goes_on(before, line):
    listed = _LIST_MARK.match(before)
    return (
        not re.search(r"[.!?。！？:：]$", before.rstrip())
        and not before.lstrip().startswith(("```", "~~~"))
        and (not listed or line.startswith((" ", "\t")))
    )


def role(words, at):
    """Tell what the place of words[at] is for: the choice made, the subject, where it holds, one more object, unsure."""
    verb_before, slot = None, at
    at -= 1
    while at >= 0:
        word = words[at]
        if word.kind in ("choice", "copula") or word.key in grammar.COPULAS:
            return CHOICE
        if word.kind == "prep":
            return _placed(words, at)
        if word.kind == "placing":
            return SUBJECT
        if word.kind == "adding":
            return OBJECT
        verb_before = verb_before or (word if _looks_verbal(word) and at else None)
        at -= 1
    if verb_before:
        return UNSURE
    # "X is the …" names one thing: which one is the choice
    copula = next((i for i in range(slot + 1, len(words)) if words[i].kind == "copula"), None)
    identity = copula is not None and copula + 1 < len(words) and words[copula + 1].determined
    if identity and not any(_is_verb(w) for w in words[slot:copula]):
        return CHOICE
    verb = next((word for word in words[slot + 1 :] if _is_verb(word)), None)
    return UNSURE if verb is not None and verb.key in grammar.OWNING else SUBJECT


def _placed(words, at):
    """Tell what a phrase behind the preposition words[at] says, from the verb that it belongs to."""
    if words[at].key in ("of", "của"):
        return role(words, at)
    before = words[at - 1] if at else None
    if before is None:
        return SCOPE
    if words[at].key not in grammar.SETTLING:
        return _without_verb(words, at) if not any(_is_verb(w) for w in words[:at]) else SCOPE
    if before.kind == "copula":
        return CHOICE
    if before.kind == "placing" or at > 1 and (words[at - 2].kind == "copula" or before.shown.endswith("ed")) and before.kind != "choice":
        return CHOICE
    if before.kind == "adding":
        return SCOPE if at == 1 else CHOICE
    for back in range(at - 1, -1, -1):
        word = words[back]
        if word.kind == "prep" and word.key not in ("of", "của"):
            break
        if word.kind == "placing":
            return CHOICE
        if word.kind == "adding":
            return UNSURE if words[at].key in grammar.INSTRUMENTS else SCOPE
        if _is_verb(word):
            return SCOPE
    if any(_is_verb(w) for w in words[:at]):
        return SCOPE
    return _without_verb(words, at)


def _without_verb(words, at):
    """Tell what a phrase is for when no verb that the tables know stands before it."""
    if any(_is_verb(w) for w in words[at + 1 :]):
        return SUBJECT
    return UNSURE if words[at].key in grammar.INSTRUMENTS else SCOPE


def _is_verb(word):
    return word.kind in ("choice", "copula", "placing", "adding")


def _looks_verbal(word):
    return word.kind == "word" and word.shown.isascii() and word.shown.endswith(("s", "ed")) and not word.shown.endswith("ss")


def is_measure(words, at):
    """Tell whether the number words[at] measures something (a unit follows, or "at most" stands before)."""
    after = words[at + 1] if at + 1 < len(words) else None
    before = words[at - 1] if at else None
    counts = (
        after is not None
        and after.kind == "word"
        and not after.after_break
        and (before is None or before.kind in ("choice", "copula", "placing", "adding", "prep"))
    )
    return bool(
        counts
        or re.search(r"\d(?:%|[a-z]{1,3})$", words[at].shown)
        or after is not None
        and after.key in _UNITS
        or before is not None
        and before.key in ("atmost", "atleast", "every", "after", "within", "limit", "port", "default")
    )


def alike(a, b):
    """The one similarity measure, on the words of two statements."""
    return similarity(a.text, b.text)
