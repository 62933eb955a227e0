"""Personal data: e-mail addresses, payment cards, bank accounts, private network addresses.

Knows shapes and checksums, one function a kind; each yields ``(start, end, kind, label)``. All are linear: a candidate
is found by a plain search and looked at within a bounded window.
"""

from __future__ import annotations

import re

from engram.safety.patterns import Pattern

_LOCAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-'"
_DOMAIN = Pattern(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}([A-Za-z]{2,24})(?![A-Za-z0-9_])")
# Names that no mail reaches (RFC 2606, 6762) and file endings that follow an @ in package and asset names.
_NO_MAIL = frozenset("local localhost internal lan invalid test svc cluster home corp intranet js ts jsx tsx mjs css scss svg png jpg "
                     "jpeg gif webp json yaml yml toml md py rb rs txt html zip tgz gz whl exe latest next lock shape".split())
# Each begins with what it searches for and looks back afterwards: the engine skips to such a start.
_CARD = Pattern(r"\d(?<![\w.+#/-]\d)(?:[ -]?\d){12,18}(?![\w-])(?!\.\d)")
_IBAN = Pattern(r"[A-Z](?<![A-Za-z0-9][A-Z])[A-Z]\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = Pattern(rf"1(?<![\w.]1)(?:0\.{_OCTET}|72\.(?:1[6-9]|2\d|3[01])|92\.168)\.{_OCTET}\.{_OCTET}(?!\.?\d)(?!\w)")
_VERSION_BEFORE = Pattern(r"(?:versions?|release|build|ver\.?|v)[ :=]{0,3}(?:[\d.]{1,20} (?:to|and|or|through) )?$", re.IGNORECASE)
_LOCAL_V6 = Pattern(r"f[cd][0-9a-f]{2}:(?:[0-9a-f]{0,4}:){1,6}[0-9a-f]{1,4}(?![\w:])")
_BLOCKS = {"10.0.0.0": "/8", "172.16.0.0": "/12", "192.168.0.0": "/16"}


def emails(text):
    """Yield e-mail addresses; the login part of a URL or of an scp-like path (``git@host:path``) is none."""
    at = text.find("@")
    while at >= 0:
        start = at
        while start > 0 and at - start < 64 and text[start - 1] in _LOCAL:
            start -= 1
        while start < at and text[start] in "._%+-'":
            start += 1
        domain = _DOMAIN.match(text, at + 1)
        if domain and start < at and _is_mail(text, start, at, domain):
            yield start, domain.end(), "email", "e-mail address"
        at = text.find("@", at + 1)


def _is_mail(text, start, at, domain):
    if domain.group(1).lower() in _NO_MAIL or (start and text[start - 1] in "@/"):
        return False
    if text[start:at] in ("git", "hg", "svn") and text[domain.end():domain.end() + 1] in (":", "/"):
        return False
    window = text[max(0, start - 200):start]
    login = window.rfind("://")
    return login < 0 or any(c in "/ \t\n?" for c in window[login + 3:])


def cards(text):
    """Yield payment-card numbers: an issuer's prefix and length, and the Luhn check digit."""
    for match in _CARD.finditer(text):
        digits = match.group().replace(" ", "").replace("-", "")
        if _issued(digits) and _luhn(digits):
            yield match.start(), match.end(), "card-number", "payment card"


def _issued(digits):
    size, two, four = len(digits), int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return size == 16
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return size == 16
    if two in (34, 37):
        return size == 15
    if two in (36, 38, 39) or 3000 <= four <= 3059:
        return size == 14
    if four == 6011 or two == 65 or 6440 <= four <= 6499 or 3528 <= four <= 3589:
        return size == 16
    return two == 62 and size in (16, 19) or two in (50, 56, 57, 58, 63, 67) and size == 16


def _luhn(digits):
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def accounts(text):
    """Yield international bank account numbers whose check digits hold."""
    for match in _IBAN.finditer(text):
        number = match.group().replace(" ", "")
        if 15 <= len(number) <= 34 and int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1:
            yield match.start(), match.end(), "bank-account", "bank account number"


def addresses(text):
    """Yield private network addresses; the three RFC 1918 blocks themselves, as blocks, are common knowledge."""
    for match in _ADDRESS.finditer(text):
        block = _BLOCKS.get(match.group())
        if block and text.startswith(block, match.end()) and not text[match.end() + len(block):][:1].isdigit():
            continue
        if _VERSION_BEFORE.search(text, max(0, match.start() - 40), match.start()):
            continue
        yield match.start(), match.end(), "private-ip", "private network address"
    for match in _LOCAL_V6.finditer(text):
        if not (text[match.start() - 1:match.start()].isalnum() or text.startswith(":", match.start() - 1)):
            yield *match.span(), "private-ip", "private network address"


# (function, what a text must hold to be worth the look)
ROWS = (
    (emails, lambda text: "@" in text),
    (cards, lambda text: True),
    (accounts, lambda text: True),
    (addresses, lambda text: "10." in text or "172." in text or "192.168." in text or ":" in text and ("fd" in text or "fc" in text)),
)
