import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Stack, type StackOptions } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

/** Scripts of earlier releases as they went out, a folder each. */
const frozen = join(import.meta.dirname, '../frozen');
const releases = readdirSync(frozen, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
/** What counts as served by a viewer: a segment and more, whichever source brought the first ones. */
const much = 300_000;

let browser: Chromium;
let stack: Stack;
/** One whose film is signed at packaging. */
let packaged: Stack;

async function start(options?: StackOptions): Promise<Stack> {
  const started = await Stack.start(options);
  for (const release of releases) {
    // A site that serves both scripts itself, and has not taken the new ones yet.
    for (const file of readdirSync(join(frozen, release))) {
      started.origin.pages.set(`/${release}/${file}`, () => readFileSync(join(frozen, release, file)));
    }
  }
  return started;
}

beforeAll(async () => {
  stack = await start();
  packaged = await start({ packaged: true });
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
  await packaged?.stop();
});

/** What a viewer has of others' bytes and gave of its own. */
async function exchanged(viewer: Viewer): Promise<{ got: number; gave: number }> {
  const title = (await viewer.stats())?.titles[0];
  return { got: title?.totals.bytes.peer ?? 0, gave: title?.totals.uploaded.direct ?? 0 };
}

/** Lets both play until a newcomer has had much from `from`, the only other viewer. */
async function serves(from: Viewer, newcomer: () => Promise<Viewer>): Promise<Viewer> {
  const before = (await exchanged(from)).gave;
  const to = await newcomer();
  for (const deadline = Date.now() + 90_000; Date.now() < deadline; await pause(500)) {
    if ((await exchanged(to)).got >= much && (await exchanged(from)).gave - before >= much) return to;
  }
  const state = await Promise.all([from, to].map(async (v) => ({ name: v.name, stats: await v.stats() })));
  throw new Error(`${to.name} did not get ${much} bytes from ${from.name}: ${JSON.stringify({ state })}`);
}

/** Opens viewers of a stack, and closes them: nothing went wrong that they could see, or their pages were told of. */
function visit(where: Stack) {
  const done: unknown[] = [];
  return {
    done,
    async open(name: string, script?: string): Promise<Viewer> {
      const viewer = await Viewer.open(browser, where.page({ level: 0, buffer: 12, script }), { name });
      await viewer.until('4 s of film', (seen) => seen.currentTime > 4, 60_000);
      return viewer;
    },
    async leave(viewer: Viewer): Promise<void> {
      const [seen, player, told, stats] = await Promise.all([
        viewer.seen(),
        viewer.player(),
        viewer.told(),
        viewer.stats(),
      ]);
      done.push({ name: viewer.name, version: stats.version, ...(await exchanged(viewer)) });
      expect({
        name: viewer.name,
        stalls: seen.stalls,
        fatal: player.errors.filter(({ fatal }) => fatal),
        notices: told.notices,
        contradictions: told.contradictions,
        banned: told.unlinks.filter(({ banned }) => banned),
        malformed: stats.session.malformed,
        rejected: stats.titles[0].totals.rejected_bytes ?? 0,
        errors: viewer.consoleErrors(),
      }).toEqual({
        name: viewer.name,
        stalls: [],
        fatal: [],
        notices: [],
        contradictions: 0,
        banned: [],
        malformed: 0,
        rejected: 0,
        errors: [],
      });
      await viewer.close();
    },
  };
}

test.each(releases)('a page with leeway.js %s plays with today’s tracker, seed and viewers', async (release) => {
  const { done, open, leave } = visit(stack);
  const script = `/${release}/leeway.js`;
  const old = await open(release, script);
  const today = await serves(old, () => open('today'));
  await leave(old);
  const another = await serves(today, () => open(`another ${release}`, script));
  await leave(today);
  await leave(another);
  figures('skew', { release, viewers: done });
});

test.each(releases)('a page with leeway.js %s plays where segments are signed at packaging', async (release) => {
  const { done, open, leave } = visit(packaged);
  const script = `/${release}/leeway.js`;
  const old = await open(release, script);
  const today = await serves(old, () => open('today'));
  await leave(old);
  // It does not know what today's viewers certify with a packager's signature, and blames no peer for that.
  const another = await open(`another ${release}`, script);
  await another.until('20 s of film', (seen) => seen.currentTime > 20, 60_000);
  await leave(today);
  await leave(another);
  figures('skew', { release, packaged: true, viewers: done });
});
