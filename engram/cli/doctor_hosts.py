"""What `doctor` finds in the hosts' files: registrations and hooks. Reads only.

Ids: host.not_linked, host.config, host.bom, host.foreign, host.registration, host.version, host.unpinned, host.command, host.server,
host.hooks, host.hook_command, host.hook_old, host.codex_hooks, link.leftover, and those of `doctor_unasked`.
"""
from __future__ import annotations

import os
import re
from collections import namedtuple

from engram import __version__, files
from engram.cli import doctor_server, doctor_unasked
from engram.cli import link as linking
from engram.editors import source, toml
from engram.errors import EngramError, diagnostic
from engram.hosts import table
from engram.link import apply, hooks, launcher, opencode_plugin, registration

PINNED = re.compile(re.escape(launcher.PACKAGE) + r"@(.+)")
NO_BOM = {"claude": "Copilot, which reads it too", "gemini": "Gemini CLI", "codex": "Codex"}

# One registration: the host, the site of its level, the file, the entry, its words.
Entry = namedtuple("Entry", "host site file value words")


def findings(context, *, start=True):
    """Return the diagnostics of all hosts at both levels; `start` says whether registered servers are started."""
    try:
        sites = [linking.site_of(context, user=user) for user in ((True,) if context.global_only else (False, True))]
    except EngramError:
        return  # without a user folder nothing was linked; doctor_store says so
    for host in table.HOSTS:
        if host.shape == "bundle":
            continue
        entries, found = [], []
        for site in sites:
            found += _registrations(host, site, entries)
        for entry in entries:
            found += _entry(entry, context, start)
        for site in sites:
            found += [row for row in _hooks(host, site) if row not in found]  # one file may hold both
        if not entries and not found and sites[-1].here(host):
            found.append(diagnostic("host.not_linked", "info", f"{host.title} is here and does not know Engram.",
                                    remediation=f"Run engram link {host.name}."))
        yield from found
    yield from doctor_unasked.in_lists(sites)
    yield from doctor_unasked.in_opencode(sites)
    yield from _leftovers(sites[-1])


def _registrations(host, site, entries):
    """Append what is registered to `entries`; yield what is wrong with the files themselves."""
    paths = [site.path(template) for template in (host.user_mcp if site.user else host.workspace_mcp)]
    if host.name == "claude" and site.user:
        paths = [linking.claude_json(site)]
    for path in paths:
        try:
            data = apply.read(path)
            if data is None:
                continue
            text = source.decode(data)
            value = registration.found(host, text)
        except EngramError as error:
            yield diagnostic("host.config", "warning", f"{host.title} can't read it either: {error.message}", file=path,
                             remediation="Mend the file; Engram leaves it alone until then.")
            continue
        if value is None:
            continue
        words = registration.words_of(value)
        if not registration.is_ours(value):
            yield diagnostic("host.foreign", "warning", f"the server `engram` of {host.title} there is not Engram: "
                             + (" ".join(words) or "no command"), file=path, remediation=f"Rename it, or engram link {host.name} --force.")
            continue
        if text.startswith(source.BOM) and host.name in NO_BOM and host.shape != "toml":
            yield _bom(NO_BOM[host.name], path)
        entries.append(Entry(host, site, path, value, words))


def _bom(reader, path):
    return diagnostic("host.bom", "warning", f"the file starts with a byte order mark, which {reader} does not take.", file=path,
                      remediation="Save it as UTF-8 without BOM.")


def _entry(entry, context, start):
    yield from _pins(entry)
    yield from doctor_unasked.in_entry(entry)
    if doctor_server.runnable(entry.words, context.env) is None:
        yield diagnostic("host.command", "error", f"{entry.host.title} can't start Engram: there is no `{entry.words[0]}`.",
                         file=entry.file, remediation="Run engram install, or engram upgrade.")
        return
    if not start:
        yield diagnostic("host.registration", "info", f"{entry.host.title} starts {' '.join(entry.words)}", file=entry.file)
        return
    kept = os.path.join(entry.site.user_dir, "bin")
    if not entry.site.user and not doctor_server.is_own(entry.words, context.env, kept):
        yield diagnostic("host.registration", "warning", f"not started: the workspace's file runs {' '.join(entry.words)}, "
                         "which is not how Engram writes it.", file=entry.file,
                         remediation="Look at it, then engram link again with --force.")
        return
    trial = doctor_server.start(entry.words, dict(context.env), context.cwd)
    if trial.ok:
        yield diagnostic("host.registration", "info", f"{entry.host.title}: answers as {trial.said}", file=entry.file)
    elif "npx" in entry.words:
        yield diagnostic("host.server", "warning", f"npx can't start it without the network: {trial.said}", file=entry.file,
                         remediation="npm must have the package in reach where this is started.")
    else:
        yield diagnostic("host.server", "error", f"{entry.host.title} starts {' '.join(entry.words)}: {trial.said}", file=entry.file,
                         remediation="Run engram upgrade.")


def _pins(entry):
    """Yield what is wrong with the version that an entry names."""
    if launcher.PACKAGE in entry.words:
        yield diagnostic("host.unpinned", "warning", "npx starts whatever version is newest.", file=entry.file,
                         remediation="Run engram upgrade to pin it.")
    pins = [found[1] for word in entry.words if (found := PINNED.fullmatch(word))]
    kept = os.path.join(entry.site.user_dir, "bin") + os.sep
    pins += [word[len(kept):].split(os.sep)[0] for word in entry.words if word.startswith(kept)]
    if pins and pins[0] != __version__:
        yield diagnostic("host.version", "warning", f"{entry.host.title} starts version {pins[0]}; this is {__version__}.",
                         file=entry.file, remediation="Run engram upgrade.")


def _hooks(host, site):
    shape = hooks.SHAPES.get(host.name)
    if host.name == "opencode":
        yield from _plugin(host, site)
    if shape is None:
        return
    path = site.path(shape.user if site.user else shape.workspace)
    try:
        data = apply.read(path)
        found = hooks.commands(source.decode(data), host.name, shape.dialect) if data else []
    except EngramError as error:
        yield diagnostic("host.config", "warning", f"{host.title} can't read it either: {error.message}", file=path,
                         remediation="Mend the file; Engram leaves it alone until then.")
        return
    for _, line in found:
        program = hooks.program_of(line)
        if hooks.is_old(line):
            yield diagnostic("host.hook_old", "warning", "a hook of the earlier implementation.", file=path,
                             remediation=f"Run engram link {host.name}{' --global' if site.user else ''}.")
        elif not site.keeps(program):
            yield diagnostic("host.hook_command", "error", f"the hook can't run: there is no {program[-1]}.", file=path,
                             remediation="Run engram install, or engram upgrade.")
    if found:
        yield diagnostic("host.hooks", "info", f"{host.title}: {', '.join(event for event, _ in found)}", file=path)
    if found and host.name == "codex":
        yield from _codex_trust(site, path)
    if found and data.startswith(source.BOM.encode()) and host.name in ("codex", "gemini"):
        yield _bom(host.title, path)


def _plugin(host, site):
    path = site.path(hooks.PLUGIN[site.user])
    try:
        words = opencode_plugin.words_of((apply.read(path) or b"").decode("utf-8", "replace"))
    except EngramError:
        return
    if words and not site.keeps(words[:-2]):
        yield diagnostic("host.hook_command", "error", f"the plugin can't run: there is no {words[:-2][-1]}.", file=path,
                         remediation="Run engram install, or engram upgrade.")
    elif words:
        yield diagnostic("host.hooks", "info", f"{host.title}: plugin", file=path)


def _codex_trust(site, path):
    """Codex skips a hook, silently, until its user has trusted it (hosts.md, 1.9)."""
    config = site.path("{codex}/config.toml")
    try:
        state = toml.value(source.decode(apply.read(config) or b""), ("hooks", "state"))
    except EngramError:
        return  # reported as host.config
    if not any(str(key).startswith(path + ":") for key in state or ()):
        yield diagnostic("host.codex_hooks", "info", "Codex runs these hooks only once you have trusted them.", file=path,
                         remediation="Type /hooks in Codex and trust them.")


def _leftovers(site):
    """Yield copies kept of other versions, and what interrupted links left beside hosts' files."""
    folders = {os.path.dirname(site.path(template)) for host in table.HOSTS for template in (*host.workspace_mcp, *host.user_mcp)}
    folders |= {os.path.dirname(site.path(template)) for shape in hooks.SHAPES.values() for template in (shape.workspace, shape.user)}
    for folder in sorted(folders):
        for name in _names(folder):
            if re.fullmatch(r"\..+\.[0-9a-f]{16}" + re.escape(files.SUFFIX), name):
                yield diagnostic("link.leftover", "info", "a temporary file that an interrupted run left; nothing reads it.",
                                 file=os.path.join(folder, name), remediation="Delete it.")
    folder = os.path.join(site.user_dir, "bin")
    for version in _names(folder):
        if version != __version__:
            yield diagnostic("link.leftover", "info", f"the copy kept of version {version}; a host that was linked then may start it.",
                             file=os.path.join(folder, version), remediation="Run engram upgrade where you use Engram, then delete it.")


def _names(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
