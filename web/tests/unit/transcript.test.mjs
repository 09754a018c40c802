// The transcript without a page: nothing is shown twice, nothing is lost, whatever the order in which it comes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Transcript } from "../../chat/transcript.js";

const said = (position, text, id) => ({ kind: "said", position, at: position * 10, id, text, files: [] });
const answer = (position, number, text) => ({
  kind: "posted", position, at: position * 10, delivery: `s/${number}`, html: `<p>${text}</p>`, text,
});
const post = (number, text, part = 0) => ({
  id: `s/${number}.${part}`, delivery: `s/${number}`, at: 99, html: `<p>${text}</p>`, text,
});
const write = (id, text, after, state = "sent") => ({ id, text, files: [], after, at: 5, state });
const choices = [{ id: "a", label: "Red" }, { id: "b", label: "Blue" }];
const returned = (position, call, output) => ({
  kind: "returned", position, at: position * 10, call, output, failed: false,
});

/** What is shown, as one line per item. */
function look(transcript, busy = false) {
  const fate = ({ kind, state }) => (kind === "said" && state ? ` (${state})` : "");
  const line = (item) => `${item.kind}: ${item.text ?? item.html}${fate(item)}`;
  return transcript.list(busy).map(line);
}

test("a message stays in its place when its entry is recorded", () => {
  const transcript = new Transcript();
  transcript.record([said(1, "hello"), answer(2, 1, "hi")]);
  transcript.write(write("m", "and now?", 2));
  const key = transcript.list(false).at(-1).key;
  assert.deepEqual(transcript.record([said(3, "and now?", "m")]), ["m"]);
  assert.deepEqual(look(transcript), ["said: hello", "posted: hi", "said: and now?"]);
  assert.equal(transcript.list(false).at(-1).key, key);
});

test("the same words said before are not mistaken for a message under way", () => {
  const transcript = new Transcript();
  transcript.record([said(1, "yes"), answer(2, 1, "ok")]);
  transcript.write(write("m", "yes", 2, "sending"));
  assert.deepEqual(transcript.record([said(1, "yes"), answer(2, 1, "ok")]), []);
  assert.deepEqual(look(transcript), ["said: yes", "posted: ok", "said: yes (sending)"]);
});

test("the same words said twice in a row become two entries", () => {
  const transcript = new Transcript();
  transcript.record([]);
  transcript.write(write("m1", "yes", 0));
  transcript.write(write("m2", "yes", 0));
  assert.deepEqual(transcript.record([said(1, "yes", "m1")]), ["m1"]);
  assert.deepEqual(look(transcript), ["said: yes", "said: yes (sent)"]);
  assert.deepEqual(transcript.record([said(1, "yes", "m1"), said(2, "yes", "m2")]), ["m2"]);
  assert.deepEqual(look(transcript), ["said: yes", "said: yes"]);
});

test("a message of another page is shown once, whether its entry or its event comes first", () => {
  const event = { id: "m", text: "hello", files: [], at: 10 };
  const entryFirst = new Transcript();
  entryFirst.record([said(1, "hello", "m")]);
  entryFirst.said(event);
  assert.deepEqual(look(entryFirst), ["said: hello"]);
  const eventFirst = new Transcript();
  eventFirst.said(event);
  eventFirst.said(event);
  assert.deepEqual(look(eventFirst), ["said: hello (sent)"]);
  eventFirst.record([said(1, "hello", "m")]);
  eventFirst.said(event);
  assert.deepEqual(look(eventFirst), ["said: hello"]);
});

test("the same words from two pages are two messages", () => {
  const transcript = new Transcript();
  transcript.record([said(1, "hello", "theirs")]);
  transcript.said({ id: "mine", text: "hello", files: [], at: 10 });
  assert.deepEqual(look(transcript), ["said: hello", "said: hello (sent)"]);
});

test("what was queued by a command is shown as it was meant", () => {
  const transcript = new Transcript();
  transcript.write(write("m", "/queue and now?", 0));
  assert.deepEqual(transcript.record([said(1, "and now?", "m")]), ["m"]);
  assert.deepEqual(look(transcript), ["said: and now?"]);
});

test("what was taken back is gone, however far back that goes", () => {
  const transcript = new Transcript();
  const undone = (from) => [said(from, "/undo", `u${from}`), answer(from + 1, from + 1, "taken back")];
  transcript.record([said(1, "a", "m1"), answer(2, 1, "A"), said(3, "b", "m2"), answer(4, 2, "B")]);
  transcript.record([answer(2, 1, "A"), ...undone(5)]);
  assert.deepEqual(look(transcript), ["said: a", "posted: A", "said: /undo", "posted: taken back"]);
  transcript.record(undone(7), { complete: true });
  assert.deepEqual(look(transcript), ["said: /undo", "posted: taken back"]);
});

test("what is answered again is shown once", () => {
  const transcript = new Transcript();
  transcript.record([said(1, "a", "m1"), answer(2, 1, "A")]);
  transcript.record([said(4, "a", "m1"), answer(5, 2, "A again")]);
  assert.deepEqual(look(transcript), ["posted: A", "said: a", "posted: A again"]);
  transcript.record([said(3, "/retry", "r"), said(4, "a", "m1"), answer(5, 2, "A again")], { complete: true });
  assert.deepEqual(look(transcript), ["said: /retry", "said: a", "posted: A again"]);
});

test("an answer that was withheld shows nothing, and a summary is a divider", () => {
  const transcript = new Transcript();
  const quiet = (position, kind) => ({ kind, position, at: position * 10 });
  transcript.record([said(1, "fyi", "m1"), quiet(2, "withheld"), quiet(3, "summarised")]);
  assert.deepEqual(transcript.list(false).map(({ kind }) => kind), ["said", "summarised"]);
});

test("what the agent is doing is told with what it has written, and ends with it", () => {
  const transcript = new Transcript();
  transcript.draft({ delivery: "s/1", html: "<p>Let me look.</p>", doing: "searching" });
  assert.equal(transcript.list(true)[0].doing, "searching");
  transcript.draft({ delivery: "s/1", html: "<p>Let me look. Found</p>" });
  assert.equal(transcript.list(true)[0].doing, undefined);
});

test("a refused message keeps its own place and never becomes an entry", () => {
  const transcript = new Transcript();
  transcript.write(write("m", "hello", 0, "failed"));
  assert.deepEqual(transcript.record([said(1, "hello")]), []);
  transcript.unwrite("m");
  assert.deepEqual(look(transcript), ["said: hello"]);
});

test("an answer grows in one place and is replaced by the whole, then by its entry", () => {
  const transcript = new Transcript();
  transcript.write(write("m", "hello", 0));
  transcript.draft({ delivery: "s/1", html: "<p>h</p>" });
  transcript.write(write("n", "and more", 0));
  transcript.draft({ delivery: "s/1", html: "<p>hi</p>" });
  assert.deepEqual(look(transcript), ["said: hello (sent)", "draft: <p>hi</p>", "said: and more (sent)"]);
  const { key } = transcript.list(true)[1];
  assert.equal(transcript.posted(post(1, "hi there")), true);
  assert.equal(transcript.posted(post(1, "hi there")), false);
  assert.equal(transcript.list(true)[1].key, key);
  transcript.draft({ delivery: "s/1", html: "late" });
  transcript.record([said(1, "hello", "m"), answer(2, 1, "hi there")]);
  transcript.draft({ delivery: "s/1", html: "later still" });
  assert.equal(transcript.posted(post(1, "hi there")), false);
  assert.deepEqual(look(transcript), ["said: hello", "posted: hi there", "said: and more (sent)"]);
  assert.equal(transcript.list(true)[1].key, key);
});

test("the parts of one delivery give way to its one entry", () => {
  const transcript = new Transcript();
  transcript.posted(post(1, "first", 0));
  transcript.posted(post(1, "second", 1));
  assert.deepEqual(look(transcript), ["posted: first", "posted: second"]);
  transcript.record([answer(1, 1, "first second")]);
  assert.deepEqual(look(transcript), ["posted: first second"]);
});

test("a draft of an earlier delivery gives way, and a conversation at rest has none", () => {
  const transcript = new Transcript();
  transcript.draft({ delivery: "s/1", html: "old" });
  transcript.draft({ delivery: "s/2", html: "new" });
  assert.deepEqual(look(transcript), ["draft: new"]);
  transcript.rest();
  assert.deepEqual(look(transcript), []);
});

test("pieces of history fit together in any order", () => {
  const transcript = new Transcript();
  transcript.record([said(3, "c"), said(4, "d")]);
  transcript.record([said(1, "a"), said(2, "b"), said(3, "c")]);
  assert.deepEqual(look(transcript), ["said: a", "said: b", "said: c", "said: d"]);
  assert.deepEqual([transcript.oldest, transcript.newest], [1, 4]);
  transcript.forget(2);
  assert.deepEqual([transcript.oldest, transcript.newest], [3, 4]);
});

test("history is fetched back to what is shown and to what waits for its entry", () => {
  const transcript = new Transcript();
  assert.equal(transcript.reach, Infinity, "one piece is enough to begin with");
  transcript.write(write("m", "hello", 3));
  assert.equal(transcript.reach, 3);
  transcript.record([said(8, "b"), said(9, "c")]);
  assert.equal(transcript.reach, 3);
  transcript.record([said(4, "hello", "m")]);
  assert.equal(transcript.reach, 9);
});

test("a question is open until it is answered, and shows which answer it got", () => {
  const transcript = new Transcript();
  transcript.posted({ ...post(1, "Which?"), choices });
  const state = (busy = true) => {
    const { question: open, chosen } = transcript.list(busy)[0];
    return [open, chosen];
  };
  assert.deepEqual(state(), ["open", undefined]);
  assert.deepEqual(state(false), ["closed", undefined]);
  transcript.said({ id: "c", text: "/status", files: [], at: 1 });
  transcript.posted(post(2, "waiting for your answer"));
  assert.deepEqual(state(), ["open", undefined], "a command is not an answer");
  transcript.press("b");
  assert.deepEqual(state(), ["closed", "b"]);
  transcript.unpress("b");
  transcript.said({ id: "d", text: "2", files: [], at: 1 });
  assert.deepEqual(state(), ["closed", "b"]);
});

test("a recorded answer that is a choice's label is shown in the question, not beside it", () => {
  const transcript = new Transcript();
  const asked = { ...answer(1, 1, "Which?"), choices };
  transcript.record([asked, said(2, "Blue"), returned(3, "x", ""), answer(4, 2, "Blue it is")]);
  assert.deepEqual(look(transcript), ["posted: Which?", "posted: Blue it is"]);
  assert.deepEqual(transcript.list(true)[0].chosen, "b");
});

test("the call that asks a question is shown by the question alone", () => {
  const transcript = new Transcript();
  const calls = [{ id: "x", tool: "ask", arguments: "{}" }];
  const call = { ...answer(1, 1, ""), delivery: undefined, calls };
  transcript.record([call, { ...answer(2, 2, "Which?"), choices }]);
  assert.deepEqual(look(transcript), ["posted: Which?"]);
  const other = new Transcript();
  other.record([{ ...call, text: "Let me ask." }, { ...answer(2, 2, "Which?"), choices }]);
  assert.deepEqual(look(other), ["posted: Let me ask.", "posted: Which?"]);
});

test("a question that expired is closed", () => {
  const transcript = new Transcript();
  transcript.record([{ ...answer(1, 1, "Which?"), choices }, returned(2, "x", "nobody answered")]);
  assert.equal(transcript.list(true)[0].question, "closed");
});

test("a tool's result is the next one of its name", () => {
  const transcript = new Transcript();
  const calls = [{ id: "call_1", tool: "search", arguments: "{}" }];
  const used = (position) => ({ ...answer(position, position, ""), delivery: undefined, calls });
  transcript.record([used(1), returned(2, "call_1", "first"), used(3), returned(4, "call_1", "second")]);
  assert.deepEqual(transcript.list(false).map(({ calls }) => calls[0].result.output), ["first", "second"]);
});

test("what was edited or deleted stays so when its entry comes", () => {
  const transcript = new Transcript();
  transcript.posted(post(1, "one"));
  transcript.posted(post(2, "two"));
  transcript.edited({ id: "s/1.0", html: "<p>uno</p>", text: "uno" });
  transcript.deleted({ id: "s/2.0" });
  assert.deepEqual(look(transcript), ["posted: uno"]);
  transcript.record([answer(1, 1, "one"), answer(2, 2, "two")]);
  assert.deepEqual(look(transcript), ["posted: uno"]);
});
