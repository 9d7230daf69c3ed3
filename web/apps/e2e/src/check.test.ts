/** The page /check of `leeway probe serve`, in both browsers, against the real server and against lines that fail. */

import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Chromium } from './browser.ts';
import { Firefox } from './firefox.ts';
import { dataDir, freePort, metrics, Service } from './service.ts';

/** Firefox opens no data channels on loopback. */
const host = '10.77.0.2';
let probe: Service;
const turns: Service[] = [];
let data: ReturnType<typeof dataDir>;
let port: number;
let admin: string;

beforeAll(async () => {
  port = await freePort();
  admin = `http://127.0.0.1:${await freePort()}`;
  data = dataDir();
  const stun: string[] = [];
  // Of one address: to another address of its own a machine sends from there, so a page would see two mappings.
  for (const name of ['one', 'other']) {
    const [listen, ready] = [`${host}:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const turn = { listen, admin: ready, secrets: ['s'.repeat(32)], drain: '1s' };
    const file = data.write(`${name}.json`, JSON.stringify({ turn }));
    turns.push(await Service.start(['turn', '--config', file], `http://${ready}/readyz`));
    stun.push(listen);
  }
  const args = [
    'probe',
    'serve',
    '--config',
    data.write('probe.json', JSON.stringify({ probe: { stun } })),
    '--open',
    '--listen',
    `${host}:${port}`,
    '--udp',
    `${host}:0`,
    '--admin',
    admin.slice(7),
  ];
  probe = await Service.start(args, `${admin}/readyz`);
});
afterAll(async () => {
  expect(await probe?.stop()).toBe(0);
  for (const turn of turns) expect(await turn.stop()).toBe(0);
  data?.remove();
});

const state = (page: Page, ...wanted: string[]) =>
  page.waitForFunction(
    (all) => all.includes(document.getElementById('main')!.dataset.state!),
    { timeout: 60_000 },
    wanted,
  );

/** What the page says: rows of its table as name, direction and the value with its unit, and the sentence. */
const shown = (page: Page) =>
  page.evaluate(() => ({
    state: document.getElementById('main')!.dataset.state,
    code: document.getElementById('main')!.dataset.code,
    sentence: document.getElementById('sentence')!.textContent,
    next: document.getElementById('next')!.textContent,
    link: (document.getElementById('link') as HTMLInputElement).value,
    verdicts: document.querySelectorAll('#verdict li').length,
    reached: document.querySelector('#verdict li:last-child .why')?.textContent,
    rows: [...document.querySelectorAll('#details tbody tr')].map((row) => {
      const [name, direction, value] = [...row.children] as HTMLElement[];
      return { name: name!.textContent!, direction: direction!.textContent!, value: Number.parseFloat(value!.title) };
    }),
  }));

describe.each([
  ['Chromium', () => Chromium.start()],
  ['Firefox', () => Firefox.start()],
] as const)('%s', (_name, start) => {
  test('a check is complete, its figures are those of the server, and its link has them', async () => {
    const browser = await start();
    try {
      const page = await browser.window();
      const asked: string[] = [];
      page.on('request', (request) => asked.push(request.url()));
      const before = await metrics(admin);
      await page.goto(`http://${host}:${port}/check?seconds=2`);
      await page.click('#go');
      await state(page, 'done', 'error');
      const after = await metrics(admin);
      const { sentence, rows, verdicts, reached, link } = await shown(page);
      const figure = (name: string, direction: string): number => {
        const row = rows.find((row) => row.name === name && row.direction === direction);
        if (!row) throw new Error(`no figure "${name}", ${direction}, among ${JSON.stringify(rows)}`);
        return row.value;
      };
      expect(sentence).toMatch(/down, .* up, .* round trip/);
      expect(verdicts).toBe(6);
      expect(reached).toMatch(/^By IPv4: (UDP goes through|Packets arrive)/);
      for (const direction of ['down', 'up']) {
        const rate = figure('Throughput', direction);
        const key = `leeway_probe_bytes_total{direction="${direction}"}`;
        const bytes = after.get(key)! - before.get(key)!;
        // What counts is the time after the ramp-up of two thirds of a second.
        expect(rate).toBeGreaterThan(1e6);
        expect((rate * 1.2) / 8).toBeLessThan(bytes);
        expect(figure('Largest packet', direction)).toBeGreaterThan(500);
        expect(figure('Lost messages', direction)).toBeLessThan(0.3); // a busy machine drops some
      }
      // Questions on the loaded WebSockets; within a machine a browser may see no time of a handshake, and then there is no figure.
      const questions = 'leeway_probe_client_reports_total{outcome="taken"}';
      expect(after.get(questions)! - before.get(questions)!).toBeGreaterThan(3);
      // Between two programs of one machine a kernel may see no round trip of one direction.
      expect(rows.some(({ name, value }) => name === 'Round trip under load' && value > 0)).toBe(true);
      expect(figure('Round trip of messages', 'both ways')).toBeGreaterThan(0);
      expect(asked.filter((url) => !url.startsWith(`http://${host}:${port}/`) && !/^(data|blob):/.test(url))).toEqual(
        [],
      );

      const other = await browser.window();
      await other.goto(link);
      await state(other, 'done');
      const again = await shown(other);
      expect(again.sentence).toBe(sentence);
      expect(again.next).toContain('shared');
      expect(again.rows.map(({ name, direction }) => [name, direction])).toEqual(
        rows.map(({ name, direction }) => [name, direction]),
      );
      for (const [i, { value }] of again.rows.entries())
        expect(value / (rows[i]!.value || 1)).toBeCloseTo(rows[i]!.value ? 1 : 0, 4);

      // In the page: a browser that is busy with a fast download hears of a click late.
      await page.evaluate(() => {
        const go = document.getElementById('go')!;
        go.click();
        const wait = setInterval(() => {
          if (!document.querySelector('[data-phase="download"][aria-current]')) return;
          clearInterval(wait);
          go.click();
        }, 20);
      });
      await state(page, 'error');
      expect(await shown(page)).toMatchObject({ code: 'aborted', rows: [] });
    } finally {
      await browser.stop();
    }
  });
});

test('a check that gives way says what is free each way, and the address keeps its switch', async () => {
  const browser = await Chromium.start();
  try {
    const page = await browser.window();
    const before = await metrics(admin);
    await page.goto(`http://${host}:${port}/check?seconds=2`);
    await page.click('#gives-way');
    expect(page.url()).toContain('gives-way=1');
    expect((await shown(page)).next).toContain('what other traffic leaves');
    await page.click('#go');
    await state(page, 'done', 'error');
    const { sentence, rows, verdicts, link } = await shown(page);
    expect(sentence).toMatch(/ free down, .* free up/);
    expect(rows.map(({ name, direction }) => [name, direction])).toEqual([
      ['Left by other traffic', 'down'],
      ['Left by other traffic', 'up'],
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
    expect(verdicts).toBe(1);
    expect(link).toContain('gives-way=1');

    // A connection of data channels each way, and none of TCP; the server ends the second one when it hears of its close.
    const ended = (all: Map<string, number>, test: string) =>
      [...all].reduce(
        (n, [key, value]) => n + (/^leeway_probe_tests_total/.test(key) && key.includes(test) ? value : 0),
        0,
      );
    await vi.waitFor(
      async () => expect(ended(await metrics(admin), '"quality"') - ended(before, '"quality"')).toBe(2),
      { timeout: 20_000, interval: 200 },
    );
    const after = await metrics(admin);
    expect(ended(after, 'ndt7')).toBe(ended(before, 'ndt7'));
    for (const direction of ['down', 'up']) {
      const key = `leeway_probe_bytes_total{direction="${direction}"}`;
      expect(after.get(key)! - before.get(key)!).toBeGreaterThan(10_000);
    }

    await page.goto(`http://${host}:${port}/check?seconds=2&gives-way=1`);
    expect(await page.evaluate(() => (document.getElementById('gives-way') as HTMLInputElement).checked)).toBe(true);
  } finally {
    await browser.stop();
  }
});

/** A way to the server that fails: connections are taken and stay silent, or nothing goes on after so many bytes. */
async function badWay(): Promise<{ server: Server; at: string; silent(): void; stopAfter(bytes: number): void }> {
  let left = Number.POSITIVE_INFINITY;
  let mute = false;
  const all = new Set<Socket>();
  const server = createServer((client) => {
    all.add(client);
    client.on('error', () => {});
    if (mute) return;
    const onward = connect(port, host);
    all.add(onward);
    onward.on('error', () => {});
    client.on('close', () => onward.destroy());
    onward.on('close', () => client.destroy());
    for (const [from, to] of [
      [client, onward],
      [onward, client],
    ] as const) {
      from.on('data', (chunk) => {
        left -= chunk.length;
        if (left <= 0) from.pause();
        else if (!to.write(chunk)) from.pause();
      });
      to.on('drain', () => left > 0 && from.resume());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const close = server.close.bind(server);
  server.close = (done) => {
    for (const socket of all) socket.destroy();
    return close(done);
  };
  return {
    server,
    at: `http://${host}:${(server.address() as { port: number }).port}/check?seconds=2`,
    silent() {
      mute = true;
      for (const socket of all) socket.destroy();
    },
    stopAfter(bytes) {
      left = bytes;
    },
  };
}

test('a server that accepts and is silent, and one that stops in the middle: the page says what to do', async () => {
  const browser = await Chromium.start();
  const way = await badWay();
  try {
    const page = await browser.window();
    await page.goto(way.at);
    way.stopAfter(1e6);
    await page.click('#go');
    await state(page, 'error', 'done');
    expect(await shown(page)).toMatchObject({
      state: 'error',
      code: 'stopped',
      next: expect.stringContaining('cable'),
    });
    way.silent();
    await page.click('#go');
    await state(page, 'running');
    await state(page, 'error', 'done');
    expect(await shown(page)).toMatchObject({ code: 'unreachable', next: expect.stringContaining('firewall') });
  } finally {
    way.server.close();
    await browser.stop();
  }
});

test('a link that was cut, a day that is used up, and a server that goes: the page says what to do', async () => {
  const [at, ready] = [`${host}:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
  const start = (probe: object) => {
    const file = data.write('other.json', JSON.stringify({ probe: { drain: '100ms', ...probe } }));
    const args = ['probe', 'serve', '--config', file, '--open', '--listen', at, '--udp', `${host}:0`, '--admin'];
    return Service.start([...args, ready.slice(7)], `${ready}/readyz`);
  };
  const browser = await Chromium.start();
  let server = await start({ daily_bytes: 4_000_000 });
  try {
    const page = await browser.window();
    await page.goto(`http://${at}/check?seconds=2#r=WzEsInBy`);
    expect(await shown(page)).toMatchObject({ state: 'idle', next: expect.stringContaining('as a whole') });
    await page.click('#go');
    await state(page, 'error', 'done');
    expect(await shown(page)).toMatchObject({
      code: 'refused',
      sentence: expect.stringContaining('as many checks as it may'),
      next: expect.stringContaining('Try again in'),
    });
    await server.stop();

    server = await start({});
    await page.goto(`http://${at}/check?seconds=4`);
    await page.click('#go');
    await page.waitForSelector('.gauge[data-kind="down"][data-live]'); // something has come
    await server.kill();
    await state(page, 'error', 'done');
    expect(await shown(page)).toMatchObject({
      code: 'stopped',
      sentence: expect.stringContaining(`${at} has stopped answering`),
      next: expect.stringContaining('try again in a few minutes'),
    });
  } finally {
    await server.stop();
    await browser.stop();
  }
});
