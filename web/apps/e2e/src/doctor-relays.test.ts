/** What `leeway.doctor()` says of relays, in Chromium and in Firefox: a relay that is well, a wrong secret (by UDP and TCP), a port that nothing listens on; STUN likewise. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Firefox } from './firefox.ts';
import { dataDir, freePort, Service } from './service.ts';
import { Stack } from './stack.ts';
import { Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

/** The namespace's address that is not loopback. */
const address = '10.77.0.2';
const secret = 'only-for-this-test-0123456789abcdef';
const wrong = 'of-another-relay-0123456789abcdefgh';
/** Debian's coturn, where it is installed. */
const coturn = '/usr/bin/turnserver';

let chromium: Chromium;
let firefox: Firefox;
let stack: Stack;
let turn: Service;
let other: ChildProcess | undefined;
let data: ReturnType<typeof dataDir>;
/** What each server is to be found as. */
const expected: string[] = [];

beforeAll(async () => {
  data = dataDir();
  const [own, admin, rival, closed] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const config = { listen: `${address}:${own}`, admin: `127.0.0.1:${admin}`, secrets: [secret], drain: '1s' };
  const file = data.write('turn.json', JSON.stringify({ turn: config }));
  turn = await Service.start(['turn', '--config', file], `http://127.0.0.1:${admin}/readyz`);
  const server = (url: string, code: string, key?: string) => {
    expected.push(`${url} ${code}`);
    return { urls: [url], ...(key && { secret: key }) };
  };
  const servers = [
    server(`turn:${address}:${own}?transport=udp`, 'ok', secret),
    server(`turn:${address}:${own}?transport=udp`, 'turn-refused', wrong),
    server(`turn:${address}:${own}?transport=tcp`, 'turn-refused', wrong),
    server(`turn:${address}:${closed}?transport=udp`, 'turn-dead', secret),
    server(`stun:${address}:${own}`, 'ok'),
    server(`stun:${address}:${closed}`, 'stun-dead'),
  ];
  if (existsSync(coturn)) {
    const rest = ['--no-cli', '--no-tls', '--no-dtls', '--log-file=stdout', '--realm=test', '--allow-loopback-peers'];
    const flags = ['-n', `--listening-ip=${address}`, `--listening-port=${rival}`, '--use-auth-secret', ...rest];
    other = spawn(coturn, [...flags, `--static-auth-secret=${secret}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    servers.push(
      server(`turn:${address}:${rival}?transport=udp`, 'ok', secret),
      server(`turn:${address}:${rival}?transport=tcp`, 'turn-refused', wrong),
    );
  }
  stack = await Stack.start({ split: true, tracker: { ice_servers: servers } });
  chromium = await Chromium.start();
  firefox = await Firefox.start();
});
afterAll(async () => {
  await firefox?.stop();
  await chromium?.stop();
  await stack?.stop();
  other?.kill('SIGKILL');
  await turn?.stop();
  data?.remove();
});

interface Finding {
  check: string;
  code: string;
  text: string;
  fix?: string;
}

/** What the page's doctor finds of relays. */
async function relays(name: string, browser: Chromium | Firefox): Promise<Finding[]> {
  const viewer = await Viewer.open(browser, stack.page({ level: 0, buffer: 12 }), { name });
  await viewer.page.waitForFunction(() => (window as unknown as PageWindow).leeway);
  const all: Finding[] = await viewer.page.evaluate(() => (window as unknown as PageWindow).leeway.doctor());
  await viewer.close();
  const found = all.filter(({ check }) => check === 'relays');
  figures(`relays of leeway.doctor(), ${name}`, { found });
  return found;
}

test('relays and STUN servers that are well are green, and of the others the fault is named', async () => {
  const both = await Promise.all([relays('chromium', chromium), relays('firefox', firefox)]);
  for (const found of both) {
    expect(found.map(({ text, code }) => `${text.split(' ')[0]} ${code}`).sort()).toEqual(expected.sort());
    for (const { code, fix } of found) {
      if (code === 'turn-refused') expect(fix).toMatch(/^compare the secret of tracker.ice_servers/);
      if (code.endsWith('-dead')) expect(fix).toMatch(/open its port/);
    }
  }
});
