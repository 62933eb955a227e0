"""The safety corpus, for tests of every room: texts with secrets, ordinary texts, texts that give orders.

The secrets are made up, and cut into parts in the data so that no shape of one stands in the repository.
"""

import json
import os

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "safety")
CASES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "cases")


def rows(path):
    """Return the rows of a JSON-lines file."""
    with open(path, encoding="utf-8", newline="") as file:
        return [json.loads(line) for line in file.read().split("\n") if line]


def secrets():
    """Return ``[(kind, text, secret)]``: the secret must be found nowhere once the text has been kept."""
    return [(row["kind"], "".join(row["parts"]), "".join(row["secret"])) for row in rows(os.path.join(DATA, "must-go.jsonl"))]


def shared_secrets():
    """Return ``[(text, secret)]`` of the shared cases (SE-06)."""
    return [("".join(row["parts"]), "".join(row["secret"])) for row in rows(os.path.join(CASES, "secrets", "must-redact-handover.jsonl"))]


def ordinary():
    """Return texts that must stay byte for byte (SE-08 included)."""
    return [row["text"] for row in rows(os.path.join(DATA, "must-stay.jsonl")) + rows(os.path.join(CASES, "secrets", "must-survive.jsonl"))]


def orders():
    """Return ``[(text, lines)]``: texts that give their reader orders, and the lines that do."""
    return [(row["text"], row["lines"]) for row in rows(os.path.join(DATA, "orders.jsonl"))]
