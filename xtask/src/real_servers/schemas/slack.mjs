// Compares requests with the arguments of every method as Slack's own package `@slack/web-api` declares them: each
// request becomes a line of TypeScript, and the compiler says which fields are missing, unknown or of another kind.
//
// Reads lines of JSON from the file that is named; PACKAGES is where the packages are.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const { PACKAGES } = process.env;

/** Forms carry text only; these fields are declared as something else. */
const NUMBERS = ['limit', 'length'];
const TRUTHS = ['include_all_metadata', 'include_locale', 'inclusive', 'exclude_archived'];

function declared(fields) {
  return Object.fromEntries(
    Object.entries(fields ?? {}).map(([name, value]) => {
      if (NUMBERS.includes(name) && typeof value === 'string') return [name, Number(value)];
      if (TRUTHS.includes(name) && typeof value === 'string') return [name, value === 'true'];
      return [name, value];
    }),
  );
}

const asked = readFileSync(process.argv[2], 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const kinds = new Map();
for (const { path, body, query } of asked) {
  const fields = JSON.stringify({ ...declared(body), ...declared(query) });
  kinds.set(`${path} ${fields}`, { path, fields });
}
const lines = [
  "import { WebClient } from '@slack/web-api';",
  'declare const slack: WebClient;',
  ...[...kinds.values()].map(({ path, fields }) => `slack.${path}(${fields});`),
];
const program = join(PACKAGES, 'asked.ts');
writeFileSync(program, lines.join('\n'));
const compiler = join(PACKAGES, 'node_modules/typescript/bin/tsc');
const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'node16', '--moduleResolution', 'node16', '--types', 'node', program];
try {
  execFileSync(process.execPath, [compiler, ...options], { cwd: PACKAGES, encoding: 'utf8' });
} catch (problem) {
  for (const line of problem.stdout.split('\n').filter(Boolean)) {
    const at = Number(line.match(/asked\.ts\((\d+),/)?.[1]);
    console.log(line, at ? lines[at - 1].slice(0, 300) : '');
  }
  process.exit(1);
}
console.log(`${kinds.size} requests of ${new Set(asked.map((one) => one.path)).size} methods fit`);
