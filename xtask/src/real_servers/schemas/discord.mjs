// Compares requests with Discord's own OpenAPI description, as the package `discord-api-spec` carries it. Every route
// that is used has to be named here, and no field may be sent that Discord does not name.
//
// Reads lines of JSON from the file that is named; PACKAGES is where the packages are.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { PACKAGES } = process.env;
const folder = join(PACKAGES, 'node_modules/discord-api-spec/build');
// The package lets unknown fields pass unless its objects are made strict while it loads.
const strict = readFileSync(join(folder, 'discord-api-spec.zod.js'), 'utf8').replace('let zObject = z.object;', 'let zObject = z.strictObject;');
writeFileSync(join(folder, 'strict.mjs'), strict);
const schemas = await import(pathToFileURL(join(folder, 'strict.mjs')));

const NOTHING = null;
const ROUTES = [
  ['GET', '/users/@me', NOTHING],
  ['GET', '/users/@me/guilds', NOTHING],
  ['GET', '/applications/@me', NOTHING],
  ['GET', '/gateway/bot', NOTHING],
  ['GET', '/guilds/#', NOTHING],
  ['GET', '/guilds/#/threads/active', NOTHING],
  ['GET', '/guilds/#/members/#', NOTHING],
  ['GET', '/channels/#', NOTHING],
  ['PATCH', '/channels/#', schemas.UpdateThreadRequestPartialSchema],
  ['GET', '/channels/#/messages', NOTHING],
  ['GET', '/channels/#/messages/#', NOTHING],
  ['POST', '/channels/#/messages', schemas.MessageCreateRequestSchema],
  ['PATCH', '/channels/#/messages/#', schemas.MessageEditRequestPartialSchema],
  ['DELETE', '/channels/#/messages/#', NOTHING],
  ['PUT', '/channels/#/messages/#/reactions/*/@me', NOTHING],
  ['DELETE', '/channels/#/messages/#/reactions/*/@me', NOTHING],
  ['POST', '/channels/#/typing', NOTHING],
  ['POST', '/channels/#/messages/#/threads', schemas.CreateTextThreadWithMessageRequestSchema],
  ['POST', '/channels/#/threads', schemas.CreateForumThreadRequestSchema],
  ['GET', '/applications/#/commands', NOTHING],
  ['POST', '/applications/#/commands', schemas.ApplicationCommandCreateRequestSchema],
  ['PUT', '/applications/#/commands', { each: schemas.ApplicationCommandUpdateRequestSchema }],
  ['PATCH', '/applications/#/commands/#', schemas.ApplicationCommandPatchRequestPartialSchema],
  ['DELETE', '/applications/#/commands/#', NOTHING],
  ['POST', '/interactions/#/*/callback', {
    4: schemas.CreateMessageInteractionCallbackRequestSchema,
    5: schemas.CreateMessageInteractionCallbackRequestSchema,
    6: schemas.UpdateMessageInteractionCallbackRequestSchema,
    7: schemas.UpdateMessageInteractionCallbackRequestSchema,
  }],
].map(([method, path, schema]) => {
  const pattern = path.replace(/#/g, '\\d+').replace(/\*/g, '[^/]+');
  return { method, path, pattern: new RegExp(`^${pattern}$`), schema };
});

/** The description has a number where the reference has text, as for all permissions:
 * https://discord.com/developers/docs/interactions/application-commands#application-command-object */
function described(value) {
  const permissions = value?.default_member_permissions;
  return typeof permissions === 'string' ? { ...value, default_member_permissions: Number(permissions) } : value;
}

function problems({ method, path, body }) {
  const route = ROUTES.find((route) => route.method === method && route.pattern.test(path));
  if (!route) return ['no such route'];
  if (route.schema === NOTHING) return [];
  const one = (schema, value) => {
    const read = schema.safeParse(described(value));
    return read.success ? [] : read.error.issues.map((issue) => JSON.stringify(issue).slice(0, 600));
  };
  if (route.schema.each) return body.flatMap((value) => one(route.schema.each, value));
  const schema = route.schema.safeParse ? route.schema : route.schema[body?.type];
  return schema ? one(schema, body) : ['no such kind'];
}

const asked = readFileSync(process.argv[2], 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const found = new Map();
const used = new Set();
let fit = 0;
for (const request of asked) {
  const wrong = problems(request);
  if (wrong.length === 0) fit += 1;
  used.add(ROUTES.find((route) => route.method === request.method && route.pattern.test(request.path)));
  for (const one of wrong) {
    const line = `${request.method} ${request.path.replace(/\d{5,}/g, '#')}: ${one}`;
    if (!found.has(line)) found.set(line, request);
  }
}
for (const [line, request] of found) console.log(line, JSON.stringify(request.body)?.slice(0, 300));
console.log(`${fit} requests of ${used.size} routes fit`);
process.exit(found.size > 0 || fit === 0 ? 1 : 0);
