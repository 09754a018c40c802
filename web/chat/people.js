// Who is let in on the other accounts: who asks, who was, and what the operator decides about it.

import * as api from "./api.js";
import { byId, copyButton, day, el, icon, time } from "./dom.js";

/** Somebody may ask at any time, so that is looked up this often while the page is in view. */
const LOOK_EVERY = 20_000;

const REACHES = { direct: "in direct chats", everywhere: "everywhere" };

export class People {
  /** The part of the dialog that belongs to an account, by its name. */
  #entrances = new Map();

  constructor() {
    [this.button, this.dialog, this.list] = ["people", "people-dialog", "people-accounts"].map(byId);
    this.badge = el("span", { class: "badge", "aria-hidden": "true", hidden: true });
    this.button.append(icon("people"), this.badge);
    byId("people-close").append(icon("close"));
    byId("people-close").addEventListener("click", () => this.dialog.close());
    this.button.addEventListener("click", () => this.#open());
    // Pressed beside the dialog, where nothing is but its backdrop.
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.#quieten());
    document.addEventListener("visibilitychange", () => !document.hidden && this.look());
    setInterval(() => !document.hidden && this.look(), LOOK_EVERY);
  }

  /** Somebody is logged in, or nobody is any more. */
  set admitted(admitted) {
    this.isAdmitted = admitted;
    if (admitted) this.look();
    else this.dialog.close();
  }

  /** Looks up who asks. */
  async look() {
    if (!this.isAdmitted) return;
    try {
      this.#show(await api.people());
    } catch (error) {
      // A page without a desk has nothing to show; a gateway that is away will be back.
      if (error.status === 404) this.button.hidden = true;
    }
  }

  async #open() {
    this.dialog.showModal();
    await this.look();
  }

  #quieten() {
    for (const entrance of this.#entrances.values()) entrance.tell("");
  }

  #show({ accounts }) {
    const waiting = accounts.reduce((sum, { asking }) => sum + asking.length, 0);
    const label = waiting === 0 ? "People" : `People: ${waiting} ${waiting === 1 ? "asks" : "ask"} to be let in`;
    this.button.hidden = false;
    this.button.title = label;
    this.button.setAttribute("aria-label", label);
    this.badge.hidden = waiting === 0;
    this.badge.textContent = waiting;
    byId("people-none").hidden = accounts.length > 0;
    const names = new Set(accounts.map(({ account }) => account));
    for (const [name, entrance] of this.#entrances) {
      if (names.has(name)) continue;
      entrance.section.remove();
      this.#entrances.delete(name);
    }
    for (const state of accounts) this.#entrance(state.account).show(state);
  }

  #entrance(account) {
    const known = this.#entrances.get(account);
    if (known) return known;
    const entrance = new Entrance(account, () => this.look());
    this.#entrances.set(account, entrance);
    this.list.append(entrance.section);
    return entrance;
  }
}

/** One account. Its form stays as it is while the lists in it change, so that nobody's typing is lost. */
class Entrance {
  constructor(account, look) {
    this.account = account;
    this.look = look;
    const id = (part) => `people-${part}-${account}`;
    this.heading = el("h3", { id: id("title"), tabindex: "-1" }, account);
    this.platform = el("span", { class: "quiet" });
    this.asking = el("ul", { class: "people-list", "aria-label": `Who asks to be let in on ${account}` });
    this.guests = el("ul", { class: "people-list", "aria-label": `Who was let in on ${account}` });
    this.code = el("input", {
      id: id("code"), maxlength: "40", autocomplete: "off", autocapitalize: "characters", spellcheck: "false", required: true,
    });
    this.reach = el(
      "select",
      { id: id("reach") },
      ...Object.entries(REACHES).map(([value, words]) => el("option", { value }, words)),
    );
    this.issue = el("button", { class: "button", type: "button", onclick: () => this.#issue() }, "Make a code");
    this.clear = el("button", { class: "link", type: "button", onclick: () => this.#clear() }, "Forget requests and codes");
    const form = el(
      "form",
      { class: "people-form", autocomplete: "off" },
      el("div", { class: "field" }, el("label", { for: this.code.id }, "The code that they show you"), this.code),
      el("div", { class: "field" }, el("label", { for: this.reach.id }, "They are heard"), this.reach),
      el("button", { class: "button primary", type: "submit" }, "Let in"),
      this.issue,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#approve();
    });
    this.told = el("p", { class: "people-told", role: "status", hidden: true });
    this.section = el(
      "section",
      { class: "people-account", "aria-labelledby": this.heading.id },
      el("div", { class: "people-head" }, this.heading, this.platform),
      this.asking, form, this.told, this.guests, this.clear,
    );
  }

  show({ platform, asking, codes, guests, others, locked_until: locked }) {
    const look = JSON.stringify([asking, codes, guests, others, locked, new Date().toDateString()]);
    if (look === this.seen) return;
    this.seen = look;
    this.platform.textContent = platform === this.account ? "" : platform;
    const rows = asking.map((one) =>
      row(one, `asks since ${moment(one.asked)}; the code is good until ${moment(one.expires)}`));
    rows.push(...codes.map(({ by, expires, reach }) =>
      el("li", { class: "quiet" }, `A code of ${by} is out until ${moment(expires)}, heard ${REACHES[reach]}.`)));
    if (asking.length === 0) rows.unshift(el("li", { class: "quiet" }, "Nobody asks to be let in."));
    if (locked) rows.push(el("li", { class: "problem" }, `No code is taken until ${moment(locked)}.`));
    this.asking.replaceChildren(...rows);
    this.clear.hidden = asking.length + codes.length === 0;
    const known = guests.map((guest) => row(guest, `let in ${moment(guest.since)}, heard ${REACHES[guest.reach]}`, this.#revoke(guest)));
    if (others > 0) known.push(el("li", { class: "quiet" }, `And ${others} more: talaria pair list ${this.account}`));
    this.guests.replaceChildren(...known);
  }

  /** What came of it, for whoever looks and whoever listens. */
  tell(text, { problem = false, code } = {}) {
    this.told.hidden = text === "";
    this.told.classList.toggle("problem", problem);
    this.told.replaceChildren(text);
    if (code) this.told.append(" ", copyButton("Copy the code", () => code));
  }

  #revoke({ sender, name }) {
    const revoke = async () => {
      await this.#decide({ verb: "revoke", sender });
      this.heading.focus();
    };
    return el("button", { class: "button small", type: "button", "aria-label": `Revoke ${name ?? sender}`, onclick: revoke }, "Revoke");
  }

  async #approve() {
    const done = await this.#decide({ verb: "approve", code: this.code.value, reach: this.reach.value });
    if (done) this.code.value = "";
    this.code.focus();
    this.code.select();
  }

  #issue() {
    return this.#decide({ verb: "issue", reach: this.reach.value });
  }

  async #clear() {
    await this.#decide({ verb: "clear" });
    this.heading.focus();
  }

  /** Returns whether it was done. One thing at a time: what is repeated might be done twice. */
  async #decide(decision) {
    if (this.isBusy) return false;
    this.isBusy = true;
    try {
      const { told, code } = await api.decide(this.account, decision);
      this.tell(told, { code });
      return true;
    } catch (error) {
      this.tell(sentence(error.message), { problem: true });
      return false;
    } finally {
      this.isBusy = false;
      await this.look();
    }
  }
}

function row({ sender, name }, words, ...controls) {
  const who = el("span", { class: "people-who" }, el("b", {}, name ?? sender), name ? el("code", {}, sender) : null);
  return el("li", {}, el("div", { class: "people-row" }, who, el("span", { class: "quiet" }, words)), ...controls);
}

const moment = (at) => (day(at) === "Today" ? time(at) : `${day(at)}, ${time(at)}`);

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
