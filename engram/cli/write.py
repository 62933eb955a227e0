"""Proposing at the terminal: save, save-session, note, observe, commit, pending."""

from __future__ import annotations

import os
import re

from engram import files, propose
from engram.cli import approval
from engram.errors import HumanNeeded, NotFound, Result, UsageError
from engram.propose import candidates, evidence
from engram.propose.guide import PROTOCOL

SCOPES = ("workspace", "global", "both")
LARGEST = 16 * 1024 * 1024
_SPOKEN = re.compile(r"\s*(?:the\s+)?last\s+([0-9]{1,6})\s+(?:chat\s+)?(?:sessions?|chats?)\s*[.!]?\s*", re.IGNORECASE)
REJECTED_LATER = "the human rejected the proposal at the terminal"


def answer_options(parser, *, scopes=SCOPES):
    parser.add_argument("--scope", choices=scopes, help="which store")
    parser.add_argument("--force", "-f", action="store_true", help="write what the human has already approved")


def options_save(parser):
    parser.add_argument(
        "words", nargs="*", metavar="TEXT", help="rule, skill, workflow or knowledge, then the text; or one TYPE: … | TEXT: … line"
    )
    parser.add_argument("--file", help="read the text from a file (`-`: standard input)")
    parser.add_argument("--type", help="rule, skill (workflow), knowledge")
    parser.add_argument("--role", action="append", default=[], help="who it is for")
    parser.add_argument("--context", help="why it exists")
    parser.add_argument("--triggers", action="append", default=[], help="other words it should be found by")
    parser.add_argument("--depends-on", action="append", default=[], metavar="ID", help="a memory that comes first")
    parser.add_argument("--level", help="depth: a number from 0, or basic, intermediate, advanced")
    parser.add_argument("--update", metavar="ID", help="the memory that it changes")
    parser.add_argument("--explain", action="store_true", help="say which words made the verdict")
    answer_options(parser)


def run_save(context, args):
    """Propose one memory and ask."""
    words, type = list(args.words), args.type
    if type is None and len(words) > 1 and words[0].lower() in candidates.TYPES:
        type = words.pop(0)
    text = _text(context, words, args.file)
    if not text.strip():
        raise UsageError("which text should be saved?", hint='engram save "TYPE: rule | TEXT: …"')
    proposal = propose.save(
        context.place,
        text,
        type=type,
        scope=args.scope,
        role=args.role,
        context=args.context,
        triggers=args.triggers,
        depends_on=args.depends_on,
        level=args.level,
        update=args.update,
        keep=False,
        explain=args.explain,
    )
    return approval.settle(context, proposal, force=args.force)


def options_save_session(parser):
    parser.add_argument("words", nargs="*", metavar="CANDIDATES", help="TYPE: … | TEXT: … lines; `last 50 sessions` is --query-level 50")
    parser.add_argument("--file", help="candidates, or an inbox wrapper made by engram observe (`-`: standard input)")
    parser.add_argument("--query-level", type=_positive, metavar="N", help="how many recent chats the agent may draw on")
    parser.add_argument("--role", action="append", default=[], help="who they are for")
    parser.add_argument("--explain", action="store_true", help="say which words made each verdict")
    answer_options(parser)


def run_save_session(context, args):
    """Propose several memories and ask."""
    level, words = args.query_level, list(args.words)
    spoken = _SPOKEN.fullmatch(" ".join(words))
    if spoken:
        level, words = _positive(spoken[1]), []
    if args.file and args.file != "-" and not words and evidence.wrapped(context.place, os.path.join(context.cwd, args.file)):
        proposal = propose.propose_evidence(
            context.place, os.path.join(context.cwd, args.file), scope=args.scope, role=args.role, keep=False, explain=args.explain
        )
        return approval.settle(context, proposal, force=args.force)
    text = _text(context, words, args.file)
    if _SPOKEN.fullmatch(text):
        level, text = _positive(_SPOKEN.fullmatch(text)[1]), ""
    if not text.strip():
        return _guide(context, level)
    proposal = propose.save_session(context.place, text, scope=args.scope, role=args.role, keep=False, explain=args.explain)
    return approval.settle(context, proposal, force=args.force)


def _guide(context, level):
    """Tell the agent how to propose, and from how many chats: there are no candidates yet."""
    source = f"Draw on the {level} most recent chats of this project." if level else "Draw on this session."
    needed = "there are no candidates yet; an agent writes them as the guide says."
    text = f"{PROTOCOL}\n{source}"
    if not context.json:
        context.show(text)
    return Result({"query_level": level, "text": text}, needed, exit_code=3, error=(HumanNeeded.code, needed))


def _positive(value):
    if not re.fullmatch(r"[0-9]{1,6}", value) or int(value) < 1:
        raise UsageError("--query-level is a positive number of chats.")
    return int(value)


def options_note(parser):
    parser.add_argument("words", nargs="*", metavar="TEXT", help="what to keep for the task under way")
    parser.add_argument("--file", help="read the text from a file (`-`: standard input)")
    parser.add_argument("--objective", help="the task: a session with the same one shows the note")
    parser.add_argument("--type", help="rule, skill (workflow), knowledge")
    answer_options(parser, scopes=SCOPES[:2])


def run_note(context, args):
    """Propose a working note and ask for one yes."""
    text = _text(context, args.words, args.file)
    proposal = propose.note(context.place, text, objective=args.objective, type=args.type, scope=args.scope, keep=False)
    return approval.settle(context, proposal, force=args.force)


def options_observe(parser):
    parser.add_argument("words", nargs="*", metavar="TEXT", help="the source")
    parser.add_argument("--file", help="read the source from a file (`-`: standard input)")
    parser.add_argument("--session", default="manual", help="a name for where it came from")
    parser.add_argument("--private", action="store_true", help="keep the evidence out of Git")
    parser.add_argument("--scope", choices=SCOPES[:2], help="which store")


def run_observe(context, args):
    """Keep a source as evidence, with a file to review."""
    text = _text(context, args.words, args.file)
    source = os.path.basename(args.file) if args.file and args.file != "-" else None
    return propose.observe(
        context.place,
        text,
        source_file=source,
        session=args.session,
        scope=args.scope,
        sensitivity="private" if args.private else "internal",
    )


def options_commit(parser):
    parser.add_argument("token", help="the approval token that a proposal returned")
    parser.add_argument("--scope", choices=SCOPES, help="narrow a proposal for both stores to one")


def run_commit(context, args):
    """Show the proposal of a token and ask."""
    return _decide(context, propose.reopen(context.place, args.token), args.scope)


def options_pending(parser):
    parser.add_argument("entry", nargs="?", help="one of them, as the list names it")
    parser.add_argument("--scope", choices=SCOPES, help="narrow a proposal for both stores to one")


def run_pending(context, args):
    """List what waits for a human; show one and ask."""
    waiting = propose.pending(context.place)
    if args.entry:
        found = [proposal for proposal in waiting if proposal.entry.startswith(args.entry)]
        if len(found) != 1:
            raise NotFound(
                f"{'no' if not found else 'more than one'} proposal that waits is named `{args.entry[:40]}`.", hint="Run engram pending."
            )
        return _decide(context, found[0], args.scope)
    if len(waiting) == 1 and context.interactive:
        return _decide(context, waiting[0], args.scope)
    rows = [
        {
            "entry": proposal.entry,
            "kind": proposal.kind,
            "scopes": proposal.scopes,
            "expires_at": proposal.expires_at,
            "candidates": proposal.candidates,
        }
        for proposal in waiting
    ]
    lines = [
        f"{row['entry']}  until {row['expires_at']}  " + "; ".join(f"[{c['number']}] {c['verdict']} {c['id']}" for c in row["candidates"])
        for row in rows
    ]
    lines.append("Show and answer one: engram pending <entry>" if rows else "Nothing waits for approval.")
    return Result({"pending": rows}, "\n".join(lines))


def _decide(context, proposal, scope):
    """Show a pending proposal and, at a terminal, carry out the answer."""
    approval.show(context, proposal.text)
    if not context.interactive:
        needed = "Nothing was saved: approval needs a person at a terminal."
        return Result({"entry": proposal.entry, "candidates": proposal.candidates}, needed, exit_code=3, error=(HumanNeeded.code, needed))
    answer = approval.ask(context, proposal.numbers)
    if answer is None:
        propose.revoke(context.place, proposal.entry, REJECTED_LATER)
        return Result({"saved": [], "deferred": []}, approval.REJECTED, exit_code=1)
    approve, note = answer
    return propose.by_entry(context.place, proposal.entry, approve, scope=scope, by="terminal", note=note)


def _text(context, words, file):
    """Return the text of a command: its words, a file, or standard input."""
    if words and file:
        raise UsageError("give the text as words or as a file, not both.")
    if words:
        return " ".join(words)
    if not file or file == "-":
        return context.stdin_text()
    raw = files.read_regular(os.path.join(context.cwd, file), limit=LARGEST)
    if raw is None:
        raise NotFound("there is no such file.", file=file)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"not UTF-8 (byte {error.start}).", file=file) from None
