"""The sealed `requestState`: a small mapping under an HMAC-SHA256, good for one purpose.

Must not know clocks or where its key comes from: the caller gives the key bytes and compares expiry
itself. The state goes through a client that may change, keep or forge it (mcp.md, Asking the human),
so the seal is checked before anything is decoded, in constant time, and accepted in canonical form
only. The purpose goes into the key: a seal made for one thing is void for another. What it holds can
be read by the client and is never a secret.
"""
from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64

_VERSION = "v1"


def digest(value):
    """Return a hex digest of a JSON value that does not depend on the order of keys."""
    return _hmac(b"engram:digest", json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")).hex()


class Seal:
    """Seals and opens mappings for one purpose under one key."""

    __slots__ = ("_key", "_purpose")

    def __init__(self, key, purpose):
        self._key = key
        self._purpose = b"engram:" + purpose.encode("utf-8")

    def close(self, payload):
        """Return the sealed text of a mapping: `v1.<payload>.<mac>` in base64url."""
        body = f"{_VERSION}.{_encode(json.dumps(payload, sort_keys=True, separators=(',', ':')).encode('ascii'))}"
        return f"{body}.{_encode(self._mac(body))}"

    def open(self, text):
        """Return the mapping of a sealed text, or None when the seal is not ours or was tampered with."""
        body, dot, mac = text.rpartition(".")
        if not dot or not text.isascii():
            return None
        if not _same(mac, _encode(self._mac(body))):
            return None
        version, _, payload = body.partition(".")
        return json.loads(_decode(payload)) if version == _VERSION else None

    def _mac(self, body):
        return _hmac(_hmac(self._key, self._purpose), body.encode("ascii"))


def _hmac(key, data):
    import hmac  # here, since it loads OpenSSL: 5 ms of every start, and only a question to a human needs it

    return hmac.digest(key, data, "sha256")


def _same(one, other):
    import hmac  # see above

    return hmac.compare_digest(one, other)


def _encode(data):
    return b2a_base64(data, newline=False).decode("ascii").translate(_TO_URL).rstrip("=")


def _decode(text):
    return a2b_base64(text.translate(_FROM_URL) + "=" * (-len(text) % 4))


_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")
