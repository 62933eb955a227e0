"""The case files that tests read: copies of failure reports turned into inputs, under tests/data/cases."""
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "cases")


def case_file(name):
    """Return the bytes of a case file such as `frontmatter/bom.md`."""
    with open(os.path.join(FOLDER, *name.split("/")), "rb") as file:
        return file.read()
