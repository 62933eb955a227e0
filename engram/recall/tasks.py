"""Task types: what kind of work a task is, by whole words.

Pure: a table and a look-up. Must not know memories. A word counts when it is a word of the task, never as a part of one
(upstream-format.md L-15: "build" is no "ui").
"""
from __future__ import annotations

import re

from engram.text.words import terms

UNKNOWN = "unknown"
# In order of preference: with equal counts the earlier row wins. Words as people write them; stems are compared.
TASK_TYPES = {
    "debugging": "debug bug fix broken crash error exception traceback stacktrace fails failing failure flaky regression reproduce hang "
                 "leak wrong incorrect",
    "troubleshooting": "troubleshoot diagnose outage incident timeout unavailable stuck investigate",
    "testing": "test tests testing pytest jest unittest coverage assertion fixture mock e2e snapshot qa",
    "security": "security vulnerability secret secrets credential token encryption encrypt auth authentication authorization permission "
                "xss csrf injection cve sandbox",
    "deploy": "deploy deployment rollout rollback ship staging production canary helm kubernetes k8s terraform provision",
    "release": "release changelog version tag publish semver hotfix",
    "migration": "migrate migration upgrade downgrade port backfill deprecate",
    "performance": "performance slow latency speed optimize throughput profile profiling benchmark memory-usage cache",
    "refactoring": "refactor refactoring rename restructure extract simplify cleanup dedupe modularize",
    "reviewing": "review reviewing pr pull-request approve feedback",
    "documentation": "document documentation docs readme docstring guide tutorial manual",
    "database": "database sql postgres mysql sqlite schema index query table transaction orm",
    "data": "data dataset etl pipeline csv parquet analytics warehouse import export",
    "api": "api endpoint rest graphql grpc webhook route request response openapi",
    "ui": "ui ux frontend button page form modal layout css style component screen dialog",
    "accessibility": "accessibility a11y aria contrast screen-reader",
    "localization": "localization translate translation i18n l10n locale language",
    "configuration": "configure configuration config setting settings env environment flag yaml toml",
    "installation": "install installation setup dependency dependencies package lockfile bootstrap",
    "integration": "integrate integration connect sync oauth sdk",
    "automation": "automate automation script cron schedule ci workflow bot hook",
    "cli": "cli command terminal shell argument flags subcommand",
    "ops": "ops monitor monitoring alert alerting oncall backup restore log logs logging observability dashboard",
    "architecture": "architecture design module boundary adr structure service decouple",
    "planning": "plan planning roadmap estimate milestone ticket scope prioritize",
    "research": "research compare evaluate explore spike prototype brainstorm",
    "coding": "implement code feature add write build create function class support",
}
_by_term: dict[str, list[str]] = {}


def task_type(query: str) -> str:
    """Return the task type that most words of a task speak for, `unknown` when none does; `task type: x` decides."""
    said = re.search(r"\btask[ _]type:\s*([a-z]+)", query, re.IGNORECASE)
    if said and said[1].lower() in TASK_TYPES:
        return said[1].lower()
    if not _by_term:
        for name, words in TASK_TYPES.items():
            for word in words.split():
                for term in {terms(word)[0]}:
                    _by_term.setdefault(term, []).append(name)
    counts = dict.fromkeys(TASK_TYPES, 0)
    for term in dict.fromkeys(terms(query[:20_000])):
        for name in _by_term.get(term, ()):
            counts[name] += 1
    best = max(counts.values())
    return next(name for name in TASK_TYPES if counts[name] == best) if best else UNKNOWN
