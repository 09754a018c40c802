// Messages on their way to the gateway. They survive a reload, and are sent again under the same id until the
// gateway says that it has stored them: the id makes a second arrival the same message.

import * as api from "./api.js";
import { freshId } from "./dom.js";

const PREFIX = "talaria.outbox.";
const MOST = 100;
const PAUSES = [500, 1000, 2000, 4000, 8000, 15_000];

/** A message that was stored but has no entry after this long was not meant for the transcript. */
const STALE = 60_000;

const messages = new Map();
let onChange = () => {};
let sending = false;
let failures = 0;
let pause;

/** `changed(message, gone)` is called whenever a message moves on. */
export function open(changed) {
  onChange = changed;
  for (const message of stored()) {
    if (message.state === "sending") message.state = "queued";
    messages.set(message.id, message);
  }
}

export const all = () => [...messages.values()];

export const of = (conversation) => all().filter((message) => message.conversation === conversation);

/** Queues a message. `after` is the newest entry its writer has seen. */
export function add(conversation, text, files, after) {
  if (messages.size >= MOST) return undefined;
  const message = { id: freshId(), conversation, text, files, after, at: Date.now(), state: "queued" };
  messages.set(message.id, message);
  move(message, "queued");
  flush();
  return message;
}

/** The transcript has the entry of this message, so there is nothing left to remember. */
export function recorded(id) {
  messages.delete(id);
  remove(id);
}

export function retry(id) {
  const message = messages.get(id);
  if (message?.state === "failed") {
    move(message, "queued");
    flush();
  }
}

export function discard(id) {
  const message = messages.get(id);
  if (!message) return;
  recorded(id);
  onChange(message, true);
}

/** Drops messages of a conversation that were stored long ago and never became an entry, such as dropped ones. */
export function prune(conversation) {
  for (const message of of(conversation)) {
    if (message.state === "sent" && Date.now() - message.at > STALE) recorded(message.id);
  }
}

/** Sends what is queued, in order. Called whenever sending may have become possible. */
export function flush({ eager = false } = {}) {
  if (eager) {
    failures = 0;
    clearTimeout(pause);
    pause = undefined;
  }
  if (!sending && pause === undefined) run();
}

async function run() {
  sending = true;
  try {
    for (;;) {
      const message = all().find((one) => one.state === "queued");
      if (!message) return;
      if (!(await deliver(message))) return;
    }
  } finally {
    sending = false;
  }
}

/** Whether to go on with the next message. */
async function deliver(message) {
  move(message, "sending");
  const { id, text, files } = message;
  try {
    await api.say(message.conversation, { id, text, files });
    failures = 0;
    move(message, "sent");
    return true;
  } catch (error) {
    if (error.passing || error.status === 401) {
      move(message, "queued");
      const wait = PAUSES[Math.min(failures, PAUSES.length - 1)];
      failures += 1;
      pause = setTimeout(() => {
        pause = undefined;
        flush();
      }, wait);
      return false;
    }
    message.problem = error.message;
    move(message, "failed");
    return true;
  }
}

function move(message, state) {
  message.state = state;
  if (!messages.has(message.id)) return;
  save(message);
  onChange(message, false);
}

function stored() {
  const found = [];
  try {
    for (let index = 0; index < localStorage.length; index += 1) {
      const key = localStorage.key(index);
      if (key.startsWith(PREFIX)) found.push(JSON.parse(localStorage.getItem(key)));
    }
  } catch {
    return [];
  }
  return found.filter((message) => message?.id && message.conversation).sort((a, b) => a.at - b.at);
}

function save(message) {
  try {
    localStorage.setItem(PREFIX + message.id, JSON.stringify(message));
  } catch {
    // A full or forbidden storage costs only the survival of a reload.
  }
}

function remove(id) {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    // Nothing was stored then.
  }
}
