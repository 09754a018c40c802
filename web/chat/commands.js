// Offers the gateway's commands while the name of one is being typed.

import { el } from "./dom.js";

/** The name that is being typed, or undefined: a command begins with a slash, and nothing follows it yet. */
export const begun = (text) => /^\/([a-z][\w-]*)?$/i.exec(text)?.[0].slice(1).toLowerCase();

/** The commands that a beginning may become. None once the whole name is there: it needs no more help. */
export function offered(commands, text) {
  const name = begun(text);
  if (name === undefined) return [];
  const fitting = commands.filter((command) => command.name.startsWith(name));
  return fitting.some((command) => command.name === name) && fitting.length === 1 ? [] : fitting;
}

export class Commands {
  /** `take(text)` puts a text in place of what is written. */
  constructor(input, list, take) {
    [this.input, this.list, this.take] = [input, list, take];
    this.all = [];
    this.shown = [];
    this.chosen = 0;
    input.addEventListener("blur", () => this.#show([]));
    input.addEventListener("focus", () => this.look());
    // A press would take the focus away, and the list with it.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#complete(this.shown[[...list.children].indexOf(option)]);
    });
  }

  /** Looks at what is written. */
  look() {
    const { value } = this.input;
    // What was sent away stays away until another command is begun.
    if (begun(value) === undefined) this.dismissed = false;
    const isTyping = document.activeElement === this.input && !this.dismissed;
    this.#show(isTyping ? offered(this.all, value) : []);
  }

  /** Whether a key was for the list and for nobody else. */
  key(event) {
    if (this.shown.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return false;
    switch (event.key) {
      case "ArrowDown":
        this.#choose(this.chosen + 1);
        break;
      case "ArrowUp":
        this.#choose(this.chosen - 1);
        break;
      case "Enter":
        // A whole name is sent as it is, also where it is the beginning of another one.
        if (event.shiftKey || this.shown.some(({ name }) => name === begun(this.input.value))) return false;
        this.#complete(this.shown[this.chosen]);
        break;
      case "Tab":
        if (event.shiftKey) return false;
        this.#complete(this.shown[this.chosen]);
        break;
      case "Escape":
        this.dismissed = true;
        this.#show([]);
        break;
      default:
        return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  #complete(command) {
    this.take(`/${command.name} `);
  }

  #choose(index) {
    this.chosen = (index + this.shown.length) % this.shown.length;
    [...this.list.children].forEach((option, place) => {
      const isChosen = place === this.chosen;
      option.setAttribute("aria-selected", isChosen);
      if (isChosen) option.scrollIntoView({ block: "nearest" });
    });
    this.input.setAttribute("aria-activedescendant", `command-${this.chosen}`);
  }

  #show(commands) {
    this.shown = commands;
    this.list.hidden = commands.length === 0;
    this.list.replaceChildren(...commands.map(option));
    if (commands.length > 0) this.#choose(0);
    else this.input.removeAttribute("aria-activedescendant");
  }
}

function option({ name, arguments: words, help }, place) {
  return el(
    "li",
    { id: `command-${place}`, class: "command", role: "option" },
    el("b", {}, `/${name}`),
    words ? el("span", { class: "command-words" }, words) : null,
    el("span", { class: "quiet" }, help),
  );
}
