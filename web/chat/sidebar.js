// The list of conversations and the search. A drawer on narrow screens.

import * as api from "./api.js";
import { byId, daysAgo, el, icon } from "./dom.js";

const SEARCH_PAUSE = 180;
/** Characters shown before what was found. */
const LEAD = 32;

export class Sidebar {
  /** `actions`: `open(conversation, position, words)`, `begin()`. */
  constructor(actions) {
    this.actions = actions;
    [this.bar, this.scrim, this.list, this.hits, this.search] =
      ["sidebar", "scrim", "conversations", "hits", "search"].map(byId);
    byId("new").prepend(icon("plus"));
    byId("new-narrow").append(icon("plus"));
    byId("open-sidebar").append(icon("menu"));
    byId("close-sidebar").append(icon("close"));
    for (const id of ["new", "new-narrow"]) {
      byId(id).addEventListener("click", () => {
        this.close();
        actions.begin();
      });
    }
    byId("open-sidebar").addEventListener("click", () => this.open());
    byId("close-sidebar").addEventListener("click", () => this.close());
    this.scrim.addEventListener("click", () => this.close());
    this.#swipe();
    this.search.addEventListener("input", () => this.#search());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.#rows()[0]?.focus();
    });
    this.bar.addEventListener("keydown", (event) => this.#walk(event));
    if (/Mac|iPhone|iPad/.test(navigator.userAgent)) byId("search-key").textContent = "⌘K";
  }

  get isOpen() {
    return this.bar.classList.contains("open");
  }

  open() {
    this.bar.classList.add("open");
    this.scrim.hidden = false;
    byId("main").inert = true;
    byId("close-sidebar").focus();
  }

  close() {
    if (!this.isOpen) return;
    this.bar.classList.remove("open");
    this.scrim.hidden = true;
    byId("main").inert = false;
    byId("open-sidebar").focus();
  }

  find() {
    if (matchMedia("(max-width: 820px)").matches) this.open();
    this.search.focus();
    this.search.select();
  }

  /** Leaves the search. Returns whether there was one. */
  endSearch() {
    if (this.search.value === "") return false;
    this.search.value = "";
    this.#search();
    return true;
  }

  /** `conversations` with `unread`, the newest first. */
  show(conversations, current) {
    const look = JSON.stringify([conversations, current, new Date().toDateString()]);
    if (look === this.look) return;
    this.look = look;
    const focused = document.activeElement?.dataset.conversation;
    const groups = [];
    for (const conversation of conversations) {
      const label = age(conversation.updated);
      if (groups.at(-1)?.label !== label) groups.push({ label, rows: [] });
      groups.at(-1).rows.push(this.#row(conversation, current));
    }
    const section = ({ label, rows }) => {
      const items = rows.map((row) => el("li", {}, row));
      return el("section", { "aria-label": label }, el("h2", {}, label), el("ul", {}, ...items));
    };
    const none = el("p", { class: "nothing" }, "Your conversations will appear here.");
    this.list.replaceChildren(...(groups.length > 0 ? groups.map(section) : [none]));
    if (focused) this.list.querySelector(`[data-conversation="${CSS.escape(focused)}"]`)?.focus();
  }

  #row({ id, title, busy, unread }, current) {
    const state = busy ? "working" : unread ? "unread" : "";
    return el(
      "a",
      {
        class: state ? `row is-${state}` : "row",
        href: `#/${id}`,
        "data-conversation": id,
        "aria-current": id === current ? "page" : undefined,
        title,
        onclick: () => this.close(),
      },
      el("span", { class: "row-title" }, title || "Untitled"),
      state ? el("span", { class: "dot" }, el("span", { class: "visually-hidden" }, state)) : null,
    );
  }

  #search() {
    clearTimeout(this.pending);
    const query = this.search.value.trim();
    byId("search-key").hidden = query !== "";
    if (query === "") {
      this.query = undefined;
      this.hits.hidden = true;
      this.list.hidden = false;
      return;
    }
    this.pending = setTimeout(() => this.#ask(query), SEARCH_PAUSE);
  }

  async #ask(query) {
    this.query = query;
    let rows;
    try {
      const found = await api.search(query);
      rows = found.map((hit) => el("li", {}, this.#hit(hit)));
      if (rows.length === 0) rows = [el("li", { class: "nothing" }, "Nothing found.")];
    } catch (error) {
      rows = [el("li", { class: "nothing" }, error.message)];
    }
    // A slow answer to an earlier question must not replace a later one.
    if (this.query !== query) return;
    this.hits.replaceChildren(el("h2", {}, "Found"), el("ul", {}, ...rows));
    this.hits.hidden = false;
    this.list.hidden = true;
  }

  #hit({ conversation, title, position, excerpt }) {
    const text = excerpt.map(({ match, around }, index) =>
      match === undefined ? plain(index === 0 ? ending(around) : around) : el("mark", {}, match));
    return el(
      "button",
      {
        class: "row hit",
        type: "button",
        onclick: () => {
          this.close();
          this.actions.open(conversation, position, excerpt.find((part) => part.match)?.match);
        },
      },
      el("span", { class: "row-title" }, title || "Untitled"),
      el("span", { class: "excerpt" }, ...text),
    );
  }

  #rows() {
    return [...this.bar.querySelectorAll(".conversations:not([hidden]) .row")];
  }

  #walk(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const rows = this.#rows();
    const index = rows.indexOf(document.activeElement);
    if (index < 0) return;
    event.preventDefault();
    const next = event.key === "ArrowDown" ? rows[index + 1] : rows[index - 1] ?? this.search;
    next?.focus();
  }

  /** The drawer follows a thumb that pushes it away. */
  #swipe() {
    let from;
    this.bar.addEventListener("touchstart", (event) => (from = event.touches[0]), { passive: true });
    this.bar.addEventListener(
      "touchend",
      (event) => {
        const to = event.changedTouches[0];
        if (from && from.clientX - to.clientX > 60 && Math.abs(from.clientY - to.clientY) < 60) this.close();
      },
      { passive: true },
    );
  }
}

/** The last few words, so that the match that follows is in view. */
function ending(text) {
  if (text.length <= LEAD) return text;
  return `…${text.slice(-LEAD).replace(/^\S*\s/, "")}`;
}

/** Without the marks that would only be read as noise in an excerpt. */
const plain = (text) => text.replaceAll(/\*\*|`|^#+ /g, "");

function age(updated) {
  const ago = daysAgo(updated);
  if (ago <= 0) return "Today";
  if (ago === 1) return "Yesterday";
  if (ago <= 7) return "Last 7 days";
  return ago <= 30 ? "Last 30 days" : "Older";
}
