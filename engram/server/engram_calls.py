"""What the eleven tools do: arguments that passed their schema in, a Result or an Ask out.

Must not know JSON-RPC or eras. Each is the function that the command of the same name calls, on the place
where the server was started, found anew for each call: a store or a setting may have come since.
"""
from __future__ import annotations

from engram import propose, recall
from engram.errors import EngramError, Result, StorageError
from engram.propose import DECLINED, INVALID
from engram.recall import uses
from engram.server import approval
from engram.server.tool import Ask
from engram.store import index, integrity, places

# A pending entry lives for 30 minutes, and so does the question about it (propose.md, Approval tokens).
SECONDS = 30 * 60

_HOSTS = ("Some hosts answer such dialogs by themselves; with --no-elicitation the server asks in the chat instead, "
          "through an approval_token.")
TEXT_DECLINED = f"Nothing was saved: the proposal was declined in the approval dialog and is void.\n{_HOSTS}"
TEXT_AT_ONCE = ("Nothing was saved: the client declined the approval dialog at once, before anybody could have read it, "
                f"and the proposal is void.\n{_HOSTS}")
TEXT_INVALID = "Nothing was saved: the approval dialog came back without a valid choice, and the proposal is void.\nPropose again."


def here():
    """Return the Place of the folder that the server was started in. Raises StorageError when that is gone."""
    try:
        return places.find()
    except OSError:
        raise StorageError("the folder that this server was started in is gone.", hint="Start the server again.") from None


_FOLLOWER = index.Follower()


def catch_up():
    """Take in what changed in the files, and write what was counted; without a store, or while it is busy, nothing happens."""
    uses.flush()
    try:
        _FOLLOWER.tick(here().stores)
    except EngramError:
        pass


def load(context, arguments):
    ids = listed(arguments.get("id"))
    return recall.load(here(), arguments.get("query", ""), ids=ids, budget=arguments.get("budget_tokens"),
                       disclosure=arguments.get("disclosure", "auto"), full=arguments.get("full", False),
                       explain=arguments.get("explain", False))


def route(context, arguments):
    return recall.route(here(), arguments.get("query", ""))


def search(context, arguments):
    return recall.search(here(), arguments.get("query", ""), limit=arguments.get("limit", 10))


def verify(context, arguments):
    return integrity.verify(here(), scope=arguments.get("scope"))


def status(context, arguments):
    return propose.status(here())


def save(context, arguments):
    place = here()
    fields = {name: arguments[name] for name in ("type", "scope", "context", "level", "update") if name in arguments}
    lists = {name: listed(arguments.get(name)) for name in ("role", "triggers", "depends_on")}
    return proposed(place, propose.save(place, arguments["text"], **fields, **lists))


def save_session(context, arguments):
    place = here()
    return proposed(place, propose.save_session(place, arguments["text"], scope=arguments.get("scope"),
                                                role=listed(arguments.get("role"))))


def note(context, arguments):
    place = here()
    return proposed(place, propose.note(place, arguments["text"], objective=arguments.get("objective"),
                                        type=arguments.get("type"), scope=arguments.get("scope")))


def commit(context, arguments):
    return propose.commit(here(), arguments["approval_token"], arguments.get("approve", "all"), by="agent")


def set_role(context, arguments):
    return propose.set_role(here(), listed(arguments["roles"]))


def set_rule_variant(context, arguments):
    return propose.set_rule_variant(here(), arguments["variant"])


def proposed(place, proposal):
    """Return the Result of a proposal that asks nothing, or the Ask for the human."""
    if not proposal.asks:
        return proposal.result()

    def accepted(content):
        choice = approval.chosen(proposal, content)
        if choice is None:
            declining = approval.refused(proposal, content)
            propose.revoke(place, proposal.entry, DECLINED if declining else INVALID)
            return _void(TEXT_DECLINED if declining else TEXT_INVALID)
        numbers, scope = choice
        return propose.by_entry(place, proposal.entry, numbers, scope=scope, by="dialog")

    def declined(at_once):
        propose.revoke(place, proposal.entry, DECLINED)
        return _void(TEXT_AT_ONCE if at_once else TEXT_DECLINED)

    return Ask(proposal.entry, proposal.text, approval.form(proposal), waiting=proposal.result, accepted=accepted,
               declined=declined, seconds=SECONDS)


def _void(text):
    return Result({"saved": [], "deferred": []}, text)


def listed(value):
    """Return a string-or-list argument as a list; a string may hold several, parted by commas."""
    if isinstance(value, str):
        value = value.split(",")
    return [item.strip() for item in value or () if item.strip()]
