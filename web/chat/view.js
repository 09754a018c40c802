// Shows a transcript. Elements are kept by key and changed only where something differs.

import { fileAddress } from "./api.js";
import { byId, copyButton, day, el, icon, showRendered, size, time } from "./dom.js";

/** Closer to the end than this, the view follows what is new. */
const NEAR_END = 60;

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export class View {
  /** `actions`: `retry(id)`, `discard(id)`, `choose(item, choice)`, `older()`. */
  constructor(actions) {
    this.actions = actions;
    this.elements = new Map();
    [this.scroll, this.log, this.olderMark, this.latest] = ["scroll", "log", "older", "latest"].map(byId);
    this.following = true;
    this.top = 0;
    this.height = 0;
    this.latest.append(icon("down"));
    this.latest.addEventListener("click", () => this.toEnd("smooth"));
    this.scroll.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // On a slow machine the answer may grow, and the page follow it, before a scroll is noticed.
    this.scroll.addEventListener("wheel", (event) => event.deltaY < 0 && this.#leaveEnd(), { passive: true });
    new ResizeObserver(() => this.following && this.toEnd()).observe(this.scroll);
    new ResizeObserver(() => this.following && this.toEnd()).observe(this.log);
    new IntersectionObserver(
      (marks) => marks.some((mark) => mark.isIntersecting) && actions.older(),
      { root: this.scroll, rootMargin: "400px 0px 0px" },
    ).observe(this.olderMark);
  }

  /** Another conversation is shown from here on. */
  clear() {
    this.elements.clear();
    this.log.replaceChildren();
    this.following = true;
  }

  /** Shows the items. Whoever reads further up stays where they read. */
  show(items, { more }) {
    const fromEnd = this.scroll.scrollHeight - this.scroll.scrollTop;
    const first = this.log.firstElementChild;
    this.olderMark.hidden = !more;
    const wanted = [];
    let shownDay;
    for (const item of items) {
      const today = item.at === undefined ? shownDay : day(item.at);
      if (today !== shownDay) {
        wanted.push(this.#element({ kind: "day", key: `day:${today}`, text: today }));
        shownDay = today;
      }
      wanted.push(this.#element(item));
    }
    const kept = new Set(wanted);
    for (const [key, element] of this.elements) {
      if (!kept.has(element)) {
        element.remove();
        this.elements.delete(key);
      }
    }
    wanted.forEach((element, index) => {
      const there = this.log.children[index];
      if (there !== element) this.log.insertBefore(element, there ?? null);
    });
    if (this.following) this.toEnd();
    else if (first && this.log.firstElementChild !== first) {
      this.scroll.scrollTop = this.scroll.scrollHeight - fromEnd;
    }
    this.#scrolled();
  }

  toEnd(behavior = "instant") {
    this.following = true;
    this.scroll.scrollTo({ top: this.scroll.scrollHeight, behavior });
  }

  /** Shows the words that were searched for in an entry, or else the entry. */
  reveal(position, words) {
    const element = [...this.elements.values()].find((one) => one.dataset.position === String(position));
    if (!element) return;
    this.following = false;
    const place = blockWith(element, words) ?? element;
    place.scrollIntoView({ block: "center" });
    place.classList.add("found");
    setTimeout(() => place.classList.remove("found"), 2400);
  }

  #leaveEnd() {
    if (this.scroll.scrollTop > 0) this.following = false;
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroll;
    const left = scrollHeight - scrollTop - clientHeight;
    // Only a person moves up on a page that keeps its size; all else just moves the end away.
    if (left > 1 && scrollTop < this.top && clientHeight === this.height) this.following = false;
    else if (left < NEAR_END && scrollTop > this.top) this.following = true;
    this.top = scrollTop;
    this.height = clientHeight;
    this.latest.hidden = left < clientHeight / 2;
  }

  #element(item) {
    let element = this.elements.get(item.key);
    if (!element) {
      element = MAKE[item.kind === "draft" ? "posted" : item.kind](item);
      this.elements.set(item.key, element);
    }
    if (item.position !== undefined) element.dataset.position = item.position;
    CHANGE[item.kind]?.(element, item, this.actions);
    return element;
  }
}

const MAKE = {
  day: ({ text }) => el("li", { class: "day", role: "separator" }, el("span", {}, text)),

  summarised: () =>
    el("li", { class: "day", role: "separator" }, el("span", {}, "Summarised for the agent up to here")),

  said({ text, files = [] }) {
    const bubble = text.trim() ? el("div", { class: "bubble", dir: "auto" }, text) : null;
    const speaker = el("h3", { class: "visually-hidden" }, "You");
    return el("li", { class: "said" }, speaker, fileList(files), bubble, el("div", { class: "fate" }));
  },

  posted: () =>
    el(
      "li",
      { class: "spoken" },
      el("h3", { class: "visually-hidden" }, "Talaria"),
      el("div", { class: "prose", dir: "auto" }),
      el("div", { class: "extras" }),
      el("div", { class: "tools" }),
      el("div", { class: "margin" }),
    ),
};

const CHANGE = {
  said(element, item, actions) {
    const state = item.state ?? "recorded";
    once(element, JSON.stringify([state, item.text]), () => {
      element.dataset.state = state;
      element.querySelector(".fate").replaceChildren(...fate(item, actions));
      // A command that stands before the words is not recorded with them.
      const bubble = element.querySelector(".bubble");
      if (bubble) bubble.textContent = item.text;
    });
  },

  draft(element, item) {
    element.classList.add("growing");
    element.setAttribute("aria-busy", "true");
    element.hidden = item.html.trim() === "";
    showRendered(element.querySelector(".prose"), item.html);
  },

  posted(element, item, actions) {
    element.hidden = false;
    element.classList.remove("growing");
    element.removeAttribute("aria-busy");
    const { html, text, files = [], choices = [], calls = [], question, chosen, at } = item;
    const looks = JSON.stringify([html, files, choices, question, chosen, calls]);
    once(element, looks, () => {
      const parts = [".prose", ".extras", ".tools", ".margin"].map((part) => element.querySelector(part));
      const [prose, extras, tools, margin] = parts;
      showRendered(prose, html);
      prose.hidden = html.trim() === "";
      extras.replaceChildren(...[fileList(files), choiceList(item, actions)].filter(Boolean));
      tools.replaceChildren(...calls.map(tool));
      margin.replaceChildren(...(text.trim() ? [copyButton("Copy", () => text), el("time", {}, time(at))] : []));
    });
  },
};

/** The innermost element that shows these words. */
function blockWith(element, words) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (words && walker.nextNode()) {
    const { textContent, parentElement } = walker.currentNode;
    if (textContent.toLowerCase().includes(words.toLowerCase())) return parentElement;
  }
  return undefined;
}

const looks = new WeakMap();

/** Runs only when the look of an element changes. */
function once(element, look, change) {
  if (looks.get(element) === look) return;
  looks.set(element, look);
  change(look);
}

/** What became of a message, in words. */
function fate({ state, id, at, problem }, actions) {
  const act = (name, label) =>
    el("button", { class: "link", type: "button", onclick: () => actions[name](id) }, label);
  switch (state) {
    case "queued":
    case "sending":
      return [el("span", { class: "sending" }, "Sending…")];
    case "failed":
      return [
        icon("alert"),
        el("span", {}, `Not sent: ${problem ?? "it was refused"}.`),
        act("retry", "Try again"),
        act("discard", "Discard"),
      ];
    default:
      return [el("time", {}, time(at)), icon("check"), el("span", { class: "visually-hidden" }, "sent")];
  }
}

function fileList(files) {
  if (files.length === 0) return null;
  return el("ul", { class: "files" }, ...files.map((file) => el("li", {}, fileLink(file))));
}

function fileLink(file) {
  const href = fileAddress(file);
  if (PICTURES.includes(file.mime)) {
    const picture = el("img", { src: href, alt: file.name, loading: "lazy", decoding: "async" });
    const link = el("a", { class: "picture", href, target: "_blank", rel: "noopener", title: file.name }, picture);
    // What calls itself a picture and cannot be shown is a file like any other.
    picture.addEventListener("error", () => link.replaceWith(fileLink({ ...file, mime: "" })));
    return link;
  }
  return el(
    "a",
    { class: "file", href, download: file.name },
    icon("file"),
    el("span", { class: "file-name" }, file.name),
    el("span", { class: "quiet" }, size(file.size)),
    icon("download"),
  );
}

function choiceList(item, actions) {
  const { choices = [], question, chosen } = item;
  if (choices.length === 0) return null;
  const open = question === "open";
  const buttons = choices.map((choice, index) => {
    const picked = choice.id === chosen;
    return el(
      "button",
      {
        class: picked ? "choice chosen" : "choice",
        type: "button",
        disabled: !open,
        "aria-pressed": picked ? "true" : undefined,
        onclick: () => actions.choose(item, choice),
      },
      picked ? icon("check") : el("kbd", { "aria-hidden": "true" }, String(index + 1)),
      choice.label,
    );
  });
  return el("div", { class: "choices", role: "group", "aria-label": "Answers to choose from" }, ...buttons);
}

/** A tool that was used, as one line that opens. */
function tool({ tool: name, arguments: given, result }) {
  const failed = result?.failed;
  const said = failed ? "tried" : result ? "used" : "uses";
  const part = (label, text) => [el("dt", {}, label), el("dd", {}, el("pre", { tabindex: "0" }, text))];
  return el(
    "details",
    { class: failed ? "tool failed" : "tool" },
    el("summary", {}, icon("tool"), el("span", {}, `${said} `, el("b", {}, name))),
    el("dl", {}, ...part("Asked", given), ...(result ? part(failed ? "Went wrong" : "Returned", result.output) : [])),
  );
}
