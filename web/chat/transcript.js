// What one conversation consists of on this page: what the gateway has recorded, then what is newer than that.
// Pure: no page, no network, no clock.

const CLOSED = "closed";
const OPEN = "open";

/** Keys of the same thing before and after it is recorded, so that it is shown once and stays where it is. */
const spokenKey = (delivery) => `spoken:${delivery}.0`;
const saidKey = (id) => `said:${id}`;

const inOrder = (a, b) => a.position - b.position;

export class Transcript {
  constructor() {
    /** By position, in order. */
    this.recorded = [];
    /** By key, in the order in which they came to this page. */
    this.live = new Map();
    /** What was edited or deleted after it was recorded. */
    this.changes = new Map();
    /** Messages of people that have found their entry. */
    this.settled = new Set();
    /** Choices pressed here or on another page. */
    this.pressed = new Set();
    /** Whether the first entry is among them. */
    this.complete = false;
    this.loaded = false;
  }

  get oldest() {
    return this.recorded[0]?.position;
  }

  get newest() {
    return this.recorded.at(-1)?.position ?? 0;
  }

  /** How far back new pieces of history have to go: to what is shown, and to what waits for its entry. */
  get reach() {
    const waiting = [...this.live.values()].flatMap((item) => (item.kind === "said" ? item.after ?? [] : []));
    return Math.min(this.loaded ? this.newest : Infinity, ...waiting);
  }

  /**
   * Takes in a piece of history, which is everything between its ends; `complete` says that it begins with the
   * first entry. Returns the ids of messages that were waiting for their entry.
   */
  record(items, { complete = false } = {}) {
    const [first, last] = [complete ? 0 : items[0]?.position, items.at(-1)?.position];
    const taken = new Set(items.map(({ position }) => position));
    // What is not there any more was taken back.
    const stays = ({ position }) => taken.has(position) || !(position >= first && position <= last);
    const known = new Map(this.recorded.filter(stays).map((item) => [item.position, item]));
    const found = [];
    for (const item of items) {
      if (known.has(item.position)) continue;
      const entry = { ...item, key: `entry:${item.position}` };
      if (item.kind === "said" && item.id) {
        entry.key = saidKey(item.id);
        this.settled.add(item.id);
        if (this.live.delete(entry.key)) found.push(item.id);
      } else if (item.delivery) {
        entry.key = spokenKey(item.delivery);
        for (const [key, shown] of this.live) {
          if (shown.delivery === item.delivery) this.live.delete(key);
        }
      }
      known.set(item.position, entry);
    }
    const newest = new Map([...known.values()].sort(inOrder).map((item) => [item.key, item]));
    // What is answered again is said once more, and shown once.
    this.recorded = [...newest.values()].sort(inOrder);
    this.loaded = true;
    return found;
  }

  /** Forgets what stands up to a position, where too much between it and the rest is missing. */
  forget(position) {
    this.recorded = this.recorded.filter((item) => item.position > position);
    this.complete = false;
  }

  /** A message written on this page, in whatever state of being sent. */
  write(message) {
    if (this.settled.has(message.id)) return;
    const key = saidKey(message.id);
    this.live.set(key, { ...this.live.get(key), ...message, kind: "said", key });
  }

  /** A message is given up. */
  unwrite(id) {
    this.live.delete(saidKey(id));
  }

  /** The gateway has heard a message, from this page or another. */
  said(message) {
    const key = saidKey(message.id);
    if (this.settled.has(message.id) || this.live.has(key)) return;
    this.live.set(key, { ...message, kind: "said", key, state: "sent" });
  }

  draft({ delivery, html, doing }) {
    const key = spokenKey(delivery);
    if (this.#isRecorded(key) || this.live.get(key)?.kind === "posted") return;
    if (!html && !doing) return void this.live.delete(key);
    this.#dropDrafts(key);
    this.live.set(key, { kind: "draft", key, delivery, html, doing });
  }

  posted(message) {
    const key = `spoken:${message.id}`;
    if (this.#isRecorded(spokenKey(message.delivery))) return false;
    const fresh = this.live.get(key)?.kind !== "posted";
    this.live.set(key, { ...message, kind: "posted", key });
    return fresh;
  }

  edited({ id, html, text, files = [], choices = [] }) {
    this.changes.set(`spoken:${id}`, { html, text, files, choices });
  }

  deleted({ id }) {
    this.changes.set(`spoken:${id}`, null);
  }

  press(choice) {
    this.pressed.add(choice);
  }

  unpress(choice) {
    this.pressed.delete(choice);
  }

  /** No turn is running, so no answer is growing. */
  rest() {
    this.#dropDrafts();
  }

  #dropDrafts(except) {
    for (const [key, item] of this.live) {
      if (item.kind === "draft" && key !== except) this.live.delete(key);
    }
  }

  #isRecorded(key) {
    return this.recorded.some((item) => item.key === key);
  }

  /** Everything to show, in order. `busy` says whether a question can still be open. */
  list(busy) {
    const all = [...this.recorded, ...this.live.values()];
    const items = [];
    for (const [index, item] of all.entries()) {
      if (item.kind === "returned" || item.kind === "withheld") continue;
      const change = this.changes.get(item.key);
      if (change === null) continue;
      const shown = { ...item, ...change };
      if (shown.kind === "said" && answers(all, index)) continue;
      if (asks(all, index)) continue;
      if (shown.choices?.length) Object.assign(shown, this.#question(all, index, busy));
      if (shown.calls?.length) {
        // Models number their calls anew in every session, so the next result of that name is the one.
        const returned = all.slice(index + 1).filter((later) => later.kind === "returned");
        const result = ({ id }) => returned.find(({ call }) => call === id);
        shown.calls = shown.calls.map((call) => ({ ...call, result: result(call) }));
      }
      items.push(shown);
    }
    return items;
  }

  /** Whether a question can be answered, and how it was. */
  #question(all, index, busy) {
    const { choices } = all[index];
    const later = all.slice(index + 1);
    const answer = later.find((item) => item.kind === "said" && !item.text.startsWith("/"));
    const pressed = choices.find((choice) => this.pressed.has(choice.id));
    const chosen = pressed ?? (answer && named(choices, answer.text));
    const over = later.some((item) => item.kind === "returned");
    const question = busy && !over && !answer && !chosen ? OPEN : CLOSED;
    return { question, chosen: chosen?.id };
  }
}

/** Whether the message at `index` is nothing but the label of a choice, which the question itself shows. */
function answers(all, index) {
  const question = all[index - 1];
  const label = all[index].text;
  return Boolean(question?.choices?.some((choice) => choice.label === label));
}

/** Whether the item at `index` is nothing but the call of a tool that asks the question after it. */
function asks(all, index) {
  const { calls = [], text, files = [] } = all[index];
  const nothingElse = calls.length === 1 && text?.trim() === "" && files.length === 0;
  return nothingElse && Boolean(all[index + 1]?.choices?.length);
}

function named(choices, text) {
  const words = text.trim();
  const number = /^(\d+)[.)]?$/.exec(words);
  return choices[number ? Number(number[1]) - 1 : -1]
    ?? choices.find((choice) => choice.label.trim().toLowerCase() === words.toLowerCase());
}
