// Where a person writes: text that survives a reload, files by button, drop and paste, send and stop.

import { upload } from "./api.js";
import { Commands } from "./commands.js";
import { byId, el, icon, size } from "./dom.js";

const MOST_FILES = 10;
const DRAFT = "talaria.draft.";

export class Composer {
  /** `actions`: `send(text, files)` returns whether it took them, `stop()`. */
  constructor(actions) {
    this.actions = actions;
    this.attachments = [];
    this.largest = Infinity;
    this.busy = false;
    [this.form, this.input, this.list, this.sendButton, this.stopButton, this.picker] =
      ["composer", "input", "attachments", "send", "stop", "file-input"].map(byId);
    this.commands = new Commands(this.input, byId("commands"), (text) => this.write(text));
    this.sendButton.append(icon("up"));
    this.stopButton.append(icon("stop"));
    byId("attach").append(icon("clip"));
    byId("attach").addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      this.add(this.picker.files);
      this.picker.value = "";
    });
    this.stopButton.addEventListener("click", () => actions.stop());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.input.addEventListener("input", () => this.#changed());
    this.input.addEventListener("keydown", (event) => {
      // While an input method composes, keys belong to it.
      if (event.isComposing || event.keyCode === 229 || this.commands.key(event)) return;
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        this.#send();
      }
    });
    this.input.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length > 0) {
        event.preventDefault();
        this.add(event.clipboardData.files);
      }
    });
    this.#acceptDrops();
  }

  /** Brings back what was being written in this conversation. */
  open(conversation) {
    this.conversation = conversation;
    for (const attachment of this.attachments) attachment.cancel?.abort();
    const { text = "", files = [] } = saved(conversation);
    this.#set(text, files.map((file) => ({ file, name: file.name, size: file.size })));
  }

  focus() {
    // On a phone this would open the keyboard over what the person wants to read.
    if (matchMedia("(pointer: fine)").matches) this.input.focus();
  }

  write(text) {
    this.#set(text, this.attachments);
    this.input.focus();
  }

  #set(text, attachments) {
    this.input.value = text;
    this.attachments = attachments;
    this.#changed();
  }

  /** `stopping` while a wish to stop is under way. */
  working(busy, stopping) {
    this.busy = busy;
    this.stopButton.disabled = stopping;
    this.#buttons();
  }

  /** Uploads files to go along with the next message. */
  add(files) {
    for (const file of files) {
      if (this.attachments.length >= MOST_FILES) break;
      const attachment = { name: file.name || "pasted", size: file.size, progress: 0 };
      this.attachments.push(attachment);
      if (file.size > this.largest) attachment.problem = `larger than ${size(this.largest)}`;
      else this.#upload(attachment, file);
    }
    this.#changed();
  }

  async #upload(attachment, file) {
    attachment.cancel = new AbortController();
    attachment.again = undefined;
    attachment.problem = undefined;
    try {
      const onProgress = (part) => {
        attachment.progress = part;
        attachment.bar?.style.setProperty("--progress", part);
      };
      attachment.file = await upload(file, onProgress, attachment.cancel.signal);
    } catch (error) {
      attachment.problem = error.status === 0 ? "not uploaded" : error.message;
      attachment.again = () => this.#upload(attachment, file);
    }
    attachment.cancel = undefined;
    this.#changed();
  }

  #remove(attachment) {
    attachment.cancel?.abort();
    this.attachments = this.attachments.filter((one) => one !== attachment);
    this.#changed();
    this.input.focus();
  }

  #send() {
    if (!this.#ready()) return;
    const [text, attachments] = [this.input.value, this.attachments];
    this.#set("", []);
    const files = attachments.map(({ file }) => file);
    if (!this.actions.send(text, files)) this.#set(text, attachments);
  }

  #ready() {
    const words = this.input.value.trim() !== "";
    const whole = this.attachments.every(({ file }) => file);
    return whole && (words || this.attachments.length > 0);
  }

  #changed() {
    // Browsers without `field-sizing` need to be told the height.
    if (!CSS.supports("field-sizing", "content")) {
      this.input.style.height = "auto";
      this.input.style.height = `${this.input.scrollHeight}px`;
    }
    this.commands.look();
    this.list.hidden = this.attachments.length === 0;
    this.list.replaceChildren(...this.attachments.map((one) => this.#attachment(one)));
    this.#buttons();
    if (this.conversation) {
      save(this.conversation, this.input.value, this.attachments.flatMap(({ file }) => file ?? []));
    }
  }

  #buttons() {
    const ready = this.#ready();
    this.sendButton.disabled = !ready;
    this.sendButton.hidden = this.busy && !ready;
    this.stopButton.hidden = !this.busy;
  }

  #attachment(attachment) {
    const { name, file, problem, progress, again } = attachment;
    const note = problem ?? (file ? size(attachment.size) : "uploading");
    const remove = el("button", { class: "icon-button small", type: "button", "aria-label": `Remove ${name}` });
    remove.append(icon("close"));
    remove.addEventListener("click", () => this.#remove(attachment));
    const bar = el("span", { class: "progress" });
    bar.style.setProperty("--progress", progress ?? 0);
    attachment.bar = bar;
    return el(
      "li",
      { class: problem ? "attachment failed" : "attachment" },
      icon(problem ? "alert" : "file"),
      el("span", { class: "file-name" }, name),
      el("span", { class: "quiet" }, note),
      again ? el("button", { class: "link", type: "button", onclick: again }, "Try again") : null,
      remove,
      file || problem ? null : bar,
    );
  }

  #acceptDrops() {
    const [area, sign] = [byId("main"), byId("drop")];
    let depth = 0;
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    const inside = (change) => {
      depth = Math.max(0, depth + change);
      sign.hidden = depth === 0;
    };
    area.addEventListener("dragenter", (event) => carriesFiles(event) && inside(1));
    area.addEventListener("dragleave", (event) => carriesFiles(event) && inside(-1));
    area.addEventListener("dragover", (event) => carriesFiles(event) && event.preventDefault());
    area.addEventListener("drop", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      inside(-depth);
      this.add(event.dataTransfer.files);
      this.input.focus();
    });
  }
}

function saved(conversation) {
  try {
    return JSON.parse(localStorage.getItem(DRAFT + conversation)) ?? {};
  } catch {
    return {};
  }
}

function save(conversation, text, files) {
  try {
    if (text === "" && files.length === 0) localStorage.removeItem(DRAFT + conversation);
    else localStorage.setItem(DRAFT + conversation, JSON.stringify({ text, files }));
  } catch {
    // A full or forbidden storage costs only the survival of a reload.
  }
}
