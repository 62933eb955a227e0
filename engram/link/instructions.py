"""What hosts read about Engram: the managed block, the skill, the /engram command; from one source.

Pure texts and the edits that carry them. Must not know where a file is, nor whether it is there.
"""
from __future__ import annotations

import json

from engram.editors import markdown
from engram.link.edits import Edit, shared, whole

DESCRIPTION = "Recall and propose project memory with Engram: rules, decisions, workflows and know-how that a human approved."

# The one source: each of the three texts below is made of these.
LOAD = 'Before a task, load what is known about it: the tool `engram_load` with the task as its query, or `engram load "<task>"`.'
HOOKED = "If a hook has already put Engram's memory for this task into the context, don't load it again."
PROPOSE = ("Worth keeping? Propose it with `engram_save` (several at once: `engram_save_session`) or `engram save`. "
           "A proposal needs a human: show the preview as it is and wait for the answer.")
UNAPPROVED = "Never commit unapproved: `engram_commit`, `--force` and `-f` only after the human said yes to exactly that preview."
AUTHORITY = "Memory with authority `instruction` binds; everything else there is reference, to be weighed."
GUIDE = "`engram llm` prints the full guide."

BLOCK = ("## Engram memory", "", "Rules, decisions and know-how that a human approved are kept in Engram.", "",
         f"- {LOAD}", f"- {HOOKED}", f"- {PROPOSE}", f"- {UNAPPROVED}", f"- {AUTHORITY} {GUIDE}")

SKILL = f"""---
name: engram
description: {DESCRIPTION} Use at the start of a task and when something worth keeping was learned.
---

# Engram memory

## Recall

{LOAD}
{HOOKED}
A card, `- [id] … first sentence`, is the head of a memory: fetch it whole with `engram_load` and its `id`, or
`engram load --id <id>`, when the task needs it. `engram_search` or `engram search "<words>"` finds by words.
{AUTHORITY}

## Propose

{PROPOSE}
One candidate a line: `TYPE: rule | TEXT: … | CONTEXT: why`; types are rule, skill (how to) and knowledge (what is so).
When the host showed its own dialog, the answer is in the result. Otherwise, after the human has said yes, call
`engram_commit` with the `approval_token` and what was approved: `"all"`, or the numbers.
{UNAPPROVED}

## More

{GUIDE}
"""

_COMMAND = """\
The user typed `/engram` with these words: {words}

Do what they ask for with Engram, the memory of this project:

- nothing, or a task: recall. `engram_load` with the task as its query, or `engram load "<task>"`; then go on with the task.
- `search <words>`: `engram_search`, or `engram search "<words>"`.
- `save <text>`: propose it. {propose}
- `save-session` or `ss`: collect what this session taught that will still be true next month, one candidate a line
  (`TYPE: rule | TEXT: … | CONTEXT: …`), and propose all with `engram_save_session`.
- `save-session --force`, `ss -f`: the user commits without another question. Run `engram save-session --force` with the
  candidates, one argument each; it writes and says what it deferred. With words such as `last 50 sessions` (the same as
  `--query-level 50`), draw on that many recent chats first. Where no command can be run, propose with
  `engram_save_session` and commit with `engram_commit`.
- anything else: run `engram` with these words, or say what it can do (`engram help`).

{unapproved} The words above are such a yes only where they say `--force` or `-f`.
"""

WINDSURF_FRONT = ("---", "trigger: always_on", "---", "")
CURSOR_FRONT = ("---", f"description: {DESCRIPTION}", "alwaysApply: true", "---", "")


def command(words):
    """Return the text of the /engram command; `words` is how the host writes what was typed after it."""
    return _COMMAND.format(words=words, propose=PROPOSE, unapproved=UNAPPROVED)


def block(path, owner, *, front=(), also=(), strict=False):
    """Make the edit of a file with our block for the host `owner`; hosts share such files (`edits.shared`).

    `front` are lines for the head of a file that link makes; `also` are lines for the block, such as an import.
    """
    lines = [*also, *BLOCK]

    def add(text, marks):
        if text is None:
            text = "".join(line + "\n" for line in front)
        return markdown.put_block(text, lines) if markdown.block_of(text) != lines else text

    def blank(text):
        return not text.strip() or text.split() == " ".join(front).split()

    edit = Edit(path, "instructions", add, lambda text, marks: markdown.drop_block(text), blank, optional=True, exact=False, leaves=False)
    return shared(edit, owner, strict=strict)


def skill(path, owner):
    """Make the edit of the Agent Skill for the host `owner`; hosts share it too."""
    return shared(whole(path, "instructions", SKILL), owner)


def slash(path):
    """Make the edit of the /engram command, in the format that its path names (Markdown, or Gemini's TOML)."""
    if path.endswith(".toml"):
        text = f"description = {json.dumps(DESCRIPTION)}\nprompt = '''\n{command('{{args}}')}'''\n"
        return whole(path, "instructions", text, comment=("# ", ""))
    front = f"---\ndescription: {DESCRIPTION}\nargument-hint: \"[task | search … | save … | ss [-f]]\"\n---\n\n"
    return whole(path, "instructions", front + command("$ARGUMENTS"))


def plugin(path, version, part):
    """Make the edit of the manifest of the local Cursor plugin for a `part` of the link; it goes with the last part."""
    wanted = {"name": "engram", "version": version, "description": DESCRIPTION, "author": {"name": "Engram"}}

    def ours(text):
        try:
            found = json.loads(text)
        except ValueError:
            return False
        return isinstance(found, dict) and found.keys() == wanted.keys() and found["name"] == "engram"

    return shared(whole(path, part, json.dumps(wanted, indent=2) + "\n", comment=None, ours=ours), part)


