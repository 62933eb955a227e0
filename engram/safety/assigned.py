"""Secrets by the name they are given: ``password=…``, ``"api_key": "…"``, ``--token …``, headers, URLs with a login.

Knows shapes of assignments in env files, JSON, YAML, INI, code, command lines and headers, and asks ``values`` whether
what was assigned is a secret. Each function yields ``(start, end, kind, label)`` of the value alone. All runs are bounded.
"""

from __future__ import annotations

import re

from engram.safety import values
from engram.safety.patterns import Pattern

# A name's last word, what may close it, and the sign. A name goes on to the left; it is read back from the text.
_ASSIGNED = Pattern(
    r"(passwords?|passwd|passphrase|passcode|passwort|contrase\u00f1a|contrasena|mot de passe|senha|\u043f\u0430\u0440\u043e\u043b\u044c|"
    r"m\u1eadt kh\u1ea9u|\u5bc6\u7801|\u5bc6\u78bc|\u53e3\u4ee4|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638|pwd|pass|pw|"
    r"secrets?|secret_key_base|tokens?|"
    r"credentials?|authorization|auth|apikey|private_key_id|key|\u5bc6\u94a5|\u4ee4\u724c)"
    r"(_{0,2}[\"'`\u201d]?\]?|\\\"|</?[a-z]{1,10}>)[ \t]{0,8}(=>|:=|={1,3}|:|\u662f|\u4e3a|\u70ba|l\u00e0)[ \t]{0,8}", re.IGNORECASE)
_PASSWORD_WORDS = frozenset("password passwords passwd passphrase passcode passwort contrase\u00f1a contrasena senha pwd pass pw "
                            "\u043f\u0430\u0440\u043e\u043b\u044c \u5bc6\u7801 \u5bc6\u78bc \u53e3\u4ee4 \u30d1\u30b9\u30ef\u30fc\u30c9"
                            " \ube44\ubc00\ubc88\ud638".split()) | {"mot de passe", "m\u1eadt kh\u1ea9u"}
_KEY_NAME = Pattern(
    r"(?:api|access|secret|private|auth|account|encryption|encrypt|decryption|signing|signature|sign|master|service|licen[sc]e|"
    r"subscription|"
    r"admin|shared|storage|app|application|deploy|jwt|hmac|aes|webhook|client|consumer|functions?|bot|integration|ingest|root|"
    r"openai|anthropic|aws|azure|gcp|google|maps|stripe|github|sendgrid|twilio|datadog|algolia|mapbox|firebase|cohere|mistral|groq|"
    r"deepseek|gemini|pinecone|sentry|mailgun|postmark|dd|hf)[ _.-]{0,2}$", re.IGNORECASE)
_ENV_KEY = Pattern(r"[A-Z][A-Z0-9_]{1,60}_$")
_OPEN_KEY = Pattern(r"(?:public|primary|foreign|sort|partition|cache|routing|idempotency|host|object|lookup|index|group|hash|range|"
                       r"shard|message|"
                       r"row|dict|map|unique|natural|dedupe|dedup|i18n|translation|next|page|sync|cursor|continuation|resume|pub|"
                       r"publishable|site)[ _.-]{0,2}$", re.IGNORECASE)
_LINE_START = Pattern(r"(?:^|[\n{,;(&?])[ \t>*+-]{0,20}(?:export |set |setx |ENV |ARG |env |let |const |var |val |final |static |"
                         r"public |private |string )?[\"'`]?[A-Za-z0-9_.$-]{0,60}$",
                         re.IGNORECASE)
_QUOTED = Pattern(r"(?:[bruf@]{1,2}(?=[\"']))?(\\?[\"'`]{1,3}|\u201c)(.{0,500}?)(?:(?<!\\)\1|\u201d)", re.IGNORECASE)
_BARE = Pattern(r"[!#-&(-;=?-_a-~]{1,400}")  # visible ASCII without quotes and angle brackets
_BLOCK = Pattern(r"[|>][+-]?[ \t]{0,8}\n[ \t]{0,40}")
_SCHEME = Pattern(r"(?:Bearer|Basic|Token|Digest|ApiKey|Api-Key|Key|Bot|GenieKey|SSWS|Negotiate)[ \t]{1,4}", re.IGNORECASE)
_LABEL_WORDS = Pattern(r"\b(?:your|the|a|an|is|are|must|enter|invalid|required|forgot|reset|please|wrong|new|old|current|confirm|for|"
                          r"to|of|and|"
                          r"or|be|not|with|from|in|characters?|least|password|passphrase|token|secret|key)\b", re.IGNORECASE)


def assignments(text):
    """Yield values assigned to names that say password, secret, token, key, credentials or authorization."""
    position = 0
    while match := _ASSIGNED.search(text, position):
        position = match.end()
        family = _family(text, match)
        if not family:
            continue
        found = _value(text, match, family)
        if found:
            start, end = found
            yield start, end, *_KINDS[family]
            position = max(position, end)


_KINDS = {
    "password": ("password", "password"),
    "secret": ("secret", "assigned secret"),
    "authorization": ("authorization", "authorization header"),
}


def _family(text, match):
    word = match.group(1).lower()
    name = _name_before(text, match.start())
    before = text[max(0, match.start() - 24):match.start()]
    if word in _PASSWORD_WORDS:
        if word in ("pass", "pw", "pwd") and name and name[-1].isalnum() and not (match.group(1)[0].isupper() and name[-1].islower()) \
                and not (name + word).isupper():
            return None
        return None if name.lower().endswith(("public", "no", "without", "max", "min")) else "password"
    if word == "authorization":
        return "authorization"
    if word in ("key", "\u5bc6\u94a5"):
        named = word != "key" or _KEY_NAME.search(before) or match.group(1) in ("KEY",) and _ENV_KEY.search(name)
        return "secret" if named and not _OPEN_KEY.search(before) else None
    if _OPEN_KEY.search(before) or word == "auth" and name and name[-1] not in "_-.":
        return None
    return "secret"


def _name_before(text, end):
    """Return what of a name stands before its last word, read backwards: at most 60 characters."""
    start = end
    while start and end - start < 60 and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    return text[start:end]


def _value(text, match, family):
    position, sign = match.end(), match.group(3)
    if sign == ":" and text.startswith("//", position):
        return None
    block = _BLOCK.match(text, position)
    if block:
        position = block.end()
    quoted = _QUOTED.match(text, position)
    if quoted and "\n" not in quoted.group(2):
        mark, begin = quoted.group(1), match.start() - len(_name_before(text, match.start()))
        if mark and text[begin - 1:begin] == mark[-1] and mark[-1] not in match.group(2):
            return None  # the mark closes what was opened before the name
        start, end = quoted.span(2)
        scheme = _SCHEME.match(text, start, end)
        start = scheme.end() if scheme else start
        return (start, end) if _quoted_secret(text[start:end], family) else None
    scheme = _SCHEME.match(text, position)
    if scheme:
        position = scheme.end()
    bare = _BARE.match(text, position)
    if not bare or sign == "===":
        return None
    start, end = bare.span()
    value = _cut(text, match, bare.group())
    end = start + len(value)
    if values.is_stand_in(value) or _is_expression(text, match, value, end):
        return None
    if family == "password":
        return (start, end) if _bare_password(text, match, value, end) else None
    least = 8 if family == "secret" else 12
    return (start, end) if len(value) >= least and values.is_strong(value) else None


def _cut(text, match, value):
    """Cut a bare value where its surroundings end it: a query string, a connection string, a sentence."""
    begin = match.start() - len(_name_before(text, match.start()))
    lead = text[begin - 1:begin]
    if lead in ("?", "&"):
        value = value.split("&", 1)[0].split("#", 1)[0]
    elif ";" in value:
        value = value.split(";", 1)[0]
    if lead in ("{", ",", "(", "["):
        value = value.split(",", 1)[0]
    return value.rstrip(",.;:)]}") if value.rstrip(",.;:)]}") else value


def _is_expression(text, match, value, end):
    if values.is_code(text[match.end():end + 1].strip() if text[end:end + 1] in "([" else value):
        return not (match.group(3) == "=" and "(" not in value and "[" not in value and any(c.isdigit() for c in value) and len(value) > 24)
    return False


def _quoted_secret(value, family):
    if values.is_stand_in(value):
        return False
    if " " in value:
        return family == "password" and len(value) >= 10 and not _LABEL_WORDS.search(value)
    if family == "password":
        return len(value) >= 4 and value.isascii() and not values.is_code(value) and "_" not in value[1:-1].strip(value.strip("_")) \
            or values.is_strong(value)
    return values.is_strong(value)


def _bare_password(text, match, value, end):
    if values.is_password(value) and not _mixed_name(value):
        return True
    if not value.isascii() or not value.isalpha() and not values.is_name(value) or len(value) < 5:
        return False
    rest = text[end:end + 2]
    if rest[:1] in (")", ",") or not _LINE_START.search(text, max(0, match.start() - 90), match.start()):
        return False
    word = re.search(r"(?i)pass|pwd|secret|token|key|user|hash", value)
    alone = not text[end:end + 200].split("\n", 1)[0].strip(" \t,;.\"'`}")
    tight = match.group(3) == "=" and text[match.end() - 1] == "="
    return not word and (tight or alone) and value.islower() | (tight and value != value.title())


def _mixed_name(value):
    """Say whether a value with capitals, digits or hyphens is still a name: camelCase, kebab-case with a small number."""
    if any(c.isdigit() for c in value):
        return bool(re.fullmatch(r"(?:min|max|len|length|at-least)[-_=<>:]{0,2}\d{1,3}\S{0,12}", value, re.IGNORECASE))
    return values.is_name(value)


_FLAG = Pattern(r"(?<![\w-])--?(?:[a-z]{1,16}[-_]){0,3}(passwords?|passwd|passphrase|pass|pwd|token|secret|api[-_]?key|access[-_]?key|"
                   r"secret[-_]?key|"
                   r"auth[-_]?key|credentials?)(?:[ \t]{1,4})([\"']?)([^\s\"'`<>|;]{4,400})", re.IGNORECASE)
_SENTENCE = Pattern(r"(?:(pass(?:word|phrase|code)|m\u1eadt kh\u1ea9u)|api[ _-]?key|secret|token|key)(?: for [\w.@-]{1,40})? (?:is|was|"
                       r"l\u00e0)(?: now| set to)?[ :]{1,2}"
                       r"([\"'`\u201c]?)([^\s\"'`\u201d<>]{4,200})", re.IGNORECASE)
_COMMANDS = (
    Pattern(r"\bmysql(?:dump|admin|import)?\b[^\n|;]{0,120}?[ \t]-p[\"']?([^\s\"'-][^\s\"']{3,100})"),
    Pattern(r"\bsshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?([^\s\"']{3,100})"),
    Pattern(r"\b(?:curl|wget|http|https)\b[^\n|;]{0,200}?[ \t](?:-u|--user)[ \t=]{0,4}[\"']?[^\s\"':]{1,64}:([^\s\"']{3,200})"),
    Pattern(r"\bredis-cli\b[^\n|;]{0,120}?[ \t]-a[ \t]{1,4}[\"']?([^\s\"']{4,200})"),
    Pattern(r"\bdocker[ \t]{1,4}login\b[^\n|;]{0,120}?[ \t]-p[ \t=]{0,4}[\"']?([^\s\"']{4,400})"),
    Pattern(r"\b(?:IDENTIFIED[ \t]{1,4}BY|WITH[ \t]{1,4}PASSWORD|ENCRYPTED[ \t]{1,4}PASSWORD|PASSWORD)[ \t]{1,4}'([^'\n]{4,200})'",
    re.IGNORECASE),
    Pattern(r"\blogin[ \t]{1,4}\S{1,100}[ \t]{1,4}password[ \t]{1,4}(\S{4,200})"),
    Pattern(r"<(?:[a-z]{1,20}:)?[a-z_-]{0,30}(?:password|passwd|secret|token|api[-_]?key)>[ \t]{0,4}([^<>\s]{4,400})[ \t]{0,4}</",
    re.IGNORECASE),
    Pattern(r"\b(?:PuTTY-User-Key-File|Private-Lines|Private-MAC): ?(\S[^\n]{0,400})"),
)
_BEARER = Pattern(r"\b(?:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=-]{16,2000})", re.IGNORECASE)
_BASIC = Pattern(r"\bBasic[ \t]{1,4}([A-Za-z0-9+/]{10,400}={0,2})(?![A-Za-z0-9+/=])")
_COOKIE = Pattern(r"\b(?:Set-)?Cookie2?:[ \t]{0,4}([^\n]{8,2000})", re.IGNORECASE)
_COOKIE_VALUE = Pattern(r"[A-Za-z0-9_.-]{1,64}=([^;\s\"]{16,1000})")


def flags(text):
    """Yield values of command-line flags that say password, token or key, after a blank (``--token VALUE``)."""
    for match in _FLAG.finditer(text):
        value = match.group(3).rstrip(",.;:)]}")
        if len(value) < 4 or value.startswith("-") or values.is_stand_in(value) or values.is_code(value):
            continue
        password = match.group(1).lower().startswith(("pass", "pwd"))
        chosen = values.is_password(value) and not values.is_name(value) or match.group(2) and len(value) > 5
        if chosen if password else values.is_strong(value):
            yield match.start(3), match.start(3) + len(value), *_KINDS["password" if password else "secret"]


def sentences(text):
    """Yield values told in a sentence: "the password is …"."""
    for match in _SENTENCE.finditer(text):
        value = match.group(3).rstrip(",.;:!?)]}")
        if values.is_stand_in(value) or values.is_name(value) or values.is_code(value):
            continue
        if values.is_password(value) if match.group(1) else values.is_strong(value):
            yield match.start(3), match.start(3) + len(value), *_KINDS["password" if match.group(1) else "secret"]


def commands(text):
    """Yield passwords in the shapes of well-known commands, SQL and XML."""
    for row in _COMMANDS:
        for match in row.finditer(text):
            if not values.is_stand_in(match.group(1)):
                yield *match.span(1), "password", "password"


def headers(text):
    """Yield bearer tokens, basic logins and session cookies."""
    for match in _BEARER.finditer(text):
        if values.is_strong(match.group(1)) and not values.is_stand_in(match.group(1)):
            yield *match.span(1), "bearer-token", "bearer token"
    for match in _BASIC.finditer(text):
        if _is_login(match.group(1)):
            yield *match.span(1), "basic-login", "basic authorization"
    for header in _COOKIE.finditer(text):
        for match in _COOKIE_VALUE.finditer(text, *header.span(1)):
            if values.is_strong(match.group(1)) and not values.is_stand_in(match.group(1)):
                yield *match.span(1), "session-cookie", "session cookie"


def _is_login(encoded):
    import binascii  # only for the rare text with a "Basic …" in it
    try:
        decoded = binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error:
        return False
    return b":" in decoded and all(0x20 <= byte < 0x7F for byte in decoded)


_LOGIN = Pattern(r"://([^\s/@:\"'`<>]{0,100}):([^\s@\"'`<>]{1,300}(?:@(?=[^\s/@]{1,100}@)[^\s/@]{1,100})?)@(?=[\w.\[-])")
_LOGIN_TOKEN = Pattern(r"://([^\s/@:\"'`<>]{16,300})@(?=[\w.\[-])")
_SIGNATURE = Pattern(r"[?&](?:sig|signature|X-Amz-Signature|X-Goog-Signature|code|key|st|access_token|"
                        r"auth)=([A-Za-z0-9%._~+/=-]{16,600})", re.IGNORECASE)
_EXAMPLE_LOGIN = frozenset("password pass passwd pwd pw secret token user username *** **** xxx redacted key changeme p".split())


def urls(text):
    """Yield passwords and tokens in URLs and connection strings (``scheme://user:password@host``), and URL signatures."""
    for match in _LOGIN.finditer(text):
        password = match.group(2)
        if password.lower() in _EXAMPLE_LOGIN or password[0] in "$<{[%*" or re.match(r"\d{1,5}/", password):
            continue
        yield *match.span(2), "url-credentials", "credentials in a URL"
    for match in _LOGIN_TOKEN.finditer(text):
        if values.is_strong(match.group(1)) and not values.is_stand_in(match.group(1)):
            yield *match.span(1), "url-credentials", "credentials in a URL"
    for match in _SIGNATURE.finditer(text):
        if values.is_strong(match.group(1)) and not values.is_stand_in(match.group(1)):
            yield *match.span(1), "url-signature", "signature or key in a URL"


# (function, literals of which a lower-cased text must hold one to be worth the search)
ROWS = (
    (urls, ("://", "?", "&")),
    (headers, ("bearer", "basic", "cookie")),
    (assignments, ("pass", "pwd", "pw", "secret", "token", "credential", "auth", "key", "contrase", "senha",
     "\u043f\u0430\u0440\u043e\u043b",
                   "m\u1eadt kh\u1ea9u", "\u5bc6", "\u53e3\u4ee4", "\u4ee4\u724c", "\u30d1\u30b9", "\ube44\ubc00")),
    (flags, ("-pass", "-pwd", "-token", "-secret", "key", "-credential", "_pass", "_token")),
    (sentences, (" is ", " was ", " l\u00e0 ", "is:", "was:")),
    (commands, (" -p", " -u", "--user", " -a", "identified", "password", "putty", "private-", "<")),
)
