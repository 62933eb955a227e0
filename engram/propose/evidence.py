"""Evidence: a sanitised source as an immutable trace, and an editable wrapper to review (propose.md, Evidence).

What is promoted comes from the trace, after its hash, scope and age are checked; the wrapper only says which
trace. File formats: upstream-format.md, c. Must not know verdicts or tokens.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from engram import files, safety
from engram.errors import IntegrityError, MemoryFileError, NotFound, Result, UsageError
from engram.propose import candidates, compose
from engram.safety.patterns import Pattern
from engram.store import dates, memory
from engram.store.frontmatter import Document, render_entry
from engram.store.writing import Writer

LARGEST = 512 * 1024
RETENTION = "30d"
TRACE_ID = Pattern(r"tr_[A-Za-z0-9_-]{1,80}")
SENSITIVITIES = ("public", "internal", "private", "secret")

Evidence = namedtuple("Evidence", "text extra scope")


def sanitised(text):
    """Return (text, findings, removed lines): secrets redacted, lines that give orders dropped, trimmed."""
    text, findings = safety.redact(candidates.clean(text))
    bad = {found.line for found in safety.instruction_lines(text)}
    kept = "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in bad)
    return kept.strip("\n").rstrip(), findings, sorted(bad)


def observe(place, text, *, source_file=None, session="manual", scope=None, sensitivity="internal"):
    """Write one trace and its wrapper; a Result with {trace_id, file, trace, redacted, removed}.

    Raises UsageError for an empty or too large source, StorageError.
    """
    if sensitivity not in SENSITIVITIES:
        raise UsageError(f"sensitivity is one of {', '.join(SENSITIVITIES)}.")
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise UsageError(f"the source is larger than {LARGEST // 1024} KiB.", hint="Observe the part that matters.")
    store = place.store_of(scope or ("global" if place.global_only else "workspace"))
    clean, findings, removed = sanitised(text)
    if not clean.strip():
        raise UsageError("nothing is left to observe." if text.strip() else "there is no text to observe.")
    now = dates.stamp()
    mark = "private" if sensitivity in ("private", "secret") else ""  # names that .gitignore keeps out of Git (fault S-5)
    trace_id, source_hash = "_".join(filter(None, ("tr", mark, os.urandom(16).hex()))), f"sha256:{files.sha256(clean.encode())}"
    session = " ".join(safety.redact(session)[0].split())[:120] or "manual"
    trace = {
        "authority": "evidence",
        "eventTime": now,
        "host": "cli",
        "ingestedAt": now,
        "redactedFindings": len(findings),
        "removedInjectionLines": len(removed),
        "retention": RETENTION,
        "sensitivity": sensitivity,
        "sessionId": session,
        "source": "observe",
        "sourceHash": source_hash,
        "text": clean,
        "traceId": trace_id,
        "trustLevel": "human",
        "turnId": 0,
    }
    if source_file:
        trace["sourceFile"] = source_file
    trace_rel = f"traces/{trace_id}.jsonl"
    wrapper_rel = f"inbox/{mark and mark + '-'}{now.replace(':', '-').replace('.', '-')}-{compose.wanted_id(clean, 'note')[:60]}.md"
    line = json.dumps(trace, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    with Writer(store) as writer:
        files.ensure_dir(os.path.dirname(store.path(trace_rel)))
        files.create(store.path(trace_rel), line)  # never replaces: a trace is written once
        writer.put(_unused(store, wrapper_rel), _wrapper(trace, clean, wrapper_rel), hashed=False)
        rel = writer.commit()[0]
    told = [f"Kept as evidence {trace_id}; review {rel}, then: engram save-session --file {os.path.join(store.root, rel)}"]
    if findings:
        told.append("Redacted: " + "; ".join(f"{found.label} at line {found.line}, column {found.column}" for found in findings))
    if removed:
        told.append(f"Dropped lines that give orders: {', '.join(map(str, removed))}")
    data = {
        "trace_id": trace_id,
        "trace": f"{store.scope}:{trace_rel}",
        "file": f"{store.scope}:{rel}",
        "redacted": [found.data() for found in findings],
        "removed_lines": removed,
    }
    return Result(data, "\n".join(told))


def _unused(store, rel):
    stem, number = rel.removesuffix(".md"), 2
    while os.path.lexists(store.path(rel)):
        rel, number = f"{stem}-{number}.md", number + 1
    return rel


def _wrapper(trace, text, rel):
    header = {
        "authority": "evidence",
        "created": trace["ingestedAt"],
        "event_time": trace["eventTime"],
        "host": trace["host"],
        "redacted_findings": trace["redactedFindings"],
        "removed_injection_lines": trace["removedInjectionLines"],
        "retention": trace["retention"],
        "sensitivity": trace["sensitivity"],
        "session_id": trace["sessionId"],
        "source": "observe",
        "source_file": trace.get("sourceFile"),
        "source_hash": trace["sourceHash"],
        "trace_id": trace["traceId"],
        "trust_level": trace["trustLevel"],
    }
    lines = [
        "---",
        *(render_entry(key, header[key]) for key in sorted(header) if header[key] is not None),
        "---",
        "",
        f"# Observation: {memory.title_of(text, longest=60)}",
        "",
        "## Raw Note",
        "",
        text,
        "",
        "## Next",
        "",
        f"Review, then run `engram save-session --file {os.path.basename(rel)}` from this folder. What is proposed comes from the "
        "trace: changing this file does not change it.",
        "",
    ]
    return "\n".join(lines).encode("utf-8")


def wrapped(place, path):
    """Whether a file given to save-session is an inbox wrapper of a store in reach."""
    return _inbox(place, path) is not None


def read(place, path):
    """Return the Evidence that a wrapper names, checked. Raises IntegrityError, NotFound, UsageError, Refused."""
    found = _inbox(place, path)
    if found is None:
        raise UsageError("this file lies in no store's inbox.", file=path)
    store, rel = found
    header = _header(store, rel)
    trace_id = header.get("trace_id")
    if header.get("authority") != "evidence" or not isinstance(trace_id, str) or not TRACE_ID.fullmatch(trace_id):
        raise UsageError("the wrapper names no trace.", file=path, hint="engram observe makes one.")
    trace = load_trace(store, trace_id)
    extra = {
        "evidence_refs": [trace_id],
        "derived_from": [trace["sessionId"]] if trace.get("sessionId") else [],
        "source_hashes": [trace["sourceHash"]],
        "source_files": [rel],
    }
    return Evidence(trace["text"], extra, store.scope)


def load_trace(store, trace_id):
    """Return a trace of this store, checked. Raises IntegrityError for one missing, tampered with, foreign or expired."""
    raw = files.read_regular(store.path(f"traces/{trace_id}.jsonl"), limit=2 * LARGEST)
    if raw is None:
        raise IntegrityError(f"the trace {trace_id} is missing from the {store.scope} store, so nothing can be promoted from it.")
    try:
        trace = json.loads(raw)
        whole = (
            trace["traceId"] == trace_id and trace["sourceHash"] == f"sha256:{files.sha256(trace['text'].encode('utf-8', 'surrogatepass'))}"
        )
        begun = dates.instant(trace["ingestedAt"])
        days = None if trace["retention"] == "permanent" else int(trace["retention"].removesuffix("d"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        whole, begun, days = False, 0, None
    if not whole or raw.count(b"\n") > 1:
        raise IntegrityError(f"the trace {trace_id} was changed after it was written; nothing can be promoted from it.")
    if days is not None and begun + days * dates.DAY <= dates.instant(dates.stamp()):
        raise IntegrityError(f"the trace {trace_id} has expired ({trace['retention']}); observe the source again.")
    return trace


def _inbox(place, path):
    """Return (store, path under it) for a file in the inbox of a store in reach, links resolved, or None."""
    full = os.path.realpath(path if os.path.isabs(path) else os.path.join(place.start, path))
    for store in place.stores:
        root = os.path.realpath(store.root)
        if full.startswith(os.path.join(root, "inbox") + os.sep) and full.endswith(".md"):
            return store, os.path.relpath(full, root).replace(os.sep, "/")
    return None


def _header(store, rel):
    raw = files.read_regular(store.path(rel), limit=2 * LARGEST)
    if raw is None:
        raise NotFound("there is no such wrapper.", file=rel)
    try:
        return Document(raw.decode("utf-8")).values
    except (UnicodeDecodeError, MemoryFileError) as error:
        raise UsageError(f"the wrapper's header can't be read: {error}", file=rel) from None
