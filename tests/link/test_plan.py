"""Whole plans over made-up homes and workspaces, without a disk: every host, every part, there and back."""
from __future__ import annotations

import json

import pytest

from engram.hosts import table
from engram.link import hooks, plan
from engram.link.site import Site
from tests.editors.configs import JsonMaker, markdown_text, toml_text
from tests.trials import count, dice

HOSTS = [row for row in table.HOSTS if row.shape != "bundle"]


class World:
    """Files in memory, with the records that link keeps of them."""

    def __init__(self, files):
        self.files = dict(files)
        self.records = {}

    def do(self, site, host, *, undo=False, **options):
        planned = plan.build(host, site, plan.Options(**options), self.files.get, undo=undo)
        made = plan.changes(planned, self.files.get, json.loads(json.dumps(self.records)), undo=undo)
        for change in made:
            self.files[change.path] = change.after
            if change.after is None:
                del self.files[change.path]
            self.records[change.path] = change.record
            if change.record is None:
                del self.records[change.path]
        return made




class OnPath(Site):
    """A site where Engram is on PATH."""

    __slots__ = ()

    def which(self, name):
        return f"/bin/{name}"


def random_files(site, host, rolls):
    """Return files of the host as its user may have them."""
    kinds = {}
    for templates in (host.workspace_mcp, host.user_mcp):
        for template in templates:
            kinds[site.path(template)] = "toml" if host.shape == "toml" else host.dialect
    if host.name in hooks.SHAPES:
        shape = hooks.SHAPES[host.name]
        kinds.update({site.path(template): shape.dialect for template in (shape.workspace, shape.user)})
    for templates in (host.workspace_text, host.user_text):
        kinds.update({site.path(template): "markdown" for template in templates})
    files = {}
    for path, kind in kinds.items():
        if rolls.random() < 0.4:
            continue
        if kind == "toml":
            text = toml_text(rolls)
        elif kind == "markdown":
            text = markdown_text(rolls)
        else:
            holder = "mcp" if host.shape == "opencode" else "mcpServers"
            text = JsonMaker(rolls, comments=kind.comments, trailing=kind.trailing, servers=holder).text()
        files[path] = text.encode()
    return files


@pytest.mark.parametrize("user", [False, True], ids=["workspace", "user"])
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_whatever_is_there_links_once_and_comes_back(host, user):
    site = OnPath("/ws", "/home/u/.engram", {"HOME": "/home/u", "PATH": "/bin"}, user=user, platform="linux")
    rolls = dice(f"plan {host.name} {user}")
    linked = 0
    for _ in range(count(60, 600)):
        files = random_files(site, host, rolls)
        world = World(files)
        parts = {name: rolls.random() < 0.8 for name in ("mcp", "hooks", "instructions")}
        linked += bool(world.do(site, host, **parts))
        after = dict(world.files)
        assert world.do(site, host, **parts) == [] and world.files == after
        if rolls.random() < 0.5:  # part by part, in any order
            names = list(parts)
            rolls.shuffle(names)
            for name in names:
                world.do(site, host, undo=True, **{other: other == name for other in names})
        else:
            world.do(site, host, undo=True)
        assert world.files == files and world.records == {}
    assert linked or host.name == "antigravity"  # which knows no workspace-level file


def test_all_hosts_in_one_world_come_back_in_any_order():
    rolls = dice("plan all")
    for _ in range(count(40, 400)):
        files, steps = {}, []
        for user in (False, True):
            site = OnPath("/ws", "/home/u/.engram", {"HOME": "/home/u", "PATH": "/bin"}, user=user, platform="linux")
            for host in HOSTS:
                files |= random_files(site, host, rolls)
                steps.append((site, host))
        world = World(files)
        rolls.shuffle(steps)
        for site, host in steps:
            world.do(site, host)
        after = dict(world.files)
        for site, host in steps:
            assert not [change for change in world.do(site, host) if change.after != change.before]
        assert world.files == after
        rolls.shuffle(steps)
        for site, host in steps:
            world.do(site, host, undo=True)
        assert world.files == files and world.records == {}


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_an_upgrade_touches_only_what_is_there(host):
    for user in (False, True):
        site = OnPath("/ws", "/home/u/.engram", {"HOME": "/home/u", "PATH": "/bin"}, user=user, refresh=True, platform="linux")
        world = World({})
        assert world.do(site, host) == []
        fresh = OnPath("/ws", "/home/u/.engram", {"HOME": "/home/u", "PATH": "/bin"}, user=user, platform="linux")
        world.do(fresh, host, instructions=False)
        there = set(world.files)
        assert world.do(site, host) == [] and set(world.files) == there


def test_an_upgrade_makes_no_host_an_owner_of_what_it_shares():
    site, fresh = (OnPath("/ws", "/home/u/.engram", {"HOME": "/home/u", "PATH": "/bin"}, user=True, refresh=refresh, platform="linux")
                   for refresh in (True, False))
    world = World({})
    world.do(fresh, table.find("gemini"))
    world.files["/home/u/.gemini/GEMINI.md"] = world.files["/home/u/.gemini/GEMINI.md"].replace(b"## Engram memory", b"## Old")
    assert world.do(site, table.find("antigravity")) == []
    assert [change.path for change in world.do(site, table.find("gemini"))] == ["/home/u/.gemini/GEMINI.md"]
    world.do(fresh, table.find("gemini"), undo=True)
    assert world.files == {}
