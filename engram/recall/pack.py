"""What of a selection fits a token budget: bodies, cards, and what is left out.

Pure: sizes in, a plan out. Sizes are in quarters of a token (`render.quarters`), which add up exactly.
"""
from __future__ import annotations

from collections import namedtuple

BODY_SHARE = 0.6  # a match prints as a body while it scores at least this part of the best one

# key: anything; score: of the best 1.0 or more; body, card: sizes with the line ends around them
Item = namedtuple("Item", "key score body card")
Plan = namedtuple("Plan", "bodies cards omitted")


def plan(items, room: int, disclosure: str = "auto") -> Plan:
    """Return which items print as bodies, which as cards, and which not at all; each key is in one of the three, in order.

    `room`: quarters of a token for all of them. `disclosure`: auto, cards or bodies (recall.md, "Tiers of output").
    """
    form: dict = {}
    left = room
    if disclosure == "bodies":
        for item in items:
            if item.body <= left:
                form[item.key] = "body"
                left -= item.body
    for item in items:
        if item.key not in form and item.card <= left:
            form[item.key] = "card"
            left -= item.card
    if disclosure == "auto":
        best = max((item.score for item in items), default=0.0)
        for item in items:
            have = item.card if form.get(item.key) == "card" else 0
            if item.score >= BODY_SHARE * best and item.body - have <= left:
                form[item.key] = "body"
                left -= item.body - have
    return Plan([item.key for item in items if form.get(item.key) == "body"], [item.key for item in items if form.get(item.key) == "card"],
                [item.key for item in items if item.key not in form])
