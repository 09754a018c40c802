// Which commands are offered for what is being typed, without a page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { offered } from "../../chat/commands.js";

const COMMANDS = ["new", "status", "steer", "stop", "whoami"].map((name) => ({ name }));
const names = (text) => offered(COMMANDS, text).map(({ name }) => name);

test("a beginning is offered what it may become", () => {
  assert.deepEqual(names("/"), ["new", "status", "steer", "stop", "whoami"]);
  assert.deepEqual(names("/st"), ["status", "steer", "stop"]);
  assert.deepEqual(names("/WHO"), ["whoami"]);
  assert.deepEqual(names("/x"), []);
});

test("a whole name needs no more help, and what is no command gets none", () => {
  for (const text of ["/stop", "/status now", "/usr/bin", " /st", "st", "a /st", "", "/st\nop", "/1"]) {
    assert.deepEqual(names(text), [], JSON.stringify(text));
  }
});
