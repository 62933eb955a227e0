"""The OpenCode plugin: the one host whose hooks are JavaScript that it loads. Must not know files.

OpenCode builds the system prompt anew for each request, so the plugin keeps the text of the session's start and
that of its latest prompt, and adds both each time (`engram.cli.hook_events`, `keeps`). It answers in time or not at
all, throws nothing, and starts `engram` without a shell.
"""
from __future__ import annotations

import json
import re

SOURCE = r"""// Made by `engram link opencode`; `engram unlink opencode` removes it. Gives the model Engram's memories for the task.
import { spawn } from "node:child_process";

const COMMAND = @COMMAND@;
const LIMIT = @LIMIT@; // milliseconds
const MOST_SESSIONS = 100;

// Sends one event to Engram; answers {context} to use a text, {} to leave things as they are.
function ask(event, directory) {
  return new Promise((resolve) => {
    let said = "";
    const done = (answer) => { clearTimeout(timer); resolve(answer); };
    const timer = setTimeout(() => { child?.kill(); done({}); }, LIMIT);
    let child;
    try {
      child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: directory, stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
    } catch {
      return done({});
    }
    child.on("error", () => done({}));
    child.stdin.on("error", () => {});
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (piece) => { said += piece; });
    child.on("close", () => {
      try {
        const answer = JSON.parse(said);
        done(answer && typeof answer.context === "string" ? { context: answer.context } : {});
      } catch {
        done({});
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

// The user's plugin and the workspace's may both be there: for each folder the first one speaks.
const speakers = (globalThis[Symbol.for("engram.speakers")] ??= new Map());

export const Engram = async ({ directory }) => {
  if ((speakers.get(directory) ?? import.meta.url) !== import.meta.url) return {};
  speakers.set(directory, import.meta.url);
  const sessions = new Map(); // session id -> the texts of its start and of its latest prompt
  let latest; // older hosts don't say which session a request belongs to

  return {
    "chat.message": async (input, output) => {
      const id = input?.sessionID ?? output?.message?.sessionID;
      const prompt = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n");
      if (!id || !prompt.trim()) return;
      const event = (name, more) => ask({ hook_event_name: name, session_id: id, cwd: directory, ...more }, directory);
      latest = id;
      if (!sessions.has(id)) {
        if (sessions.size >= MOST_SESSIONS) sessions.delete(sessions.keys().next().value);
        sessions.set(id, { start: "", prompt: "" });
        sessions.get(id).start = (await event("SessionStart", { source: "startup" })).context ?? "";
      }
      const { context } = await event("UserPromptSubmit", { prompt });
      if (context !== undefined && sessions.has(id)) sessions.get(id).prompt = context;
    },
    "experimental.chat.system.transform": async (input, output) => {
      const texts = sessions.get(input?.sessionID ?? latest);
      for (const text of texts ? [texts.start, texts.prompt] : []) if (text) output.system.push(text);
    },
    event: async ({ event }) => {
      if (event?.type === "session.deleted") sessions.delete(event.properties?.info?.id);
    },
  };
};
"""


def words_of(text):
    """Return the words that the plugin in `text` starts, or None when it is no plugin of ours."""
    found = re.search(r"^const COMMAND = (\[.*\]);$", text, re.MULTILINE)
    try:
        words = json.loads(found[1]) if found and "engram link opencode" in text else None
    except ValueError:
        return None
    return words if words and all(isinstance(word, str) for word in words) else None


def source(words, seconds):
    """Return the plugin's text; `words` start `engram hook opencode`, which may take `seconds`."""
    return SOURCE.replace("@COMMAND@", json.dumps(words)).replace("@LIMIT@", str(seconds * 1000))
