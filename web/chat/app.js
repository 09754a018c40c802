// Puts the page together: which conversation is shown, what is known of it, and what happens to it.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { byId, el, freshId } from "./dom.js";
import { Live } from "./live.js";
import * as login from "./login.js";
import * as outbox from "./outbox.js";
import { dress } from "./page.js";
import { People } from "./people.js";
import { Sidebar } from "./sidebar.js";
import { Title } from "./title.js";
import { Transcript } from "./transcript.js";
import { View } from "./view.js";

const PIECE = 50;
/** Pieces of history fetched in a row, before the page gives up looking further back. */
const MOST_PIECES = 40;
/** What is being written before a conversation has begun. */
const NEW = "new";
/** Transcripts kept in memory. */
const KEPT = 12;
/** A turn may end without a word, so what runs is looked up this often. */
const CHECK_BUSY = 3000;

let conversations = [];
/** Conversations that exist only here until their first message is stored. */
const begun = new Map();
const unread = new Set();
const stopping = new Set();
/** Conversations whose last word has arrived while it is not known yet whether more follows. */
const settling = new Set();
const transcripts = new Map();
let current;
let fresh;

const view = new View({ retry: outbox.retry, discard: outbox.discard, choose, older });
const composer = new Composer({ send, stop });
const sidebar = new Sidebar({ open: reveal, begin: () => go("") });
const title = new Title({ rename });
const people = new People();
const live = new Live(heard, connection);

async function start() {
  dress({ write: (text) => composer.write(text), find: () => sidebar.find(), escape, logout });
  outbox.open(onOutbox);
  addEventListener("talaria:login", () => leave());
  addEventListener("hashchange", () => route());
  await enter(await login.fromAddress());
}

/** Goes in if we may, else asks for a login. */
async function enter(problem) {
  try {
    await begin(await api.state());
  } catch (error) {
    if (error.status === 401) return login.ask(problem, () => enter());
    connection("lost");
    setTimeout(() => enter(problem), 1500);
    return;
  }
  byId("login").hidden = true;
  byId("app").hidden = false;
  composer.focus();
  live.open();
  people.admitted = true;
}

async function begin(opening) {
  composer.largest = opening.largest_file;
  composer.commands.all = opening.commands;
  conversations = opening.conversations;
  outbox.all().forEach(list);
  route();
}

/** The login has ended. */
function leave(problem) {
  live.close();
  people.admitted = false;
  login.ask(problem, () => enter());
}

// Which conversation is shown.

const go = (id) => {
  location.hash = id ? `#/${id}` : "#/";
};

function route() {
  const named = /^#\/([\w-]{8,64})$/.exec(location.hash)?.[1];
  fresh ??= freshId();
  const id = named ?? fresh;
  if (id === current) return;
  current = id;
  unread.delete(id);
  view.clear();
  composer.open(named ?? NEW);
  composer.focus();
  const transcript = transcriptOf(id);
  if (!known(id)?.busy) outbox.prune(id);
  for (const message of outbox.of(id)) transcript.write(message);
  show();
  if (named) catchUp(id);
  else transcript.loaded = transcript.complete = true;
}

function transcriptOf(id) {
  const transcript = transcripts.get(id) ?? new Transcript();
  // The one used longest ago is the first.
  transcripts.delete(id);
  transcripts.set(id, transcript);
  for (const old of transcripts.keys()) {
    if (transcripts.size <= KEPT) break;
    if (old !== current) transcripts.delete(old);
  }
  return transcript;
}

const known = (id) => conversations.find((conversation) => conversation.id === id) ?? begun.get(id);

// Reading what was said.

/** Fetches what is newer than what is shown, back to where it meets it. */
async function catchUp(id) {
  const transcript = transcriptOf(id);
  const { reach, newest } = transcript;
  try {
    let before;
    for (let piece = 0; piece < MOST_PIECES; piece += 1) {
      const items = await api.history(id, before, PIECE);
      takeIn(id, items);
      before = items[0]?.position ?? 0;
      if (items.length < PIECE || before <= reach) break;
    }
    if (before > newest && !transcript.complete) transcript.forget(newest);
  } catch (error) {
    if (!error.passing) throw error;
  }
  if (!known(id)?.busy) transcript.rest();
  if (id === current) show();
}

let fetchingOlder = false;

async function older() {
  const id = current;
  const transcript = transcriptOf(id);
  if (fetchingOlder || !transcript.loaded || transcript.complete || transcript.oldest === undefined) return;
  fetchingOlder = true;
  try {
    const items = await api.history(id, transcript.oldest, PIECE);
    takeIn(id, items);
    if (id === current) show();
  } catch (error) {
    if (!error.passing) throw error;
  } finally {
    fetchingOlder = false;
  }
}

function takeIn(id, items) {
  const transcript = transcriptOf(id);
  const complete = items.length < PIECE;
  for (const message of transcript.record(items, { complete })) outbox.recorded(message);
  if (complete) transcript.complete = true;
}

/** Opens a conversation at the words that were found. */
async function reveal(id, position, words) {
  go(id);
  route();
  const transcript = transcriptOf(id);
  if (!transcript.loaded) await catchUp(id);
  for (let piece = 0; piece < MOST_PIECES && !transcript.complete && transcript.oldest > position; piece += 1) {
    await older();
  }
  if (id === current) requestAnimationFrame(() => view.reveal(position, words));
}

// What the gateway tells.

function connection(state) {
  clearTimeout(connection.pending);
  const banner = byId("banner");
  if (state === "open") {
    banner.hidden = true;
    return;
  }
  // A stream does not tell why it ended. If the login has ended, this question will.
  api.state().catch(() => {});
  // A blink of the connection is nobody's business.
  connection.pending = setTimeout(() => {
    banner.hidden = false;
    const spinner = el("span", { class: "spinner", "aria-hidden": "true" });
    banner.replaceChildren(spinner, "Reconnecting… What you write is kept and sent as soon as the gateway is back.");
  }, 700);
}

function heard(event) {
  const { kind, conversation: id } = event;
  if (kind === "hello" || kind === "resync") return void refreshAll();
  if (kind === "alive" || !id) return;
  const transcript = transcripts.get(id);
  const grows = kind === "draft" && (event.html || event.doing);
  if (kind === "typing" || grows) {
    settling.delete(id);
    mark(id, { busy: true });
  }
  switch (kind) {
    case "draft":
      transcript?.draft(event);
      break;
    case "posted":
      settling.add(id);
      if (event.choices?.length) mark(id, { busy: true });
      if (transcript?.posted(event) ?? true) tell(id, event.text);
      refreshSoon(id);
      break;
    case "said":
      transcript?.said(event);
      list(event);
      mark(id, { updated: event.at });
      refreshSoon(id);
      break;
    case "edited":
    case "deleted":
      transcript?.[kind](event);
      break;
    case "pressed":
      transcript?.press(event.choice);
      break;
    case "stopped":
      if (known(id)?.busy) stopping.add(id);
      refreshSoon(id);
      break;
  }
  if (id === current) show();
  else showList();
}

function mark(id, change) {
  const conversation = known(id);
  if (conversation) Object.assign(conversation, change);
}

/** Something was said to a person who may not be looking at it. */
function tell(id, text) {
  if (id !== current || document.hidden) unread.add(id);
  if (id === current) byId("announcer").textContent = text.slice(0, 1000);
}

async function refreshAll() {
  try {
    const opening = await api.state();
    composer.commands.all = opening.commands;
    settle(opening.conversations);
    for (const id of transcripts.keys()) if (id !== current) transcripts.delete(id);
    if (current !== fresh || known(current)) await catchUp(current);
    outbox.flush({ eager: true });
  } catch (error) {
    if (!error.passing && error.status !== 401) throw error;
  }
  show();
}

const pending = new Map();

/** Reads again what a conversation has become, once things have come to rest. */
function refreshSoon(id) {
  clearTimeout(pending.get(id));
  pending.set(id, setTimeout(() => refresh(id), 120));
}

async function refresh(id) {
  pending.delete(id);
  try {
    settle(await api.conversations());
    settling.delete(id);
    if (transcripts.has(id)) await catchUp(id);
  } catch (error) {
    if (!error.passing && error.status !== 401) throw error;
  }
  show();
}

function settle(listed) {
  conversations = listed;
  for (const { id, busy } of listed) {
    begun.delete(id);
    if (!busy) stopping.delete(id);
  }
}

setInterval(() => {
  if (document.hidden || !conversations.some(({ busy }) => busy)) return;
  for (const { id, busy } of conversations) if (busy && id === current) refreshSoon(id);
}, CHECK_BUSY);

// What a person does.

function send(text, files) {
  const id = current;
  const message = outbox.add(id, text, files, transcriptOf(id).newest);
  if (!message) return false;
  list(message);
  mark(id, { updated: message.at });
  if (id === fresh) {
    fresh = undefined;
    composer.open(id);
    go(id);
  }
  view.following = true;
  show();
  return true;
}

/** A title is a wish like any other: it is kept, sent and answered as a message. */
function rename(text) {
  if (known(current)) send(`/title ${text}`, []);
}

/** Lists the conversation of a message that the gateway may not have yet. */
function list({ conversation: id, text, files, at }) {
  if (known(id)) return;
  const title = text.trim().split("\n")[0].slice(0, 60) || files[0]?.name;
  begun.set(id, { id, title, updated: at, busy: false });
}

function onOutbox(message, gone) {
  const transcript = transcripts.get(message.conversation);
  if (gone) {
    transcript?.unwrite(message.id);
    if (outbox.of(message.conversation).length === 0) begun.delete(message.conversation);
  } else {
    transcript?.write(message);
  }
  if (message.conversation === current) show();
}

async function choose(item, choice) {
  const id = current;
  const transcript = transcriptOf(id);
  transcript.press(choice.id);
  show();
  composer.focus();
  await insist(() => api.press(id, `press-${item.delivery.replace(/\W/g, "-")}`.slice(0, 64), choice.id), () => {
    transcript.unpress(choice.id);
    show();
  });
}

async function stop() {
  const id = current;
  if (!known(id)?.busy || stopping.has(id)) return;
  stopping.add(id);
  show();
  const event = freshId();
  await insist(() => api.stop(id, event), () => {
    stopping.delete(id);
    show();
  });
}

/** One thing at a time: the search, the list, then the turn. */
function escape() {
  if (document.activeElement === byId("search") && sidebar.endSearch()) return;
  if (title.leave()) return;
  if (sidebar.isOpen) sidebar.close();
  else stop();
}

async function logout() {
  live.close();
  await insist(() => api.logout(), () => {});
  leave();
}

/** Repeats what failed only in passing; the id in it makes that harmless. */
async function insist(attempt, giveUp) {
  for (let pause = 300; pause < 10_000; pause *= 2) {
    try {
      return await attempt();
    } catch (error) {
      if (!error.passing) break;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  giveUp();
}

// Showing it.

let scheduled = false;

/** Shows the current state at the next frame, however often it is asked to. */
function show() {
  if (scheduled) return;
  scheduled = true;
  // A hidden page gets no frames, and has to be right when it is looked at.
  if (document.hidden) setTimeout(paint);
  else requestAnimationFrame(paint);
}

function paint() {
  scheduled = false;
  const transcript = transcriptOf(current);
  const conversation = known(current);
  const busy = Boolean(conversation?.busy);
  const items = transcript.list(busy);
  const asked = items.some((item) => item.question === "open");
  const draft = items.find((item) => item.kind === "draft");
  const writing = Boolean(draft && draft.html.trim() !== "" && !draft.doing);
  byId("welcome").hidden = !(transcript.loaded && items.length === 0);
  byId("working").hidden = !busy || asked || writing || settling.has(current);
  byId("working-text").textContent = stopping.has(current) ? "Stopping" : doing(draft);
  byId("input").placeholder = asked ? "Choose above, or answer in your own words" : "Message Talaria";
  composer.working(busy, stopping.has(current));
  view.show(items, { more: transcript.loaded && !transcript.complete && items.length > 0 });
  title.show(conversation);
  if (!document.hidden) unread.delete(current);
  showList();
}

/** What the agent is doing, in its own words where it says so. */
function doing(draft) {
  const words = draft?.doing ?? "";
  return words === "" ? "Working" : words[0].toUpperCase() + words.slice(1);
}

function showList() {
  const listed = [...begun.values(), ...conversations]
    .map((conversation) => ({ ...conversation, unread: unread.has(conversation.id) }))
    .sort((a, b) => b.updated - a.updated);
  sidebar.show(listed, current);
}

document.addEventListener("visibilitychange", () => !document.hidden && current && show());

start();
