import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { dataDir, freePort, metrics, Service, sum } from './service.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';

/** The namespace's address that is not loopback; the relay's and Chromium's. */
const address = '10.77.0.2';
const secret = 'only-for-this-test-0123456789abcdef';

let browser: Chromium;
let turn: Service;
let turnAdmin: string;
let servers: object;
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
  servers = { ice_servers: [{ urls: [`turn:${address}:${listen}?transport=udp`], secret }] };
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await turn?.stop();
  data?.remove();
});

test.concurrent('viewers that may show no address to each other give to each other by way of the relay', async () => {
  const stack = await Stack.start({ split: true, tracker: servers, policy: { role: 'relay-only' } });
  try {
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
  } finally {
    await stack.stop();
  }
});

/** Runs in the page: of other viewers it learns relayed addresses alone, as behind NATs that let nothing else through. */
function behindNats(): void {
  const Native = window.WebSocket;
  const relayed = (candidate: string) => / typ relay/.test(candidate);
  /** What of a message gets through; undefined: nothing. */
  const filtered = (text: string): string | undefined => {
    const message = JSON.parse(text);
    if (message.type !== 'signal' || message.role === 'seed') return text;
    if (message.kind === 'candidate' && !relayed(message.candidate)) return undefined;
    const keep = (line: string) => !line.startsWith('a=candidate:') || relayed(line);
    if (message.sdp) message.sdp = message.sdp.split('\r\n').filter(keep).join('\r\n');
    return JSON.stringify(message);
  };
  window.WebSocket = class extends Native {
    override set onmessage(f: ((event: MessageEvent) => void) | null) {
      super.onmessage =
        f &&
        ((event) => {
          const data = filtered(event.data);
          if (data) f(new MessageEvent('message', { data }));
        });
    }
  };
}

/** A viewer's open links, by role and path, and what came by relays. */
async function standing(viewer: Viewer): Promise<{ links: string[]; relayed: number; stalls: unknown[] }> {
  const [title] = (await viewer.stats()).titles;
  const links = (title?.engine?.peers ?? []).map(({ role, path }: Record<string, string>) => `${role}/${path}`);
  return { links: links.sort(), relayed: title?.totals.bytes.peer_relay ?? 0, stalls: (await viewer.seen()).stalls };
}

test.concurrent('a relay is asked last: when neither the origin nor a seed can serve', async () => {
  const stack = await Stack.start({ split: true, tracker: servers });
  try {
    const open = (name: string, buffer: number) =>
      Viewer.open(browser, stack.page({ level: 0, buffer }), { name, before: behindNats });
    // The viewer that is ahead holds what the other will want.
    const first = await open('first', 60);
    await first.until('6 s of film', (seen) => seen.currentTime > 6);
    const second = await open('second', 12);
    const both = ['seed/direct', 'viewer/relay'];
    await until('links by both ways', async () => `${(await standing(second)).links}` === `${both}`);
    await second.until('12 s of film', (seen) => seen.currentTime > 12);
    const calm = await Promise.all([first, second].map(standing));

    await stack.stopSeed();
    await until('the seed is gone', async () => `${(await standing(second)).links}` === 'viewer/relay');
    const alone = await standing(second);
    stack.origin.faults.push({ match: /\.(ts|m4s)$/, status: 503, askers: ['viewer'] });
    await until('bytes by the relay', async () => (await standing(second)).relayed > 0);
    const late = await standing(second);
    const errors = (await second.player()).errors.filter(({ fatal }) => fatal);
    figures('relay last', { calm, alone, late, errors });

    expect(calm.map(({ relayed }) => relayed)).toEqual([0, 0]);
    expect(calm[1]!.links).toEqual(both);
    // The origin still served.
    expect(alone.relayed).toBe(0);
    expect({ ...late, errors }).toMatchObject({ stalls: [], errors: [] });
    await Promise.all([first.close(), second.close()]);
  } finally {
    await stack.stop();
  }
});
