// Slack, as the package `emulate` plays it, with what it leaves out: Socket Mode, signed commands and presses.
//
// Settings come as variables: PORT (the Web API), FRONT_PORT (everything here), SIGNING_SECRET, and EVENTS_URL
// when events are to be sent there instead of through a socket.

import { createHmac, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { PORT, FRONT_PORT, SIGNING_SECRET, EVENTS_URL, PACKAGES } = process.env;
const APP = 'A000000001';
const BOT = 'U0BOT00001';

/** After this long Slack tells again what nobody has acknowledged. */
const AGAIN = 3_000;

const packages = createRequire(join(PACKAGES, 'here.js'));
const { WebSocketServer } = packages('ws');
const emulate = join(PACKAGES, 'node_modules/emulate/dist');
const { createEmulator } = await import(pathToFileURL(join(emulate, 'api.js')));

/** The emulator's part for Slack, which it does not export by name. */
async function slack() {
  for (const file of readdirSync(emulate).filter((file) => /^dist-.*\.js$/.test(file))) {
    const part = await import(pathToFileURL(join(emulate, file)));
    if (part.slackPlugin) return part;
  }
  throw new Error('this emulator knows no Slack');
}

const part = await slack();
let inside;
const register = part.slackPlugin.register;
part.slackPlugin.register = function (app, store, webhooks, ...rest) {
  inside = { store, webhooks };
  app.post('/api/apps.connections.open', (asked) => {
    const token = asked.req.header('authorization') ?? '';
    return token.startsWith('Bearer xapp-')
      ? asked.json({ ok: true, url: `ws://127.0.0.1:${FRONT_PORT}/link?ticket=${randomUUID()}` })
      : asked.json({ ok: false, error: 'invalid_auth' });
  });
  // Nobody sees a status, but an app that shows one is told that it is shown.
  app.post('/api/assistant.threads.setStatus', (asked) => asked.json({ ok: true }));
  return register.call(this, app, store, webhooks, ...rest);
};

const emulator = await createEmulator({
  service: 'slack',
  port: Number(PORT),
  baseUrl: `http://127.0.0.1:${PORT}`,
  seed: {
    slack: {
      team: { name: 'Lab', domain: 'lab' },
      users: [{ name: 'alice', email: 'alice@example.test' }],
      channels: [{ name: 'lab' }],
      oauth_apps: [
        { client_id: '1.2', client_secret: 's', app_id: APP, name: 'Talaria', bot_user_id: BOT, redirect_uris: [], scopes: ['chat:write'] },
      ],
      tokens: [
        { token: 'xoxb-bot', user_id: BOT, type: 'bot', app_id: APP, bot_user_id: BOT },
        { token: 'xoxp-alice', user: 'alice', type: 'user' },
      ],
      signing_secret: SIGNING_SECRET,
    },
  },
});

/** What was told through the socket and not acknowledged yet, by its id. */
const waiting = new Map();
const acknowledged = [];

function offer(one) {
  const socket = [...sockets.clients].find((socket) => socket.readyState === 1);
  if (socket) socket.send(JSON.stringify(one.envelope));
}

/** Tells something through the socket until it is acknowledged. Answers with the acknowledgement. */
function tell(type, payload) {
  const envelope_id = randomUUID();
  return new Promise((acknowledge) => {
    const one = { envelope: { envelope_id, type, payload, accepts_response_payload: type !== 'events_api', retry_attempt: 0, retry_reason: '' }, acknowledge };
    waiting.set(envelope_id, one);
    offer(one);
    one.again = setInterval(() => {
      one.envelope.retry_attempt += 1;
      one.envelope.retry_reason = 'timeout';
      offer(one);
    }, AGAIN);
  });
}

/** Sends a command or a press as a signed form. */
async function send(type, payload) {
  const fields = type === 'interactive' ? { payload: JSON.stringify(payload) } : payload;
  const body = new URLSearchParams(fields).toString();
  const time = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', SIGNING_SECRET).update(`v0:${time}:${body}`).digest('hex');
  const answer = await fetch(EVENTS_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-slack-request-timestamp': time, 'x-slack-signature': `v0=${signature}` },
    body,
  });
  return { status: answer.status, text: await answer.text() };
}

async function read(request) {
  let body = '';
  for await (const piece of request) body += piece;
  return body ? JSON.parse(body) : {};
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://front');
  const body = await read(request);
  const answer = (value) => response.end(JSON.stringify(value ?? null));
  switch (url.pathname) {
    // The emulator's own events.
    case '/event':
      tell('events_api', body);
      return answer();
    // A command or a press of a person, by the way that is configured.
    case '/tell': {
      const type = url.searchParams.get('type');
      return answer(await (EVENTS_URL ? send(type, body) : tell(type, body)));
    }
    // The connection breaks.
    case '/cut':
      for (const socket of sockets.clients) socket.terminate();
      return answer();
    // What was shown to one person alone.
    case '/whispers':
      return answer(part.getSlackStore(inside.store).ephemeralMessages.all());
    case '/state': {
      const store = part.getSlackStore(inside.store);
      const channel = store.channels.all().find((channel) => channel.name === 'lab');
      const alice = store.users.all().find((user) => user.name === 'alice');
      return answer({
        channel: channel.channel_id, alice: alice.user_id, bot: BOT, app: APP, team: channel.team_id,
        connections: sockets.clients.size, acknowledged: acknowledged.length, waiting: waiting.size,
      });
    }
    default:
      response.statusCode = 404;
      return answer();
  }
});

const sockets = new WebSocketServer({ server });
sockets.on('connection', (socket) => {
  socket.send(JSON.stringify({ type: 'hello', num_connections: sockets.clients.size, connection_info: { app_id: APP }, debug_info: { host: 'front', approximate_connection_time: 18060 } }));
  socket.on('message', (message) => {
    const said = JSON.parse(message);
    const one = waiting.get(said.envelope_id);
    if (!one) return;
    clearInterval(one.again);
    waiting.delete(said.envelope_id);
    acknowledged.push(said.envelope_id);
    one.acknowledge(said);
  });
  for (const one of waiting.values()) offer(one);
});

const events = EVENTS_URL ?? `http://127.0.0.1:${FRONT_PORT}/event`;
inside.webhooks.register({ url: events, active: true, events: ['*'], owner: 'slack' });
server.listen(Number(FRONT_PORT), '127.0.0.1', () => console.log(`ready ${emulator.url}`));
