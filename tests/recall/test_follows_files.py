"""A running server sees what the files say now: nothing of a deleted or edited file stays in the way."""
from __future__ import annotations

import os
import shutil
import time

import pytest

from tests.torture.place import Place


@pytest.fixture
def place(built, tmp_path, clean_environment):
    """Return a Place with the memories a and b, which share their words."""
    with Place(built, root=str(tmp_path / "machine")) as made:
        made.save("The harbour crane alpha lifts forty tons of granite.")
        made.save("The harbour crane beta lifts sixty tons of granite, and is younger.", code=None)
        made.save("The lighthouse lamp is serviced in May.")
        yield made


def named(place, word):
    return place.store(next(rel for rel, data in place.memories().items() if word in data))


def ids(server, query, **more):
    return [entry["id"] for entry in server.data("engram_search", {"query": query, **more})["entries"]]


def settled(server, query, wanted):
    """Search until the answer is `wanted`, for the second that the index may be behind and tenfold slack."""
    end = time.monotonic() + 10
    while ids(server, query, limit=1) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return ids(server, query, limit=1)


@pytest.mark.case("ST-14")
def test_a_deleted_file_takes_no_place_and_an_edited_one_is_found_by_its_new_words(place):
    lamp = named(place, b"lighthouse")
    crane = named(place, b"crane")
    with place.server() as server:
        assert ids(server, "harbour crane granite", limit=1)
        os.unlink(crane)
        with open(lamp, "a", encoding="utf-8") as file:
            file.write("\nThe harbour crane granite zirconia stands beside it.\n")
        lamp_id = os.path.basename(lamp)[:-3]
        assert settled(server, "zirconia", [lamp_id]) == [lamp_id]
        assert os.path.basename(crane)[:-3] not in ids(server, "harbour crane granite", limit=50)


@pytest.mark.case("ST-14")
def test_a_file_that_comes_back_is_found_again(place):
    """A sibling: a branch switch takes a file away and brings it back."""
    crane = named(place, b"crane")
    id = os.path.basename(crane)[:-3]
    with place.server() as server:
        assert ids(server, "harbour crane")[0] == id
        shutil.move(crane, crane + ".away")
        assert id not in settled(server, "harbour crane granite", [])
        shutil.move(crane + ".away", crane)
        assert settled(server, "harbour crane granite", [id]) == [id]
        assert id in server.call("engram_load", {"query": "harbour crane granite"})["content"][0]["text"]


@pytest.mark.case("ST-14")
def test_a_new_file_and_a_renamed_one_are_seen_without_a_restart(place):
    """A sibling: files that a person or Git puts there."""
    lamp = named(place, b"lighthouse")
    with place.server() as server:
        assert ids(server, "lighthouse lamp")
        with open(lamp, "rb") as file:
            data = file.read()
        os.rename(lamp, place.store("knowledge", "moved.md"))
        with open(place.store("knowledge", "fresh.md"), "wb") as file:
            file.write(data.replace(b"lighthouse", b"windmill").replace(b"id: ", b"id: new-"))
        fresh = "new-" + os.path.basename(lamp)[:-3].replace("lighthouse", "windmill")
        assert settled(server, "windmill lamp", [fresh]) == [fresh]
        assert ids(server, "lighthouse lamp").count(os.path.basename(lamp)[:-3]) == 1
