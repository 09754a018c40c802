// Telegram, as the package `telegram-test-api` plays it, for bots that ask for updates.
//
// The package keeps messages, edits and presses. What it leaves out is added here: questions for updates that wait
// and confirm, and the methods whose outcome nobody can see. People write through the package's own routes.
//
// Settings come as variables: PORT (for the bot), INNER_PORT (for people), PACKAGES.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { PORT, INNER_PORT, PACKAGES } = process.env;
const TelegramServer = createRequire(join(PACKAGES, 'here.js'))('telegram-test-api');
const emulator = new TelegramServer({ port: Number(INNER_PORT), host: '127.0.0.1', storage: 'RAM', storeTimeout: 600 });
await emulator.start();

/** Updates that were read from the package and not confirmed by a later question. */
let unconfirmed = [];
const confirmed = [];
const unseen = { setMyCommands: true, deleteMyCommands: true, sendChatAction: true, setMessageReaction: true };

const pause = (time) => new Promise((over) => setTimeout(over, time));

async function updates(token, { offset = 0, timeout = 0 }) {
  confirmed.push(...unconfirmed.filter((update) => update.update_id < offset));
  unconfirmed = unconfirmed.filter((update) => update.update_id >= offset);
  const until = Date.now() + timeout * 1_000;
  do {
    unconfirmed.push(...emulator.getUpdates(token));
    if (unconfirmed.length > 0) break;
    await pause(10);
  } while (Date.now() < until);
  return unconfirmed;
}

async function forward(path, body) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`http://127.0.0.1:${INNER_PORT}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const told = await answer.json();
  return answer.ok ? told : { ok: false, error_code: 400, description: `Bad Request: ${told.description ?? told.error}` };
}

async function method(token, name, body, path) {
  const done = (result) => ({ ok: true, result });
  switch (name) {
    case 'getUpdates':
      return done(await updates(token, body));
    case 'getWebhookInfo':
      return done({ url: '', has_custom_certificate: false, pending_update_count: 0 });
    case 'getMe': {
      const { result } = await forward(path, body);
      return done({ ...result, is_bot: true, can_join_groups: true, can_read_all_group_messages: true });
    }
    case 'editMessageText': {
      const answer = await forward(path, body);
      // The package only says that it is done; Telegram shows the message.
      return answer.ok ? done({ message_id: body.message_id, date: 0, chat: { id: body.chat_id, type: 'private' }, text: body.text }) : answer;
    }
    default:
      if (unseen[name]) return done(true);
      return forward(path, body);
  }
}

async function read(request) {
  let body = '';
  for await (const piece of request) body += piece;
  return body ? JSON.parse(body) : {};
}

createServer(async (request, response) => {
  if (request.url === '/confirmed') return response.end(JSON.stringify(confirmed.length));
  const [, token, name] = request.url.match(/^\/bot([^/]+)\/(\w+)$/) ?? [];
  const answer = name ? await method(token, name, await read(request), request.url) : { ok: false, error_code: 404, description: 'Not Found' };
  response.writeHead(answer.ok ? 200 : answer.error_code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(answer));
}).listen(Number(PORT), '127.0.0.1', () => console.log('ready'));
