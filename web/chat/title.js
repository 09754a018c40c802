// The title of the conversation, and the way to give it another.

import { byId, icon } from "./dom.js";

export class Title {
  /** `actions`: `rename(text)`. */
  constructor(actions) {
    [this.title, this.button, this.form, this.input] = ["title", "rename", "title-form", "title-input"].map(byId);
    this.button.append(icon("pen"));
    this.button.addEventListener("click", () => this.#edit());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.input.value.trim();
      if (text !== "" && text !== this.name) actions.rename(text);
      this.leave();
      this.button.focus();
    });
    this.input.addEventListener("blur", () => this.leave());
  }

  /** Shows the title of a conversation, or that there is none yet. */
  show(conversation) {
    // Whoever goes elsewhere does not rename what they left.
    if (this.id !== conversation?.id) this.leave();
    this.id = conversation?.id;
    this.name = conversation?.title ?? "";
    const text = this.name || "New conversation";
    this.title.textContent = text;
    this.button.hidden = !conversation || !this.form.hidden;
    document.title = conversation ? `${text} · Talaria` : "Talaria";
  }

  /** Leaves the title as it is. Returns whether it was being changed. */
  leave() {
    if (this.form.hidden) return false;
    this.form.hidden = true;
    this.title.hidden = this.button.hidden = false;
    return true;
  }

  #edit() {
    this.input.value = this.name;
    this.title.hidden = this.button.hidden = true;
    this.form.hidden = false;
    this.input.focus();
    this.input.select();
  }
}
