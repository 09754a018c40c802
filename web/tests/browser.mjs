// The web chat in a real browser, against a running gateway that answers with the demo model.
//
//   TALARIA_WEB_URL          a login link, as `talaria open` prints it: http://127.0.0.1:PORT/#login=TOKEN
//   TALARIA_RESTART_COMMAND  kills the gateway with SIGKILL and starts it again on the same home and port
//   TALARIA_BRIDGE_PORT      where the account `bridge` (loopback) expects the program behind it
//   TALARIA_SCREENSHOTS      a folder for screenshots
//   CHROMIUM                 the browser, unless it is on the PATH

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Bridge } from "./bridge.mjs";
import { launch } from "./chromium.mjs";

const LOGIN = process.env.TALARIA_WEB_URL;
const RESTART = process.env.TALARIA_RESTART_COMMAND;
const SCREENSHOTS = process.env.TALARIA_SCREENSHOTS;
const bridge = new Bridge(Number(process.env.TALARIA_BRIDGE_PORT));
assert.ok(LOGIN, "TALARIA_WEB_URL is not set");
const ORIGIN = new URL(LOGIN).origin;
const HOSTILE = readFileSync(new URL("hostile.txt", import.meta.url), "utf8").trim().split("\n");

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let browser;
let context;
let page;
/** Everything that must not happen on any page, whatever the test is about. */
const alarms = [];

before(async () => {
  if (SCREENSHOTS) mkdirSync(SCREENSHOTS, { recursive: true });
  await bridge.open();
  browser = await launch();
  context = await browser.newContext({ viewport: DESKTOP, colorScheme: "light", locale: "en-GB" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: ORIGIN });
  page = await watched(context);
});

after(async () => {
  await browser?.close();
  bridge.close();
});

async function watched(where) {
  const watchedPage = await where.newPage();
  watchedPage.setDefaultTimeout(20_000);
  watchedPage.on("pageerror", (error) => alarms.push(`error: ${error.message}`));
  watchedPage.on("dialog", (dialog) => {
    alarms.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  watchedPage.on("console", (line) => {
    if (/content security policy/i.test(line.text())) alarms.push(line.text());
  });
  watchedPage.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(ORIGIN) && !/^(data|blob):/.test(url)) alarms.push(`request: ${url}`);
  });
  return watchedPage;
}

/** Each test ends without an alarm. */
function check(name, body) {
  test(name, { timeout: 120_000 }, async () => {
    await body();
    assert.deepEqual(alarms.splice(0), []);
  });
}

const shot = (name, of = page) =>
  SCREENSHOTS && of.screenshot({ path: join(SCREENSHOTS, `${name}.png`), animations: "disabled" });

async function say(text, on = page) {
  await on.locator("#input").fill(text);
  await on.locator("#input").press("Enter");
}

const idle = (on = page) => on.locator("#stop").waitFor({ state: "hidden", timeout: 40_000 });

/** Says something and waits for the whole answer. */
async function ask(text, on = page) {
  const answers = await on.locator(".spoken:not(.growing)").count();
  await say(text, on);
  await on.locator(".spoken:not(.growing)").nth(answers).waitFor({ timeout: 40_000 });
  await idle(on);
}

const fromEnd = (on = page) =>
  on.locator("#scroll").evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight);

/** Every message on the page has its entry. */
const recorded = () =>
  page.waitForFunction(() => !document.querySelector('.said:not([data-state="recorded"])'), null, { timeout: 40_000 });

const begin = async () => {
  await page.locator("#new").click();
  await page.locator("#welcome").waitFor();
};

/** What a person reads in the conversation, in order, without times. */
const reading = (on = page) =>
  on.locator(".said .bubble, .spoken .prose").evaluateAll((parts) =>
    parts.filter((part) => part.offsetParent).map((part) => part.innerText.trim()));

check("a stranger is told how to log in, and a wrong token is refused", async () => {
  const strangers = await browser.newContext({ viewport: DESKTOP, colorScheme: "light" });
  const stranger = await watched(strangers);
  await stranger.goto(ORIGIN);
  await stranger.getByRole("heading", { name: "Log in to Talaria" }).waitFor();
  assert.match(await stranger.locator("#login").innerText(), /talaria open/);
  assert.equal(await stranger.locator("#app").isVisible(), false);
  await stranger.locator("#login-token").fill("not-a-token");
  await stranger.getByRole("button", { name: "Log in" }).click();
  await stranger.getByRole("alert").filter({ hasText: "expired" }).waitFor();
  await shot("login", stranger);
  await strangers.close();
});

check("the link logs in once, and leaves no token behind", async () => {
  await page.goto(LOGIN);
  await page.locator("#welcome").waitFor();
  assert.equal(new URL(page.url()).hash.includes("login"), false);
  const [cookie] = await context.cookies(ORIGIN);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
  const others = await browser.newContext();
  const other = await watched(others);
  await other.goto(LOGIN);
  await other.getByRole("alert").filter({ hasText: "used already" }).waitFor();
  await others.close();
  await page.reload();
  await page.locator("#welcome").waitFor();
});

check("an empty page invites, and an example can be taken up", async () => {
  await shot("welcome");
  await page.locator(".example").first().click();
  assert.notEqual(await page.locator("#input").inputValue(), "");
  assert.equal(await page.locator("#send").isEnabled(), true);
  await page.reload();
  assert.notEqual(await page.locator("#input").inputValue(), "", "unsent text survives a reload");
  await page.locator("#input").fill("");
});

check("an answer appears while it is written, with code and tables", async () => {
  await say("Please give me a long answer");
  const growing = page.locator(".spoken.growing .prose");
  await growing.waitFor();
  const lengths = [];
  for (let look = 0; look < 5; look += 1) {
    lengths.push((await growing.innerText()).length);
    await page.waitForTimeout(400);
  }
  assert.deepEqual([...new Set(lengths)].sort((a, b) => a - b), lengths, `it grows: ${lengths}`);
  assert.equal(await page.locator("#stop").isVisible(), true);
  await shot("streaming");
  assert.ok((await fromEnd()) < 2, "the page follows the answer");
  await page.locator("#scroll").hover();
  await page.mouse.wheel(0, -30);
  await page.waitForFunction(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.getElementById("scroll");
    return scrollHeight - scrollTop - clientHeight > 60;
  });
  await idle();
  const answer = page.locator(".spoken").last();
  assert.equal(await answer.getAttribute("aria-busy"), null);
  assert.ok((await answer.locator("table tbody tr").count()) >= 2);
  assert.ok((await answer.locator("pre code").count()) >= 1);
  assert.equal(await answer.locator("h2").count() > 0, true);
  await answer.locator("table").first().scrollIntoViewIfNeeded();
  await shot("table");
  const code = answer.locator(".code").first();
  await code.scrollIntoViewIfNeeded();
  await code.getByRole("button", { name: "Copy" }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, await code.locator("code").evaluate((element) => element.textContent));
  await shot("code");
  await page.locator("#scroll").evaluate((element) => (element.scrollTop = 0));
  await page.locator("#latest").click();
  await page.locator("#latest").waitFor({ state: "hidden" });
});

check("a command is found by its beginning, with the keyboard alone", async () => {
  await begin();
  const [input, list] = [page.locator("#input"), page.locator("#commands")];
  const chosen = page.locator('.command[aria-selected="true"] b');
  await input.focus();
  await page.keyboard.type("/");
  await list.waitFor();
  assert.ok((await page.locator(".command").count()) > 20, "every command is offered");
  await shot("commands");
  await page.keyboard.type("st");
  assert.deepEqual(await page.locator(".command b").allInnerTexts(), ["/status", "/steer", "/stop"]);
  assert.equal(await chosen.innerText(), "/status");
  await page.keyboard.press("ArrowUp");
  assert.equal(await chosen.innerText(), "/stop");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await chosen.innerText(), "/steer");
  assert.equal(
    await input.getAttribute("aria-activedescendant"),
    await page.locator('.command[aria-selected="true"]').getAttribute("id"),
  );
  await page.keyboard.press("Enter");
  assert.equal(await input.inputValue(), "/steer ");
  await list.waitFor({ state: "hidden" });
  await input.fill("/wh");
  await page.keyboard.press("Tab");
  assert.equal(await input.inputValue(), "/whoami ");
  await input.fill("/us");
  await page.locator(".command", { hasText: "/usage" }).click();
  assert.equal(await input.inputValue(), "/usage ");
  await input.fill("/new");
  await page.keyboard.press("Escape");
  await list.waitFor({ state: "hidden" });
  await input.fill("/usr/bin");
  assert.equal(await list.isVisible(), false, "a path is no command");
  assert.equal(await page.locator(".said").count(), 0, "nothing was sent on the way");
  await say("/whoami");
  await page.locator(".spoken", { hasText: "You are" }).waitFor();
});

check("a question in a second conversation is answered by a key", async () => {
  await begin();
  await say("Ask me something, with choices");
  const choices = page.locator(".choice");
  await choices.first().waitFor();
  assert.ok((await choices.count()) >= 2);
  await shot("choices");
  await page.locator("#scroll").focus();
  await page.keyboard.press("2");
  await page.locator(".choice.chosen").waitFor();
  assert.equal(await choices.nth(1).getAttribute("aria-pressed"), "true");
  assert.equal(await page.locator(".choice:enabled").count(), 0);
  assert.equal(await page.locator("#input").inputValue(), "", "the digit was the answer, not a message");
  await idle();
  await page.locator(".choices").locator("xpath=ancestor::li/following-sibling::li").first().waitFor();
  await shot("chosen");
  await page.reload();
  await page.locator(".choice.chosen").waitFor();
  assert.equal(await page.locator(".choice.chosen").innerText(), await choices.nth(1).innerText());
  assert.equal(await page.locator(".row").count(), 3, "every conversation is listed");
});

check("a tool that was used is one line that opens", async () => {
  await begin();
  await ask("Use a tool to search for message");
  const tool = page.locator(".tool").first();
  await tool.waitFor();
  assert.match(await tool.locator("summary").innerText(), /used session_search/);
  await tool.locator("summary").click();
  assert.match(await tool.locator("dl").innerText(), /Asked/);
  await shot("tool");
});

check("files go up by button, drop and paste, and come down again", async () => {
  await begin();
  const bytes = Buffer.from("a,b\n1,2\n");
  await page.locator("#file-input").setInputFiles({ name: "Überblick.csv", mimeType: "text/csv", buffer: bytes });
  const drop = (kind, name) =>
    page.evaluate(([kind, name]) => {
      const carried = new DataTransfer();
      carried.items.add(new File([`by ${kind}`], name, { type: "text/plain" }));
      const field = kind === "clipboardData" ? document.getElementById("input") : document.getElementById("main");
      const Kind = kind === "clipboardData" ? ClipboardEvent : DragEvent;
      const type = kind === "clipboardData" ? "paste" : "drop";
      field.dispatchEvent(new Kind(type, { [kind]: carried, bubbles: true, cancelable: true }));
    }, [kind, name]);
  await drop("dataTransfer", "dropped.txt");
  await drop("clipboardData", "pasted.txt");
  await page.locator(".attachment").nth(2).waitFor();
  await page.locator(".attachment", { hasText: "uploading" }).first().waitFor({ state: "detached" });
  await shot("attachments");
  await ask("Please send me a file");
  const sent = page.locator(".said .file");
  assert.deepEqual(await sent.locator(".file-name").allInnerTexts(), ["Überblick.csv", "dropped.txt", "pasted.txt"]);
  assert.deepEqual(await content(sent.first()), ["Überblick.csv", bytes.toString()]);
  const received = page.locator(".spoken .file").first();
  await received.waitFor();
  const [name, text] = await content(received);
  assert.equal(name, await received.locator(".file-name").innerText());
  assert.ok(text.length > 0);
  await shot("files");
});

async function content(link) {
  const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
  return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
}

check("a picture is shown, and what only claims to be one is a file", async () => {
  await begin();
  const dot = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  await page.locator("#file-input").setInputFiles([
    { name: "dot.png", mimeType: "image/png", buffer: dot },
    { name: "fake.png", mimeType: "image/png", buffer: Buffer.from("<svg onload=alert(1)>") },
  ]);
  await page.locator(".attachment").nth(1).waitFor();
  await page.locator(".attachment", { hasText: "uploading" }).first().waitFor({ state: "detached" });
  await ask("Hello, here are two pictures");
  await page.locator(".said .picture img").first().waitFor();
  await page.locator(".said .file", { hasText: "fake.png" }).waitFor();
  assert.equal(await page.locator(".said .picture").count(), 1);
});

check("search finds what was said and shows the place", async () => {
  await page.keyboard.press("Control+k");
  await page.keyboard.type("journal");
  const hit = page.locator(".hit").first();
  await hit.waitFor();
  assert.match((await hit.locator("mark").first().innerText()).toLowerCase(), /journal/);
  await shot("search");
  await hit.click();
  const found = page.locator(".found");
  await found.waitFor();
  const box = await found.boundingBox();
  assert.ok(box.y >= 0 && box.y < DESKTOP.height, "the place is in view");
  await page.locator("#search").press("Escape");
  await page.locator("#conversations").waitFor();
});

check("stop ends an answer within a second", async () => {
  await begin();
  await say("Another long one, please");
  await page.locator(".spoken.growing").waitFor();
  const began = Date.now();
  await page.keyboard.press("Escape");
  await idle();
  const took = Date.now() - began;
  assert.ok(took < 1500, `it took ${took} ms`);
  await page.locator(".spoken", { hasText: "Stopped." }).waitFor();
  const before = await reading();
  await page.waitForTimeout(600);
  assert.deepEqual(await reading(), before, "nothing more is written");
});

check("older messages come as one scrolls back", async () => {
  await begin();
  for (let number = 0; number < 40; number += 1) await say("/status");
  await page.waitForFunction(() => document.querySelectorAll(".spoken").length === 40);
  await page.waitForFunction(() => document.querySelectorAll('.said[data-state="recorded"]').length === 40);
  await page.reload();
  await page.locator(".spoken").first().waitFor();
  assert.ok((await page.locator(".said").count()) < 40, "only the newest are there at first");
  for (let scroll = 0; scroll < 20 && (await page.locator(".said").count()) < 40; scroll += 1) {
    await page.locator("#scroll").evaluate((element) => (element.scrollTop = 0));
    await page.waitForTimeout(150);
  }
  assert.equal(await page.locator(".said").count(), 40);
  assert.equal(await page.locator(".spoken").count(), 40);
});

check("two pages of one person show the same", async () => {
  await begin();
  await ask("Hello from the first page");
  const second = await watched(context);
  await second.goto(page.url());
  await second.locator(".said").waitFor();
  await say("Hello from the second page", second);
  await page.locator(".said", { hasText: "Hello from the second page" }).waitFor();
  for (const one of [page, second]) await one.locator(".spoken:not(.growing)").nth(1).waitFor();
  await recorded();
  assert.deepEqual(await reading(second), await reading());
  await second.close();
});

check("a conversation gets another name, and what is taken back is gone", async () => {
  await begin();
  await ask("Hello, first of two");
  await ask("Hello, second of two");
  await page.locator("#rename").click();
  await page.locator("#title-input").fill("A better name");
  await page.locator("#title-input").press("Enter");
  await page.locator(".row", { hasText: "A better name" }).waitFor();
  assert.equal(await page.locator("#title").innerText(), "A better name");
  await page.locator("#rename").click();
  await page.locator("#title-input").press("Escape");
  assert.equal(await page.locator("#title").isVisible(), true, "a name that is not wanted is not given");
  await say("/undo");
  await page.locator(".spoken", { hasText: "taken back" }).waitFor();
  await page.locator(".said", { hasText: "second of two" }).waitFor({ state: "detached" });
  assert.equal(await page.locator(".said", { hasText: "first of two" }).count(), 1);
  const shown = await reading();
  await page.reload();
  await page.locator(".spoken", { hasText: "taken back" }).waitFor();
  assert.deepEqual(await reading(), shown, "a reload shows the same");
});

check("hostile text is only text", async () => {
  await begin();
  // An unknown command is answered at once, so every line is on the page before the model sees any.
  for (const line of HOSTILE) await say(`/unknown ${line}`);
  await page.waitForFunction((count) => document.querySelectorAll(".spoken").length >= count, HOSTILE.length);
  for (const line of HOSTILE.slice(0, 3)) await ask(`${line} hello`);
  await ask("Use a tool to search for alert");
  await page.locator("#search").fill("alert");
  await page.locator(".hit").first().waitFor();
  await shot("hostile");
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  const smuggled = await page.evaluate(() => {
    const foreign = [
      "script", "iframe", "object", "embed", "form", "input", "style", "link", "base", "meta", "video", "math",
      "svg:not(.icon)", "img:not(.picture img)",
    ];
    const inside = (selector) => [...document.querySelectorAll(`#log ${selector}`)];
    const listens = (element) => [...element.attributes].some(({ name }) => name.startsWith("on"));
    const leads = (link) => !/^(https?|mailto):/.test(link.href);
    const found = [...foreign.flatMap(inside), ...inside("*").filter(listens), ...inside("a[href]").filter(leads)];
    return found.map((element) => element.outerHTML);
  });
  assert.deepEqual(smuggled, []);
  await page.locator("#search").press("Escape");
});

check("the page is usable by keyboard and by ear", async () => {
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, a[href], input, textarea")]
      .filter((element) => element.offsetParent)
      .filter((element) => !(element.innerText?.trim() || element.getAttribute("aria-label") || element.labels?.length))
      .map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
  await page.locator("#input").focus();
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  assert.equal(await page.locator("#input").inputValue(), "one\ntwo");
  await page.locator("#input").fill("");
  await begin();
  await ask("Hello");
  const heard = await page.locator("#announcer").innerText();
  assert.ok(heard.length > 0, "a finished answer is announced");
  await page.locator("#search").focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.classList.contains("row")), true);
});

check("who asks on another account is let in and put out on the page, by keyboard", async () => {
  const [button, dialog] = [page.locator("#people"), page.locator("#people-dialog")];
  const [code, told] = [dialog.getByLabel("The code that they show you"), dialog.getByRole("status")];
  const lookAgain = () => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  assert.equal(await page.locator("#people .badge").isVisible(), false, "nobody waits");
  const shown = /`([A-Z2-9]{8})`/.exec(await bridge.say("ann", "<img src=x onerror=alert(1)>", "hello"))[1];
  await lookAgain();
  await page.getByRole("button", { name: "People: 1 asks to be let in" }).waitFor();
  assert.equal(await page.locator("#people .badge").innerText(), "1");
  await button.focus();
  await page.keyboard.press("Enter");
  await dialog.getByRole("heading", { name: "bridge" }).waitFor();
  await dialog.getByText("<img src=x onerror=alert(1)>").waitFor();
  assert.equal(await dialog.locator("img").count(), 0, "a name is only text");
  await shot("people");

  await code.fill("AAAA-AAAA");
  await code.press("Enter");
  await told.filter({ hasText: "No open request has that code; 4 more wrong ones" }).waitFor();
  await lookAgain();
  assert.equal(await code.inputValue(), "AAAA-AAAA", "what is typed stays until it is right");
  await code.fill(`${shown.slice(0, 4).toLowerCase()} ${shown.slice(4)}`);
  await dialog.getByLabel("They are heard").selectOption("everywhere");
  await code.press("Enter");
  await told.filter({ hasText: "is let in on bridge, everywhere." }).waitFor();
  assert.equal(await code.inputValue(), "");
  await dialog.getByText("Nobody asks to be let in.").waitFor();
  assert.equal(await page.locator("#people .badge").isVisible(), false);
  assert.match(await bridge.heard("ann", 2), /You are let in/);
  assert.notEqual(await bridge.say("ann", undefined, "hello again"), "", "the next message is answered");

  await dialog.getByRole("button", { name: "Make a code" }).click();
  await told.filter({ hasText: "Hand it on" }).waitFor();
  const made = /Pairing code: ([A-Z2-9]{8})\./.exec(await told.innerText())[1];
  await told.getByRole("button", { name: "Copy the code" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), made);
  assert.match(await bridge.say("ben", "Ben", made), /You are let in/);
  await lookAgain();
  await dialog.getByRole("button", { name: "Revoke Ben" }).waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await shot("people-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await dialog.getByRole("button", { name: "Revoke <img" }).click();
  await told.filter({ hasText: "ann is not heard on bridge any more" }).waitFor();
  await dialog.getByRole("button", { name: "Revoke <img" }).waitFor({ state: "detached" });
  assert.equal(await dialog.getByRole("button", { name: /^Revoke/ }).count(), 1);
  const nameless = await dialog.evaluate((element) =>
    [...element.querySelectorAll("button, input, select")]
      .filter((control) => control.offsetParent)
      .filter((control) => !(control.innerText?.trim() || control.getAttribute("aria-label") || control.labels?.length))
      .map((control) => control.outerHTML));
  assert.deepEqual(nameless, []);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  assert.equal(await page.evaluate(() => document.activeElement.id), "people", "the focus goes back");
});

check("a killed gateway loses nothing, and what was written meanwhile is sent once", async () => {
  assert.ok(RESTART, "TALARIA_RESTART_COMMAND is not set");
  await begin();
  await ask("Hello before the crash");
  await say("A long answer through a crash, please");
  await page.waitForFunction(() => document.querySelector(".spoken.growing")?.innerText.length > 400);
  // The gateway may be back sooner than a page notices; this keeps it out of reach for a while.
  const comeBack = await unreachable();
  await run(RESTART);
  await page.locator("#banner").waitFor();
  // Said plainly, it would interrupt the answer.
  await say("/queue Hello during the crash");
  await page.locator(".said", { hasText: "Hello during the crash" }).getByText("Sending").waitFor();
  await shot("reconnecting");
  await comeBack();
  await page.locator("#banner").waitFor({ state: "hidden" });
  await recorded();
  await idle();
  const shown = await reading();
  for (const words of ["Hello before the crash", "A long answer through a crash, please", "Hello during the crash"]) {
    assert.equal(shown.filter((text) => text === words).length, 1, words);
  }
  assert.equal(shown.filter((text) => text.length > 1000).length, 1, "the long answer is there once");
  await page.reload();
  await page.locator(".said", { hasText: "Hello during the crash" }).waitFor();
  await idle();
  assert.deepEqual(await reading(), shown, "a reload shows the same");
});

check("what was written on a page that was closed too early is sent by the next one", async () => {
  await begin();
  await ask("Hello");
  const place = page.url();
  const comeBack = await unreachable();
  await say("Hello from the closed page");
  await page.locator(".said", { hasText: "Hello from the closed page" }).getByText("Sending").waitFor();
  await page.close();
  await comeBack();
  page = await watched(context);
  await page.goto(place);
  await page.locator(".said", { hasText: "Hello from the closed page" }).waitFor();
  await recorded();
  await idle();
  assert.equal(await page.locator(".said").count(), 2);
});

/** Cuts the pages off from the gateway until the function it gives back is called. */
async function unreachable() {
  const cut = (route) => route.abort("connectionrefused");
  await context.route("**/api/**", cut);
  return () => context.unroute("**/api/**", cut);
}

function run(command) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ["ignore", "inherit", "inherit"] });
    const failed = (code) => reject(new Error(`the restart command ended with ${code}`));
    child.on("exit", (code) => (code === 0 ? resolve() : failed(code)));
  });
}

check("it is at home on a phone, in light and in dark", async () => {
  const phones = await browser.newContext({
    viewport: PHONE, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "light", locale: "en-GB",
    storageState: await context.storageState(),
  });
  const phone = await watched(phones);
  await phone.goto(ORIGIN);
  await phone.locator("#welcome").waitFor();
  await shot("phone-welcome", phone);
  await ask("Please give me a long answer", phone);
  await shot("phone", phone);
  await phone.setViewportSize({ width: PHONE.height, height: PHONE.width });
  await phone.waitForTimeout(200);
  assert.ok((await fromEnd(phone)) < 2, "a turned phone stays at the end");
  await phone.setViewportSize(PHONE);
  const sideways = () => phone.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
  assert.ok((await sideways()) <= 0, "nothing sticks out");
  await phone.locator(".spoken .table").scrollIntoViewIfNeeded();
  await shot("phone-table", phone);
  const small = await phone.evaluate(() =>
    [...document.querySelectorAll("#open-sidebar, #new-narrow, #attach, #send, .copy")]
      .filter((element) => element.offsetParent)
      .map((element) => element.getBoundingClientRect())
      .filter(({ height }) => height < 44).length);
  assert.equal(small, 0, "every control is large enough for a thumb");
  await phone.locator("#open-sidebar").click();
  await phone.locator("#conversations .row").first().waitFor();
  await phone.waitForTimeout(300);
  await shot("phone-list", phone);
  await phone.locator("#conversations .row").nth(1).click();
  await phone.locator("#sidebar.open").waitFor({ state: "detached" });
  await phone.emulateMedia({ colorScheme: "dark" });
  await shot("phone-dark", phone);
  await phones.close();
});

check("colours follow the system until they are chosen", async () => {
  const background = () => page.evaluate(() => getComputedStyle(document.body.parentElement).backgroundColor);
  await page.locator("#conversations .row").last().click();
  await page.locator(".spoken").first().waitFor();
  const light = await background();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await background();
  assert.notEqual(light, dark);
  await page.waitForTimeout(300);
  await shot("dark");
  await page.locator("#theme").click();
  assert.equal(await background(), light, "chosen light");
  await page.reload();
  await page.locator(".spoken").first().waitFor();
  assert.equal(await background(), light, "the choice survives a reload");
  await page.locator("#theme").click();
  await page.locator("#theme").click();
  assert.equal(await background(), dark, "back to the system's");
  await page.emulateMedia({ colorScheme: "light" });
});

check("logging out ends every page", async () => {
  const other = await watched(context);
  await other.goto(ORIGIN);
  await other.locator("#input").waitFor();
  await page.locator("#logout").click();
  await page.getByRole("button", { name: "Log out" }).last().click();
  await page.getByRole("heading", { name: "Log in to Talaria" }).waitFor();
  await other.getByRole("heading", { name: "Log in to Talaria" }).waitFor();
  await other.close();
});
