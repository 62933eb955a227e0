"""A corpus of secrets through every write path, then a search of all bytes on disk: not one is found."""

from __future__ import annotations

import json
import os

from tests.torture.place import Place, bytes_below

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(os.path.dirname(HERE), "data", "cases", "secrets", "must-redact-handover.jsonl")
FRAMES = ("The note says {} here.", "export VALUE={}", "```\n{}\n```", "- **{}**", "see (`{}`) and go on", "{}")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def corpus(trial):
    """Return rows (text with a secret, the secret); the rows of the collection and generated ones of the same kinds."""
    with open(CORPUS, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    made = [("".join(row["parts"]), "".join(row["secret"])) for row in rows]
    pick = lambda length, letters=ALPHABET: "".join(trial.dice.choice(letters) for _ in range(length))
    for _ in range(trial.size(1, 10)):
        for prefix, length, letters in (
            ("AK" + "IA", 16, ALPHABET[:26] + "234567"),
            ("gh" + "p_", 36, ALPHABET),
            ("gl" + "pat-", 20, ALPHABET),
            ("xo" + "xb-", 40, ALPHABET[26:]),
            ("sk" + "_live_", 24, ALPHABET),
            ("AI" + "za", 35, ALPHABET),
            ("sk" + "-ant-api03-", 80, ALPHABET),
            ("np" + "m_", 36, ALPHABET),
        ):
            secret = prefix + pick(length, letters)
            made.append((trial.dice.choice(FRAMES).format(secret), secret))
        word = pick(14)
        made.append((f"postgres://app:{word}@db.internal:5432/app is the address", word))
        made.append((f'password = "{word}x9"', word + "x9"))
    return made


def run(trial):
    lost, uses = [], 0
    rows = corpus(trial)
    with Place(trial.built) as place:
        said = []
        for number, (text, _) in enumerate(rows):
            for words, given in paths(place, number, text):
                done = place.run(*words, text=given, code=None)
                said.append((words, done.stdout + done.stderr))
                uses += 1
        with place.server() as server, place.server("mcp", "--project", "trial", "--tools=all") as notes:
            notes.call("mem_session_start", {"id": "s1"}, ok=False)
            for number, (text, _) in enumerate(rows):
                for one, tool, arguments in calls(server, notes, number, text):
                    answer = one.call(tool, arguments, ok=False)
                    said.append(((tool,), json.dumps(answer, ensure_ascii=False)))
                    uses += 1
                    token = (
                        (answer.get("structuredContent") or {}).get("data", {}).get("approval_token")
                        if tool == "engram_save"
                        else None
                    )
                    if token:
                        said.append(
                            (
                                ("engram_commit",),
                                json.dumps(
                                    server.call("engram_commit", {"approval_token": token, "approve": "all"}, ok=False)
                                ),
                            )
                        )
            notes.call("mem_search", {"query": "note"}, ok=False)
        uses += imported(place, rows, said)
        noise = b"".join(server.noise + notes.noise).decode("utf-8", "replace")
        for words, answer in [*said, (("stderr",), noise)]:
            lost += [f"{words[0]} says a secret: {mask(secret)}" for _, secret in rows if holds(answer, secret)]
        for path, data in bytes_below(place.workspace, place.home):
            lost += [
                f"{os.path.relpath(path, place.root)} holds a secret: {mask(secret)}"
                for _, secret in rows
                if secret.encode() in data
            ]
    return f"{len(rows)} secrets, {uses} writes by {len({words[0] for words, _ in said})} ways", lost


def imported(place, rows, said):
    """Import an export whose texts hold the secrets; it lies outside of all that is searched."""
    stamps = {"created_at": "2026-01-01 00:00:00", "updated_at": "2026-01-01 00:00:00"}
    given = {
        "version": "0.2.0",
        "exported_at": "2026-01-01T00:00:00Z",
        "sessions": [
            {
                "id": "old",
                "project": "trial",
                "directory": "/x",
                "started_at": "2026-01-01 00:00:00",
                "summary": rows[0][0],
            }
        ],
        "observations": [
            {
                "id": number,
                "sync_id": f"obs-{number:016x}",
                "session_id": "old",
                "type": "manual",
                "title": f"old {number}",
                "content": text,
            }
            | {"project": "trial", "scope": "project"}
            | stamps
            for number, (text, _) in enumerate(rows, 1)
        ],
        "prompts": [
            {
                "id": 1,
                "session_id": "old",
                "content": rows[1][0],
                "project": "trial",
                "created_at": "2026-01-01 00:00:00",
            }
        ],
    }
    path = os.path.join(place.root, "export.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(given, file)
    done = place.run("mem", "import", path)
    said.append((("mem import",), done.stdout + done.stderr))
    return len(rows)


def holds(answer, secret):
    return secret in answer or json.dumps(secret, ensure_ascii=False)[1:-1] in answer


def mask(secret):
    return secret[:6] + "…" + str(len(secret))


def paths(place, number, text):
    """Yield (words, standard input) of the commands that write text."""
    flat = " ".join(text.split())
    yield ("save", "--force", "--scope", "workspace"), f"TYPE: knowledge | TEXT: Entry {number}: {flat}"
    yield ("save-session", "--force"), f"TYPE: rule | TEXT: Rule {number}: {flat} | CONTEXT: {flat}"
    yield ("save", f"TYPE: skill | TEXT: Waiting {number}: {flat}"), ""
    yield ("note", "--force", "--objective", f"objective {flat}", f"Note {number}: {flat}"), ""
    yield ("observe",), f"Log {number}\n{text}\n"
    yield ("mem", "save", f"title {number}", text), ""


def calls(server, notes, number, text):
    """Yield (server, tool, arguments) of the tools that write text."""
    yield server, "engram_save", {"text": text, "context": text, "triggers": text[:60], "type": "knowledge"}
    yield server, "engram_note", {"text": text, "objective": text[:80]}
    yield notes, "mem_save", {"title": f"note {number} {text[:200]}", "content": text, "topic_key": text[:60]}
    yield notes, "mem_save_prompt", {"content": text}
    yield notes, "mem_session_summary", {"content": text}
    yield (
        notes,
        "mem_capture_passive",
        {"content": f"## Key Learnings:\n1. {' '.join(text.split())} and some more words here\n"},
    )
    yield notes, "mem_session_end", {"id": f"s{number}", "summary": text}
