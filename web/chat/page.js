// What does not change with conversations: examples, colours, keys, logging out.

import { byId, el, icon } from "./dom.js";

const EXAMPLES = [
  ["Say hello", "Hello! What can you do?"],
  ["See it write", "Explain how a message reaches you, in a long answer with a table and some code."],
  ["Be asked", "Ask me something and let me choose the answer."],
  ["Watch a tool", "Search our earlier conversations."],
];

const THEMES = { system: ["system", "System colours"], light: ["sun", "Light"], dark: ["moon", "Dark"] };

/** `actions`: `write(text)`, `find()`, `escape()`, `logout()`. */
export function dress(actions) {
  for (const [title, prompt] of EXAMPLES) {
    const example = el("button", { class: "example", type: "button" }, el("b", {}, title), el("span", {}, prompt));
    example.addEventListener("click", () => actions.write(prompt));
    byId("examples").append(example);
  }
  dressLogout(actions);
  byId("theme").addEventListener("click", nextTheme);
  showTheme();
  addEventListener("keydown", (event) => keys(event, actions));
  // Where the keyboard covers the page instead of shrinking it, the page shrinks itself.
  visualViewport?.addEventListener("resize", () => {
    const { height, scale } = visualViewport;
    if (scale === 1) document.documentElement.style.setProperty("--height", `${height}px`);
  });
}

function dressLogout(actions) {
  const [button, dialog] = [byId("logout"), byId("logout-dialog")];
  button.append(icon("leave"));
  button.addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "logout") actions.logout();
    dialog.returnValue = "";
  });
}

function keys(event, actions) {
  const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
  const held = event.ctrlKey || event.metaKey;
  if (held && event.key.toLowerCase() === "k") {
    event.preventDefault();
    actions.find();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    actions.escape();
  } else if (/^[1-9]$/.test(event.key) && !writing && !held && !event.altKey) {
    const choice = [...document.querySelectorAll(".choice:enabled")][Number(event.key) - 1];
    if (!choice) return;
    // The focus moves to the text field, and the digit must not follow it there.
    event.preventDefault();
    choice.click();
  }
}

function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

function nextTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(theme()) + 1) % names.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("talaria.theme", next);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  showTheme();
}

function showTheme() {
  const [name, label] = THEMES[theme()];
  const button = byId("theme");
  button.replaceChildren(icon(name));
  button.setAttribute("aria-label", `Colours: ${label}`);
  button.title = `Colours: ${label}`;
}
