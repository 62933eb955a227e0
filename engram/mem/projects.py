"""Which project a call is about, and who said so: the call, its session, the process, the client's roots, the folder.

The precedence is one function each for reads and writes, and `mem_current_project` reports the same (session.md; case
PJ-08). Must not know tools or rows beyond their project. A parent of several repositories is an error that lists them all
and takes a choice, once confirmed by a token, for the rest of the process (case PJ-05).
"""

from __future__ import annotations

import os
from collections import namedtuple

from engram.files import sha256
from engram.mem import detection, gitdir, limits, names
from engram.mem.refusals import Refusal

CHOSEN = "user_selected_after_ambiguous_project"
USES = ("observations", "sessions", "prompts")

# name: canonical, "" for none; source: who said so; path: the folder behind it, "" when none; warnings: list of texts
Resolved = namedtuple("Resolved", "name source path warnings git_dir", defaults=((), None))


def for_writing(tier, connection, *, project="", session_id="", reason="", token="", directory=None):
    """Return the Resolved of a write. Raises Refusal with one of the codes of mem-tools.md 1.2."""
    session = _session(connection, session_id)
    if reason or token:
        return _chosen(tier, connection, project, session, reason, token)
    if project:
        return _spoken(tier, connection, project, session)
    if session is not None and not directory:
        return _of_session(connection, session)
    if not directory:
        own = _own_session(tier, connection)
        if own is not None:
            return own
        if tier.override:
            return Resolved(follow(connection, tier.override), "process_override", "")
    found = _from_folders(tier, connection, directory)
    if found.name:
        return found
    raise Refusal(
        "project_required",
        f"no project is known here. {' '.join(found.warnings)}",
        hint="Pass `project`, or start the server in a project folder or with --project.",
        **origin(found),
    )


def for_reading(tier, connection, *, project=""):
    """Return the Resolved of a read; a project nobody has written to is an error only when the call named it."""
    if project:
        return _spoken(tier, connection, project, None)
    own = _own_session(tier, connection)
    if own is not None:
        return own
    if tier.override:
        return Resolved(follow(connection, tier.override), "process_override", "")
    return _from_folders(tier, connection, None)


def current(tier, connection):
    """Return (Resolved, available names, Refusal or None): what a call without a project would get; never raises Refusal."""
    try:
        found = for_reading(tier, connection)
    except Refusal as error:
        source = "ambiguous" if error.code == "ambiguous_project" else error.data.get("project_source", "")
        available = error.data.get("available_projects") or known(connection)
        return Resolved("", source, error.data.get("project_path", ""), (error.message,)), available, error
    return found, known(connection), None


def stored(row):
    """Return the Resolved that names the project of a row."""
    return Resolved(row["project"], "stored_project", "")


def folder_of(tier, connection):
    """Return the Resolved of the roots or the folder alone, whatever was said; None when it can't be told."""
    try:
        return _from_folders(tier, connection, None)
    except Refusal:
        return None


def known(connection):
    """Return the names of all projects that have rows, sorted."""
    found = set()
    for table in USES:
        # from one name to the next by the index: reading every row would cost what is stored
        found.update(
            row[0]
            for row in connection.execute(
                f"WITH RECURSIVE step (name) AS (SELECT min(project) FROM {table} UNION ALL "
                f"SELECT (SELECT min(project) FROM {table} WHERE project > name) FROM step WHERE name IS NOT NULL) SELECT name FROM step"
            )
        )
    return sorted(found - {None, ""})


def is_known(connection, name):
    """Tell whether a project has rows of any kind."""
    return any(connection.execute(f"SELECT 1 FROM {table} WHERE project = ? LIMIT 1", (name,)).fetchone() for table in USES)


def follow(connection, name):
    """Return the name that `name` was merged into, or itself."""
    row = connection.execute("SELECT project FROM aliases WHERE alias = ?", (name,)).fetchone()
    return row[0] if row else name


def origin(found):
    """Return the members that every answer carries: which project, and who said so."""
    return {"project": found.name, "project_source": found.source, "project_path": found.path}


def bind(connection, found):
    """Remember the label of a repository with its first write, so that a renamed remote doesn't split the project."""
    if found.git_dir and found.source in ("git_remote", "git_root", "git_child", "client_roots"):
        connection.execute(
            "INSERT INTO bindings VALUES (?, ?, ?) ON CONFLICT (git_dir) DO UPDATE SET identity = excluded.identity, "
            "project = excluded.project WHERE identity <> excluded.identity",
            (found.git_dir, gitdir.identity(found.git_dir), found.name),
        )


def check_name(tier, connection, project):
    """Return the canonical name of a project that must be known. Raises Refusal (invalid_project, unknown_project)."""
    return _spoken(tier, connection, project, None).name


def _session(connection, session_id):
    if not session_id:
        return None
    row = connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise Refusal(
            "unknown_session",
            f"the session `{session_id}` is not registered.",
            hint="Leave session_id out (the save goes to this process's session), or call mem_session_start first.",
            invalid_session_id=session_id,
            retry_without_session_id=True,
        )
    return row


def _of_session(connection, session):
    if session["project"]:
        return Resolved(follow(connection, session["project"]), "session", session["directory"])
    owners = [
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT project FROM observations WHERE session_id = ? AND project <> '' ORDER BY 1", (session["id"],)
        )
    ]
    if len(owners) == 1:
        return Resolved(owners[0], "session", session["directory"])
    raise Refusal(
        "session_project_ownership_ambiguous",
        f"the session `{session['id']}` has no project of its own" + (f", and its rows belong to {', '.join(owners)}." if owners else "."),
        hint="Pass `project`.",
        available_projects=owners or known(connection),
        session_id=session["id"],
    )


def _own_session(tier, connection):
    # a session that the agent registered in this process; one that we made ourselves says nothing about the project
    if not tier.session_id:
        return None
    row = connection.execute("SELECT * FROM sessions WHERE id = ?", (tier.session_id,)).fetchone()
    return Resolved(follow(connection, row["project"]), "session", row["directory"]) if row is not None and row["project"] else None


def _spoken(tier, connection, project, session):
    name = follow(connection, names.spoken(project))
    if session is not None and session["project"] and follow(connection, session["project"]) != name:
        raise Refusal(
            "session_project_mismatch",
            f"the session `{session['id']}` belongs to {session['project']}, not to {name}.",
            hint="Leave `project` out, or use a session of that project.",
            session_id=session["id"],
            session_project=session["project"],
            **origin(Resolved(name, "explicit_override", "")),
        )
    if is_known(connection, name):
        if project.strip().lower() != names.canonical(project):
            raise Refusal(
                "project_name_collision",
                f"`{project.strip()}` is too near to the project {name}.",
                hint=f"Pass `{name}` if you mean that one.",
                available_projects=[name],
            )
        return Resolved(name, "explicit_override", "")
    backing = _backing(tier, connection)
    if name in backing:
        return Resolved(name, "explicit_override", backing[name])
    available = known(connection)
    near = names.similar(name, available)
    raise Refusal(
        "unknown_project",
        f"there is no project {name}." + (f" Similar: {', '.join(near)}." if near else ""),
        hint="A new project is named by its folder, by .engram/config.json, --project or ENGRAM_PROJECT.",
        available_projects=sorted({*available, *backing}),
        similar_projects=near,
        **origin(Resolved(name, "explicit_override", "")),
    )


def _backing(tier, connection):
    # what makes a name known although no row has it yet: the process's own settings, the folders, the registered session
    backing = {follow(connection, tier.override): ""} if tier.override else {}
    own = _own_session(tier, connection)
    if own is not None:
        backing[own.name] = own.path
    try:
        found = _detected(tier, connection, None)
    except Refusal:
        return backing
    return {**backing, **(found.candidates or {found.project: found.path} if found.project or found.candidates else {})}


def _from_folders(tier, connection, directory):
    found = _detected(tier, connection, directory)
    if found.source == "ambiguous":
        key = tuple(sorted(found.candidates.values()))
        if tier.choices.get(key):
            name = tier.choices[key]
            return Resolved(follow(connection, name), CHOSEN, found.candidates.get(name, found.path))
        raise _ambiguous(tier, found)
    return Resolved(found.project, found.source, found.path, (found.warning,) if found.warning else (), found.git_dir)


def _detected(tier, connection, directory):
    if directory:
        if not os.path.isabs(directory) or "\0" in directory or not os.path.isdir(directory):
            raise Refusal("invalid_argument", "`directory` is not the absolute path of a folder that exists.", argument="directory")
        found = detection.detect(directory, common=tier.common_folders, children=False)
    elif tier.roots:
        found = detection.among_roots(tier.roots, tier.folder, common=tier.common_folders)
        if found.source != "ambiguous" and found.project:
            found = found._replace(source="client_roots" if found.source != "config" else "config")
    else:
        found = detection.detect(tier.folder, common=tier.common_folders)
    if found.git_dir and found.source != "config":
        row = connection.execute("SELECT identity, project FROM bindings WHERE git_dir = ?", (found.git_dir,)).fetchone()
        if row is not None and row[0] == gitdir.identity(found.git_dir):
            found = found._replace(project=row[1])
    return found._replace(project=follow(connection, found.project)) if found.project else found


def _ambiguous(tier, found):
    token = tier.make_token()
    key = tuple(sorted(found.candidates.values()))
    tier.tokens[sha256(token.encode())] = (tier.clock() + limits.TOKEN_SECONDS, key, dict(found.candidates))
    listed = "\n".join(f"- {name} ({path})" for name, path in found.candidates.items())
    return Refusal(
        "ambiguous_project",
        f"{found.path} holds {len(found.candidates)} projects; nothing was done. Which one is meant?\n{listed}\n",
        hint=f'Ask the user, then call again with project=<name>, project_choice_reason="{CHOSEN}" and recovery_token="{token}" '
        f"(good once, for {limits.TOKEN_SECONDS} s); the choice stays for this session.",
        available_projects=list(found.candidates),
        candidates=[{"project": name, "path": path} for name, path in found.candidates.items()],
        recovery_token=token,
        token_ttl_seconds=limits.TOKEN_SECONDS,
        project="",
        project_source="ambiguous",
        project_path=found.path,
    )


def _chosen(tier, connection, project, session, reason, token):
    if reason and reason != CHOSEN:
        raise Refusal("invalid_argument", f'`project_choice_reason` is not "{CHOSEN}".', argument="project_choice_reason")
    if not token:
        raise Refusal(
            "missing_recovery_token",
            "a choice among several projects needs the `recovery_token` of the error that listed them.",
            hint="Call without project_choice_reason to get one.",
        )
    if not reason:
        raise Refusal(
            "invalid_argument", f'a `recovery_token` goes with project_choice_reason="{CHOSEN}".', argument="project_choice_reason"
        )
    expires, key, candidates = tier.tokens.get(sha256(token.encode("utf-8", "surrogatepass")), (0, (), {}))
    if expires < tier.clock():
        raise Refusal(
            "invalid_recovery_token",
            f"this `recovery_token` was never given out, is used up, or is older than {limits.TOKEN_SECONDS} s.",
            hint="Call without it to get a new one.",
        )
    name = names.spoken(project) if project else ""
    if name not in candidates:
        raise Refusal(
            "invalid_project_choice", f"`project` is none of the choices: {', '.join(candidates)}.", available_projects=list(candidates)
        )
    if session is not None and session["project"] and follow(connection, session["project"]) != name:
        raise Refusal(
            "session_project_mismatch",
            f"the session `{session['id']}` belongs to {session['project']}, not to {name}.",
            session_id=session["id"],
            session_project=session["project"],
        )
    del tier.tokens[sha256(token.encode("utf-8", "surrogatepass"))]
    tier.choices[key] = name
    return Resolved(follow(connection, name), CHOSEN, candidates[name], (), detection.git_dir(candidates[name]))
