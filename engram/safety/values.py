"""Tell a secret value from an ordinary word, a name, a placeholder or a piece of code.

Knows one value at a time. Knows nothing of the text around it.
"""

from __future__ import annotations

import re

from engram.safety.patterns import Pattern

# Words that stand where a password could: settings, kinds, states, algorithms, stand-ins.
ORDINARY = frozenset("""
required optional mandatory string str text varchar char bytes int integer number boolean bool object none null nil undefined
true false yes no on off empty blank unset default hidden masked hashed encrypted plain plaintext stored missing invalid
wrong incorrect expired revoked rotated disabled enabled forbidden allowed denied unknown unchanged same prompt stdin env
environment vault keychain keyring secret secrets secretstr password passwd passphrase pass token tokens key keys credential
credentials user username admin_password admin login value here todo tbd fixme xxx changeme change-me change_me replaceme
placeholder example sample dummy fake redacted removed censored masked demo test testing mock foo bar baz foobar
bcrypt argon2 argon2i argon2id scrypt pbkdf2 pbkdf2_sha256 md5 sha1 sha-1 sha2 sha3 sha256 sha-256 sha384 sha512 sha-512 base64 base32 hex
utf8 utf-8 ascii oauth oauth2 oidc saml jwt jws jwe hs256 hs384 hs512 rs256 rs384 rs512 es256 es384 eddsa ed25519 x509 rsa
rsa2048 rsa4096 aes aes128 aes256 aes-256 aes-128 hmac basic bearer digest negotiate ntlm kerberos ldap ldaps sso mfa 2fa totp u2f
webauthn passkey passkeys argument parameter option field column header cookie session policy policies rotation reset strength length
generated random auto automatic inherit inherited ignored omitted readonly sensitive private public internal external
""".split())

_STAND_IN = frozenset(
    "your my example placeholder changeme change replace insert dummy redacted todo here sample fake xxx some the goes".split()
)
_NAME_PART = Pattern(r"(?:[A-Za-z]{2,}\d{0,4}|[A-Za-z]\d{0,3}|\d{1,4}|[A-Z][a-z]+(?:[A-Z][a-z]+)*\d{0,2}|v\d+(?:[a-z]+\d+)?)\Z")
_CHAIN = Pattern(r"[A-Za-z_$@][A-Za-z0-9_$]{0,60}(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z0-9_$]{0,60}){1,8}\Z")
_QUANTITY = Pattern(r"[<>=~+]{0,2}\d{1,6}[.,]?\d{0,4}(?:\+|%|ms|s|sec|m|min|h|hours?|d|days?|w|weeks?|months?|years?|[kmg]i?b?|chars?|"
                       r"bytes?|bits?|x)?[.,;:]?\Z",
                       re.IGNORECASE)
_SPLIT = Pattern(r"[-_.:/ ]+")
_STARTS_CODE = ("-", "$", "<", "{", "[", "%(", "%s", "%{", "/", "./", "../", "~/", "(", "@@", "!Ref", "!Sub", "!Get", "&", "arn:", "\\",
 "env:", "env.", "vault:",
                "ref:", "ref+", "op://", "sops:", "#{")
_ADDRESS = Pattern(r"[a-z][a-z0-9+.-]{1,20}://", re.IGNORECASE)


def is_stand_in(value):
    """Say whether the value stands for one: a template, a reference, a mask, an ordinary word or a quantity."""
    if not any(c.isalnum() for c in value) or value.startswith(_STARTS_CODE) or _ADDRESS.match(value):
        return True
    lowered = value.lower().strip(".,;:!?'\"`)")
    if lowered in ORDINARY or _QUANTITY.match(value):
        return True
    if "${" in value or "%s" in value or "{}" in value or "{{" in value or "<" in value and ">" in value:
        return True
    if len(set(lowered)) <= 2 and not any(c.isdigit() for c in lowered):
        return True
    return any(part in _STAND_IN or part.startswith("xxx") for part in _SPLIT.split(lowered))


def is_code(value):
    """Say whether an unquoted value is an expression: a call, an index, a chain of names."""
    return bool(_CHAIN.match(value.rstrip(",;)]}"))) or "(" in value or "[" in value or value.endswith("{")


def is_name(value):
    """Say whether the value is made of words and small numbers, as names of things are."""
    parts = [part for part in _SPLIT.split(value) if part]
    if not parts or sum(c.isdigit() for c in value) > 8:
        return False
    return all(_NAME_PART.match(part) for part in parts) and (len(parts) > 1 or len(value) < 24) and not _jumbled(value)


def _jumbled(value):
    """Say whether capitals come too often, or long runs lack vowels, for words."""
    letters = [c for c in value if c.isalpha()]
    turns = sum(a.islower() and b.isupper() for a, b in zip(letters, letters[1:], strict=False))
    if len(letters) >= 8 and turns * 4 > len(letters):
        return True
    if len(letters) < 12:
        return False
    return sum(c in "aeiouyAEIOUY" for c in letters) * 6 < len(letters)


def is_strong(value):
    """Say whether a value looks drawn at random or at least chosen as a secret: the test for names such as token or key."""
    size = len(value)
    if size < 6 or not value.isascii():
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if is_name(value):
        return False
    if digits and letters:
        return size >= 8 or letters >= 2 and digits >= 2
    if digits and not letters:
        return size >= 16 and value.isdigit()
    if size >= 16 and _jumbled(value):
        return True
    return size >= 16 and any(c in "+/=!#$%^&*~" for c in value) and value.lower() != value


def is_password(value):
    """Say whether a value could be a chosen password: weaker than :func:`is_strong`, for names that say password."""
    if not value.isascii() or len(value) < 4:
        return False
    letters = sum(c.isalpha() for c in value)
    digits = sum(c.isdigit() for c in value)
    if digits and letters:
        return True
    if digits:
        return digits >= 4
    return letters < len(value) or value.lower() != value and not value.istitle()
