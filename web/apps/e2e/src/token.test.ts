import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { metrics, sum } from './service.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

/** Good for so long: renewed several times while a test watches. */
const lifeSeconds = 8;
const secret = Buffer.alloc(32, 'only-for-this-test');
const key = { kty: 'oct', kid: 'e2e', alg: 'HS256', k: secret.toString('base64url') };

/** A join token as a site's backend makes one, without any help of ours. */
function mint(claims: object = {}, life = lifeSeconds): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + life;
  const text = `${encode({ alg: 'HS256', kid: 'e2e' })}.${encode({ site: 'e2e', exp, ...claims })}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start({ tokenKeys: { keys: [key] } });
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

function open(name: string, token: string | undefined): Promise<Viewer> {
  const attributes = token === undefined ? '' : `data-token="${token}"`;
  return Viewer.open(browser, stack.page({ level: 0, attributes }), { name });
}

/** A page that writes a fresh token into its tag each second. */
async function renewing(name: string): Promise<{ viewer: Viewer; stop(): Promise<void> }> {
  // The first is there before the page is, which may take its time.
  const viewer = await open(name, mint({}, 20));
  let on = true;
  const renew = async () => {
    while (on) {
      await viewer.page.evaluate((token) => {
        document.querySelector<HTMLElement>('script[data-tracker]')!.dataset.token = token;
      }, mint());
      await pause(1_000);
    }
  };
  const renewed = renew();
  return {
    viewer,
    async stop() {
      on = false;
      await renewed;
      await viewer.close();
    },
  };
}

const tokens = async (outcome: string) =>
  sum(await metrics(stack.admin), 'leeway_tracker_tokens_total', `outcome="${outcome}"`);

test('a token of seconds is renewed again and again, and no link ends', async () => {
  const first = await renewing('first');
  await first.viewer.until('5 s of film', (seen) => seen.currentTime > 5);
  const second = await renewing('second');
  const viewers = [first.viewer, second.viewer];
  // Three lives of the token after both were there.
  const began = Date.now();
  const deadline = began + 120_000;
  while (Date.now() < deadline && (Date.now() - began < 3_000 * lifeSeconds || (await tokens('renewed')) < 6)) {
    await pause(500);
  }
  const result = await Promise.all(
    viewers.map(async (v) => {
      const [told, stats, seen] = [await v.told(), await v.stats(), await v.seen()];
      return {
        name: v.name,
        reconnects: stats.session.reconnects,
        links: told.links.length,
        unlinks: told.unlinks,
        notices: told.notices,
        late: told.segments.slice(-3).reduce((n, { bytes }) => n + bytes.seed + bytes.peer, 0),
        stalls: seen.stalls,
        errors: v.consoleErrors(),
      };
    }),
  );
  const counted = {
    granted: await tokens('granted'),
    renewed: await tokens('renewed'),
    lapsed: await tokens('lapsed'),
  };
  figures('tokens', { life: lifeSeconds, watched: (Date.now() - began) / 1000, ...counted, viewers: result });
  await Promise.all([first.stop(), second.stop()]);

  expect(counted).toMatchObject({ granted: 2, lapsed: 0 });
  expect(counted.renewed).toBeGreaterThanOrEqual(6);
  for (const r of result) {
    expect(r, r.name).toMatchObject({ reconnects: 0, unlinks: [], notices: [], stalls: [], errors: [] });
    expect(r.links, r.name).toBeGreaterThan(0);
    expect(r.late, `${r.name}: the last segments`).toBeGreaterThan(0);
  }
});

test('without a good token: one clear notice, and the origin plays', async () => {
  const cases: { name: string; token?: string; code: string }[] = [
    { name: 'none', code: 'token-required' },
    {
      name: 'of another site',
      token: mint({ site: 'other', exp: Math.floor(Date.now() / 1000) + 3600 }),
      code: 'bad-token',
    },
    { name: 'long over', token: mint({ exp: 1_000_000_000 }), code: 'token-expired' },
  ];
  const result = await Promise.all(
    cases.map(async ({ name, token, code }) => {
      const viewer = await open(name, token);
      await viewer.until('6 s of film', (seen) => seen.currentTime > 6);
      // A page with a token might write a better one: it is asked a few times.
      const deadline = Date.now() + 40_000;
      while ((await viewer.told()).notices.length === 0 && Date.now() < deadline) await pause(250);
      const [told, seen] = [await viewer.told(), await viewer.seen()];
      await viewer.close();
      return {
        name,
        code,
        notices: told.notices,
        links: told.links,
        stalls: seen.stalls,
        errors: viewer.consoleErrors(),
      };
    }),
  );
  figures('tokens refused', { cases: result });
  for (const r of result) {
    expect(
      r.notices.map((n) => n.code),
      r.name,
    ).toEqual(['token-refused']);
    expect(r.notices[0]!.message, r.name).toContain(r.code);
    expect(r.notices[0]!.hint.length, r.name).toBeGreaterThan(5);
    expect(r, r.name).toMatchObject({ links: [], stalls: [], errors: [] });
  }
});
