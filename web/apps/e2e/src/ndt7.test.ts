/**
 * Clients of ndt7 that others wrote complete against `leeway probe serve`: npm's @m-lab/ndt7 as it is published, in both browsers,
 * and the ndt7-client of github.com/m-lab/ndt7-client-go where LEEWAY_NDT7_CLIENT names its binary.
 */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { Firefox } from './firefox.ts';
import { freePort, metrics, Service } from './service.ts';

const client = dirname(createRequire(import.meta.url).resolve('@m-lab/ndt7'));
let probe: Service;
let pages: Server;
let listen: string;
let admin: string;

beforeAll(async () => {
  listen = `127.0.0.1:${await freePort()}`;
  admin = `127.0.0.1:${await freePort()}`;
  probe = await Service.start(
    ['probe', 'serve', '--listen', listen, '--udp', '127.0.0.1:0', '--admin', admin],
    `http://${admin}/readyz`,
  );
  pages = createServer(async (request, response) => {
    const name = /^\/(ndt7[\w-]*\.js)$/.exec(request.url ?? '')?.[1];
    response.setHeader('Content-Type', name ? 'text/javascript' : 'text/html');
    response.end(name ? await readFile(join(client, name)) : '<!doctype html><script src="/ndt7.js"></script>');
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  pages?.close();
  expect(await probe?.stop()).toBe(0);
});

/** What the client says at the end of a test. */
interface Complete {
  LastClientMeasurement: { ElapsedTime: number; NumBytes: number; MeanClientMbps: number };
  LastServerMeasurement: {
    AppInfo: { ElapsedTime: number; NumBytes: number };
    TCPInfo: Record<string, number>;
    Test: string;
  };
}

async function check(page: Page): Promise<{ code: number; down: Complete; up: Complete; errors: string[] }> {
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  return await page.evaluate(async (server) => {
    const ends: Record<string, unknown> = {};
    const errors: string[] = [];
    // biome-ignore lint/suspicious/noExplicitAny: the client has no types
    const code = await (window as any).ndt7.test(
      { server, protocol: 'ws', mlabDataPolicyInapplicable: true },
      {
        downloadComplete: (end: unknown) => {
          ends.down = end;
        },
        uploadComplete: (end: unknown) => {
          ends.up = end;
        },
        error: (error: unknown) => errors.push(String(error)),
      },
    );
    return { code, down: ends.down as never, up: ends.up as never, errors };
  }, listen);
}

test.each([
  ['Chromium', () => Chromium.start()],
  ['Firefox', () => Firefox.start()],
] as const)('%s: download and upload complete', async (_name, start) => {
  const browser = await start();
  try {
    const before = (await metrics(`http://${admin}`)).get('leeway_probe_bytes_total{direction="down"}') ?? 0;
    const { code, down, up, errors } = await check(await browser.window());
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    const { AppInfo, TCPInfo } = down.LastServerMeasurement;
    expect(TCPInfo.BytesAcked).toBeGreaterThan(1e6);
    expect(TCPInfo.MinRTT).toBeGreaterThan(0);
    // The server's last measurement stands behind what it sent before, so that the client may have counted more by then;
    // the client counts the texts of measurements, too.
    const counted = await metrics(`http://${admin}`);
    const sent = counted.get('leeway_probe_bytes_total{direction="down"}')! - before;
    expect(down.LastClientMeasurement.NumBytes).toBeLessThanOrEqual(sent + 100_000);
    expect(down.LastClientMeasurement.NumBytes).toBeGreaterThan(AppInfo.NumBytes * 0.5);
    expect(up.LastServerMeasurement.Test).toBe('upload');
    expect(up.LastServerMeasurement.TCPInfo.BytesReceived).toBeGreaterThanOrEqual(
      up.LastServerMeasurement.AppInfo.NumBytes,
    );
    expect(up.LastServerMeasurement.AppInfo.NumBytes).toBeGreaterThan(1e6);
    expect(up.LastServerMeasurement.AppInfo.ElapsedTime).toBeGreaterThan(9e6);
    expect(counted.get('leeway_probe_tests_total{outcome="protocol",test="ndt7-upload"}')).toBe(0);
  } finally {
    await browser.stop();
  }
});

const other = process.env.LEEWAY_NDT7_CLIENT;

test.skipIf(!other)('ndt7-client: download and upload complete', async () => {
  const { stdout } = await promisify(execFile)(other!, [
    '-server',
    listen,
    '-scheme',
    'ws',
    '-format',
    'json',
    '-quiet',
  ]);
  const said = JSON.parse(stdout);
  for (const way of ['Download', 'Upload']) expect(said[way].Throughput).toMatchObject({ Unit: 'Mbit/s' });
  expect(said.Download.Throughput.Value).toBeGreaterThan(1);
  expect(said.Upload.Throughput.Value).toBeGreaterThan(1);
});
