import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { dataDir, freePort, metrics, Service, sum } from './service.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

/** The namespace's address that is not loopback; the relay's and Chromium's. */
const address = '10.77.0.2';
const secret = 'only-for-this-test-0123456789abcdef';

let browser: Chromium;
let stack: Stack;
let turn: Service;
let turnAdmin: string;
let data: ReturnType<typeof dataDir>;

beforeAll(async () => {
  data = dataDir();
  const [listen, admin] = [await freePort(), await freePort()];
  turnAdmin = `http://127.0.0.1:${admin}`;
  const config = data.write(
    'turn.json',
    JSON.stringify({
      turn: { listen: `${address}:${listen}`, admin: `127.0.0.1:${admin}`, secrets: [secret], drain: '1s' },
    }),
  );
  turn = await Service.start(['turn', '--config', config], `${turnAdmin}/readyz`);
  stack = await Stack.start({
    split: true,
    tracker: { ice_servers: [{ urls: [`turn:${address}:${listen}?transport=udp`], secret }] },
    policy: { role: 'relay-only' },
  });
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
  await turn?.stop();
  data?.remove();
});

test('viewers who may show no address to each other give to each other by way of the relay', async () => {
  const first = await Viewer.open(browser, stack.page({ level: 0 }), { name: 'first' });
  await first.until('10 s of film', (seen) => seen.currentTime > 10, 60_000);
  const second = await Viewer.open(browser, stack.page({ level: 0 }), { name: 'second' });
  const received = async (...labels: string[]) =>
    sum(await metrics(stack.admin), 'leeway_viewer_received_bytes_total', ...labels);
  const deadline = Date.now() + 60_000;
  while ((await received('source="peer"', 'path="relay"')) === 0 && Date.now() < deadline) await pause(500);
  const relay = await metrics(turnAdmin);
  const stats = await second.stats();

  expect(await received('source="peer"', 'path="relay"'), JSON.stringify(stats)).toBeGreaterThan(0);
  expect(await received('source="peer"', 'path="direct"')).toBe(0);
  // Links to seeds stay direct.
  expect(await received('source="seed"', 'path="relay"')).toBe(0);
  expect(sum(relay, 'leeway_turn_allocations_total', 'outcome="granted"')).toBeGreaterThanOrEqual(2);
  expect(sum(relay, 'leeway_turn_relayed_bytes_total')).toBeGreaterThan(0);
  await Promise.all([first.close(), second.close()]);
});
