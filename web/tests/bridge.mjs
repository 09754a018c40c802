// The program behind a `loopback` account: says what people say, and keeps what they are told.

import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const PATIENCE = 60_000;

export class Bridge {
  #events = [];
  #told = new Map();
  #sockets = new Set();
  #listeners = new Set();
  #waiting = new Set();
  #server = createServer((socket) => this.#meet(socket));

  constructor(port) {
    this.port = port;
  }

  async open() {
    this.#server.listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Somebody writes in a chat of their own. Returns what they are told then. */
  say(sender, name, text) {
    const number = this.#events.length + 1;
    const event = { number, id: `e${number}`, chat: sender, sender, text };
    if (name) event.name = name;
    this.#events.push(event);
    for (const socket of this.#listeners) socket.write(`${JSON.stringify(event)}\n`);
    return this.heard(sender, this.#toldTo(sender).length + 1);
  }

  /** What somebody is told, the so-many-th of it. */
  async heard(chat, nth) {
    const late = AbortSignal.timeout(PATIENCE);
    while (this.#toldTo(chat).length < nth) {
      if (late.aborted) throw new Error(`${chat} is not told a ${nth}. thing: ${this.#toldTo(chat)}`);
      await new Promise((resolve) => {
        this.#waiting.add(resolve);
        setTimeout(resolve, 1000);
      });
    }
    return this.#toldTo(chat)[nth - 1];
  }

  #toldTo(chat) {
    return this.#told.get(chat) ?? [];
  }

  #meet(socket) {
    this.#sockets.add(socket);
    const forget = () => [this.#sockets, this.#listeners].forEach((set) => set.delete(socket));
    socket.on("error", forget).on("close", forget);
    createInterface(socket).on("line", (line) => this.#answer(socket, JSON.parse(line)));
  }

  #answer(socket, line) {
    if (line.hello?.role === "events") {
      this.#listeners.add(socket);
      const fresh = this.#events.filter(({ number }) => number > (line.hello.cursor ?? 0));
      for (const event of fresh) socket.write(`${JSON.stringify(event)}\n`);
    } else if (line.act) {
      const text = line.act.post?.text;
      if (text !== undefined) this.#told.set(line.chat, [...this.#toldTo(line.chat), text]);
      socket.write(`${JSON.stringify({ done: text === undefined ? {} : { message: `m-${line.id}` } })}\n`);
      for (const resolve of this.#waiting) resolve();
      this.#waiting.clear();
    }
  }
}
