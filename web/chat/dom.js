// Makes elements. The only file that turns HTML text into nodes, and it takes only what the gateway rendered.

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h10",
  close: "M6 6l12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  stop: "M8 8h8v8H8z",
  clip: "M20 11.500 12.300 19a5 5 0 0 1-7-7l8-7.800a3.300 3.300 0 0 1 4.700 4.700l-7.900 7.700a1.700 1.700 0 0 1-2.400-2.400L15 7",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  check: "M5 12.500 10 17.500 19.500 7",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.500v2M12 19.500v2M2.500 12h2M19.500 12h2M5.300 5.300l1.400 1.400M17.300 17.300l1.400 1.400M18.700 5.300l-1.400 1.400M6.700 17.300l-1.400 1.400",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  leave: "M14 4H6v16h8M10 12h10M16.500 8.500 20 12l-3.500 3.500",
  people: "M9 11.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM2.500 19.500a6.500 6.500 0 0 1 13 0M16 4.800a3.500 3.500 0 0 1 0 6.400M18 14a6.500 6.500 0 0 1 3.500 5.500",
  pen: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  file: "M7 3h7l4 4v14H7zM14 3v4h4",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  tool: "M20 7.500a4.500 4.500 0 0 1-6 4.200L7.500 18.300a1.700 1.700 0 0 1-2.400-2.400L11.700 9.300A4.500 4.500 0 0 1 16.500 3.500L14 6l.8 2.700 2.700.8z",
  again: "M19 12a7 7 0 1 1-2-4.900M19 4v4h-4",
  alert: "M12 8v5M12 16.500v.1M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** An element with properties, listeners (`onclick`), classes, data and children. Text stays text. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

const shown = new WeakMap();

/**
 * Shows HTML that the gateway rendered. Only the blocks that differ from what is shown are replaced,
 * so that a growing answer neither flickers nor loses a selection.
 */
export function showRendered(container, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const blocks = [...template.content.childNodes].filter(
    (node) => node.nodeType === Node.ELEMENT_NODE || node.textContent.trim() !== "",
  );
  const before = shown.get(container) ?? [];
  const after = blocks.map((node) => node.outerHTML ?? node.textContent);
  blocks.forEach((node, index) => {
    if (before[index] === after[index]) return;
    const dressed = dress(node);
    const current = container.childNodes[index];
    if (current) current.replaceWith(dressed);
    else container.append(dressed);
  });
  while (container.childNodes.length > blocks.length) container.lastChild.remove();
  shown.set(container, after);
}

/** Adds what is not content: copy buttons, and a way to scroll wide things by keyboard. */
function dress(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node;
  const holder = el("div", {}, node);
  for (const table of holder.querySelectorAll(".table")) {
    table.tabIndex = 0;
    table.setAttribute("role", "region");
    table.setAttribute("aria-label", "Table");
  }
  for (const pre of holder.querySelectorAll("pre")) {
    const code = pre.querySelector("code") ?? pre;
    const language = [...code.classList].find((name) => name.startsWith("language-"));
    const label = el("span", { class: "code-language" }, language ? language.slice(9) : "");
    const copy = copyButton("Copy", () => code.textContent);
    const box = el("div", { class: "code" }, el("div", { class: "code-head" }, label, copy));
    pre.tabIndex = 0;
    pre.replaceWith(box);
    box.append(pre);
  }
  return holder.firstChild;
}

export function copyButton(label, text) {
  const word = el("span", {}, label);
  const button = el("button", { class: "copy", type: "button", "aria-label": label });
  button.append(icon("copy"), word);
  button.addEventListener("click", async () => {
    const copied = await copyText(text());
    word.textContent = copied ? "Copied" : "Not copied";
    button.firstChild.replaceWith(icon(copied ? "check" : "alert"));
    setTimeout(() => {
      word.textContent = label;
      button.firstChild.replaceWith(icon("copy"));
    }, 1600);
  });
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The clipboard interface exists only on loopback and HTTPS.
    const field = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}

/** A random id. `crypto.randomUUID` exists only on loopback and HTTPS; this works everywhere. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB"];
  let value = bytes;
  let unit = -1;
  do {
    value /= 1000;
    unit += 1;
  } while (value >= 999.5 && unit < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });

export const time = (at) => clock.format(at);

export function daysAgo(at, now = Date.now()) {
  const day = (moment) => new Date(moment).setHours(0, 0, 0, 0);
  return Math.round((day(now) - day(at)) / 86_400_000);
}

export function day(at) {
  const ago = daysAgo(at);
  if (ago <= 0) return "Today";
  if (ago === 1) return "Yesterday";
  return ago < 200 ? date.format(at) : dated.format(at);
}
