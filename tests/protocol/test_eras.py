"""The tables of versions held against the official schemas: a field is sent from the version that brought it, and from no other."""
from __future__ import annotations

import json
import os

import pytest

from engram.protocol import eras

DEFINITIONS = {"implementation": "Implementation", "tool": "Tool", "result": "CallToolResult", "resource": "Resource",
               "template": "ResourceTemplate", "prompt": "Prompt", "elicitation": "ElicitRequestFormParams"}


def definitions(shared, version):
    with open(os.path.join(shared, "mcp-schema", version + ".json"), encoding="utf-8") as file:
        schema = json.load(file)
    return schema.get("$defs") or schema["definitions"]


def properties(known, name, seen=()):
    """Return the names of a definition's members, those of what it refers to included."""
    found = set()
    for node in [known[name], *known[name].get("allOf", [])]:
        found |= set(node.get("properties", {}))
        if "$ref" in node:
            found |= properties(known, node["$ref"].rsplit("/", 1)[1])
    return found


@pytest.mark.parametrize("version", eras.VERSIONS)
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_field_is_sent_exactly_in_the_versions_that_have_it(shared, version, kind):
    known = definitions(shared, version)
    if kind == "elicitation" and "ElicitRequestFormParams" not in known:
        if "ElicitRequest" not in known:
            pytest.skip(f"{version} has no elicitation")
        members = set(known["ElicitRequest"]["properties"]["params"]["properties"])
    else:
        members = properties(known, DEFINITIONS[kind])
    sent = set(eras.keep(kind, dict.fromkeys(eras.FIELDS[kind], 1), version))
    assert sent == members & set(eras.FIELDS[kind])


@pytest.mark.parametrize("version", eras.LEGACY_VERSIONS)
def test_the_methods_of_the_legacy_era_are_requests_of_its_schemas(shared, version):
    known = definitions(shared, version)
    methods = {node["properties"]["method"].get("const") for node in known.values()
               if "const" in node.get("properties", {}).get("method", {})}
    assert set(eras.METHODS["legacy"]) <= methods


def test_the_methods_and_cached_results_of_the_modern_era_are_those_of_its_schema(shared):
    known = definitions(shared, eras.MODERN)
    methods = {node["properties"]["method"].get("const") for node in known.values()
               if "const" in node.get("properties", {}).get("method", {})}
    assert set(eras.METHODS["modern"]) <= methods and "initialize" not in methods and "ping" not in methods
    results = {"server/discover": "DiscoverResult", "tools/list": "ListToolsResult", "prompts/list": "ListPromptsResult",
               "resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult",
               "resources/read": "ReadResourceResult", "tools/call": "CallToolResult", "prompts/get": "GetPromptResult"}
    assert {method for method, name in results.items() if "ttlMs" in properties(known, name)} == set(eras.CACHE)
