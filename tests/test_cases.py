"""Every failure report of the case collection is accounted for: a test that names it, for each id."""
from __future__ import annotations

import ast
import os

import build

HERE = os.path.dirname(os.path.abspath(__file__))
IDS = build.read(os.path.join(HERE, "data", "cases", "ids.txt")).decode().split()


def marks():
    """Return {id: ["file::test", …]} of all `case` marks below tests/."""
    found = {}
    for folder, folders, names in os.walk(HERE):
        folders[:] = [name for name in folders if name not in ("data", "__pycache__")]
        for name in names:
            if name.startswith("test_") and name.endswith(".py"):
                path = os.path.join(folder, name)
                for node in ast.walk(ast.parse(build.read(path))):
                    for test, mark in marks_of(node):
                        for argument in mark.args:
                            found.setdefault(argument.value, []).append(f"{os.path.relpath(path, build.ROOT)}::{test}")
    return found


def marks_of(node):
    """Yield (test's name, call) for the `case` marks on a function or class, and on rows of a parametrize."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        for inner in [part for decorator in node.decorator_list for part in ast.walk(decorator)]:
            if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "pytest.mark.case":
                yield node.name, inner


def test_every_case_has_a_test_of_its_name():
    known = marks()
    missing = [case for case in IDS if case not in known]
    assert not missing, f"{len(missing)} of {len(IDS)} cases have no test: {' '.join(missing)}"


def test_no_test_names_a_case_that_does_not_exist():
    unknown = {case: tests for case, tests in marks().items() if case not in IDS}
    assert not unknown


def test_the_list_is_that_of_the_collection(shared):
    import re
    text = build.read(os.path.join(shared, "cases", "CASES.md")).decode()
    assert re.findall(r"^\*\*([A-Z]{2}-\d+)\*\*", text, re.M) == IDS
