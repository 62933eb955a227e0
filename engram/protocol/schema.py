"""Check a tool's arguments against its `inputSchema`. Must not know tools: a schema and a value in, a sentence out.

Covers the keywords that our tables use (`type` as a name or a list of names, `properties`, `required`,
`additionalProperties: false`, `items`, `enum`, `minimum`, `maximum`, `minLength`, `maxLength`, `minItems`,
`maxItems`); a test holds the tables against this list, so none is passed over in silence.
"""
from __future__ import annotations

DEEPEST = 20
KEYWORDS = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems", "title", "description", "default",
))


def whole(value, depth=0):
    """Return a JSON value with every `5.0` as 5: JSON knows one kind of number, a schema's integer includes it.

    What lies deeper than any schema of ours is left as it is: it fits none.
    """
    if depth > DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: whole(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [whole(item, depth + 1) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def problem(schema, value, path=""):
    """Return what is wrong with `value` as a sentence that names the field, or None when it fits."""
    name = path or "the arguments"
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    kind = next((kind for kind in kinds if _TYPES[kind](value)), None)
    if kinds and kind is None:
        return f"{name} must be {' or '.join(_WORDS[kind] for kind in kinds)}, not {_called(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} must be one of {', '.join(map(str, schema['enum']))}"
    check = _CHECKS.get(kind)
    return check(schema, value, path) if check else None


def _number(schema, value, path):
    if value < schema.get("minimum", value):
        return f"{path} must be at least {schema['minimum']}"
    if value > schema.get("maximum", value):
        return f"{path} must be at most {schema['maximum']}"
    return None


def _string(schema, value, path):
    if len(value) < schema.get("minLength", 0):
        return f"{path} must not be empty" if schema["minLength"] == 1 else f"{path} is too short"
    if len(value) > schema.get("maxLength", len(value)):
        return f"{path} holds {len(value)} characters; at most {schema['maxLength']} are taken"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        return f"{path} is not valid Unicode: a lone surrogate at character {error.start + 1}"
    return None


def _array(schema, value, path):
    if len(value) < schema.get("minItems", 0):
        return f"{path} must hold at least {schema['minItems']}"
    if len(value) > schema.get("maxItems", len(value)):
        return f"{path} holds {len(value)} items; at most {schema['maxItems']} are taken"
    items = schema.get("items", {})
    return next((found for at, item in enumerate(value) if (found := problem(items, item, f"{path}[{at}]"))), None)


def _object(schema, value, path):
    known = schema.get("properties", {})
    prefix = path + "." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            return f"{prefix}{name} is missing"
    for name, item in value.items():
        if name in known:
            found = problem(known[name], item, prefix + name)
            if found:
                return found
        elif schema.get("additionalProperties") is False:
            names = ", ".join(known) or "none"
            return f"{prefix}{name[:80]} is not an argument of this tool (known: {names})"
    return None


def _called(value):
    return next(_WORDS[kind] for kind, fits in _TYPES.items() if fits(value))


_TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_WORDS = {"null": "null", "boolean": "true or false", "integer": "a whole number", "number": "a number",
          "string": "a string", "array": "a list", "object": "an object"}
_CHECKS = {"integer": _number, "number": _number, "string": _string, "array": _array, "object": _object}
