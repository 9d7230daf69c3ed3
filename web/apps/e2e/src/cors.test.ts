/** What an origin on another host lets a page read: where the player can play it plays with Leeway too, and where it cannot, it hears the same. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import type { Asker } from './origin.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';
import type { PageOptions } from './watched.ts';

let browser: Chromium;
let stack: Stack;

/** Every segment as a range of its file, so that the player asks for each with `Range`. */
const ranges = '/media/film/240p/ranges.m3u8';

// For each test and try: a seed that has what an earlier one asked for would hide what the origin withholds.
beforeEach(async () => {
  stack = await Stack.start();
  const lines = (await stack.origin.body('/media/film/240p/index.m3u8')).toString().split('\n');
  const sized = await Promise.all(
    lines.map(async (line) => {
      if (!line || line.startsWith('#')) return line;
      return `#EXT-X-BYTERANGE:${(await stack.origin.body(`/media/film/240p/${line}`)).length}@0\n${line}`;
    }),
  );
  stack.origin.pages.set(ranges, () => sized.join('\n'));
  // Where redirects lead to.
  stack.origin.manners.set('hostile', (request, response) => {
    response.setHeader('Access-Control-Allow-Origin', new URL(request.url!, 'http://x').searchParams.get('allow')!);
    return false;
  });
  browser = await Chromium.start();
});
afterEach(async () => {
  await browser?.stop();
  await stack?.stop();
});

const segment = /\.ts$/;

/** Cross-origin headers that are not there. */
function mute(response: ServerResponse): void {
  response.removeHeader('Access-Control-Allow-Origin');
  response.removeHeader('Timing-Allow-Origin');
}

/** Sends a segment's reader to another host, which lets these origins read. */
function redirect(request: IncomingMessage, response: ServerResponse, path: string, allow: string): boolean {
  if (!segment.test(path)) return false;
  response.writeHead(302, { Location: stack.origin.url(`${request.url}?allow=${allow}`, 'hostile') }).end();
  return true;
}

interface Case {
  name: string;
  asker: Asker;
  manners: (request: IncomingMessage, response: ServerResponse, path: string) => boolean;
  options?: PageOptions;
}

/** Opens a case's page without Leeway, then with it, each until `enough` holds. */
async function compare({ name, asker, manners, options }: Case, enough: (look: Look, leeway: boolean) => boolean) {
  stack.origin.manners.set(asker, manners);
  const manifest = stack.origin.url(options?.manifest ?? '/media/film/master.m3u8', asker);
  const all = { level: 0, buffer: 12, ...options, manifest };
  const visit = async (url: string, leeway: boolean) => {
    const viewer = await Viewer.open(browser, url, { name: `${name}${leeway ? ', with Leeway' : ''}` });
    // What is missing then the figures show, and the expectations say.
    await until(name, async () => enough(await look(viewer), leeway), 90_000).catch(() => {});
    const seen = await look(viewer);
    await viewer.close();
    return seen;
  };
  return { name, plain: await visit(stack.plain(all), false), leeway: await visit(stack.page(all), true) };
}

/** What one viewer saw. */
interface Look {
  /** Segments that the player was given. */
  given: number;
  played: number;
  errors: string[];
  fatal: number;
  codes: string[];
  others: number;
}

async function look(viewer: Viewer): Promise<Look> {
  const [{ currentTime }, { errors, loaded }, told] = await Promise.all([
    viewer.seen(),
    viewer.player(),
    viewer.told(),
  ]);
  return {
    given: loaded.length,
    played: currentTime,
    // Not what becomes of a buffer, or of a time-out, on a busy machine.
    errors: errors.filter(({ details }) => details.endsWith('LoadError')).map((e) => `${e.details} ${e.code}`),
    fatal: errors.filter(({ fatal }) => fatal).length,
    codes: told.notices.map(({ code }) => code),
    others: told.segments.reduce((sum, { bytes }) => sum + bytes.seed + bytes.peer, 0),
  };
}

const plays = ({ given, played, others }: Look, leeway: boolean) => given >= 3 && played > 1 && (!leeway || others > 0);

test('what a player may read plays, whatever headers are missing', async () => {
  const results = await Promise.all([
    compare(
      {
        name: 'one page alone may read, and no header',
        asker: 'line1',
        manners(request, response) {
          mute(response);
          response.setHeader('Access-Control-Allow-Origin', request.headers.origin ?? 'null');
          response.setHeader('Vary', 'Origin');
          return false;
        },
      },
      plays,
    ),
    compare(
      {
        name: 'redirected to a host that lets all read',
        asker: 'line2',
        manners: (request, response, path) => redirect(request, response, path, '*'),
      },
      plays,
    ),
    compare(
      {
        name: 'ranges, and a preflight that does not allow them',
        asker: 'line3',
        options: { manifest: ranges, header: 'x-player' },
        manners(request, response) {
          if (request.method !== 'OPTIONS') return false;
          response.writeHead(204, { 'Access-Control-Allow-Headers': 'x-player' }).end();
          return true;
        },
      },
      plays,
    ),
  ]);
  const preflights = stack.origin.ledger.filter((r) => r.asker === 'line3' && r.method === 'OPTIONS').length;
  const partial = stack.origin.segments('line3').filter((r) => r.status === 206).length;
  figures('origins that play', { results, preflights, partial });
  for (const { name, plain, leeway } of results) {
    for (const seen of [plain, leeway]) {
      expect(seen, name).toMatchObject({ errors: [], fatal: 0, codes: [] });
      expect(seen.given, name).toBeGreaterThanOrEqual(3);
      expect(seen.played, name).toBeGreaterThan(1);
    }
    expect(leeway.others, name).toBeGreaterThan(0);
  }
  expect(preflights).toBeGreaterThan(0);
  expect(partial).toBeGreaterThan(0);
});

test('what a player may not read it hears of as it would without Leeway', async () => {
  const manifest = ({ fatal }: Look) => fatal > 0;
  /** Or others had the segments. */
  const heard = ({ errors, played }: Look) => errors.length > 1 || played > 1;
  const results = await Promise.all([
    compare(
      {
        name: 'nothing may be read',
        asker: 'line1',
        manners: (_, response) => {
          mute(response);
          return false;
        },
      },
      manifest,
    ),
    compare(
      {
        name: 'no preflight is answered',
        asker: 'line2',
        options: { header: 'x-player' },
        manners(request, response) {
          if (request.method !== 'OPTIONS') return false;
          mute(response);
          response.writeHead(403).end();
          return true;
        },
      },
      manifest,
    ),
    compare(
      {
        name: 'segments may not be read',
        asker: 'line3',
        manners(_, response, path) {
          if (segment.test(path)) mute(response);
          return false;
        },
      },
      heard,
    ),
    compare(
      {
        name: 'redirected to a host that lets the page alone read',
        asker: 'line4',
        manners: (request, response, path) =>
          redirect(request, response, path, stack.origin.url('').replace(/\/$/, '')),
      },
      heard,
    ),
  ]);
  figures('origins that do not play', { results });
  for (const { name, plain, leeway } of results.slice(0, 2)) {
    expect(plain.fatal, name).toBe(1);
    expect(leeway, name).toMatchObject({ errors: plain.errors, fatal: 1, codes: [] });
  }
  // Segments that others hold may come from them: then it plays.
  for (const { name, plain, leeway } of results.slice(2)) {
    expect(new Set(plain.errors), name).toEqual(new Set(['fragLoadError 0']));
    expect(
      leeway.errors.filter((error) => error !== 'fragLoadError 0'),
      name,
    ).toEqual([]);
    expect(leeway.codes, name).toEqual([]);
  }
});

/** Plays what may not be read until the player gives up, and what it was told, and what was asked for it, until then. */
async function giveUp(folder: string, asker: Asker, withLeeway: boolean) {
  stack.origin.manners.set(asker, (_, response, path) => {
    if (segment.test(path)) mute(response);
    return false;
  });
  const since = stack.origin.ledger.length;
  const options = { level: 0, buffer: 12, manifest: stack.origin.url(`${folder}index.m3u8`, asker) };
  const url = withLeeway ? stack.page(options) : stack.plain(options);
  const viewer = await Viewer.open(browser, url, { name: withLeeway ? 'with Leeway' : 'without' });
  await until('the player gives up', async () => (await look(viewer)).fatal > 0, 90_000).catch(() => {});
  // Longer than the player's longest wait: a page that went on by itself would be seen.
  await pause(10_000);
  const [{ errors, loaded }, told] = await Promise.all([viewer.player(), viewer.told()]);
  const console = viewer.consoleErrors();
  await viewer.close();
  const requests = stack.origin.ledger.slice(since).filter((r) => r.asker === asker && segment.test(r.path));
  return {
    errors,
    given: loaded.length,
    requests: requests.map(({ method, path, status }) => `${method} ${path} ${status}`),
    spanMs: requests.length && requests.at(-1)!.at - requests[0]!.at,
    // The console and the report alone are told why: scripts see a network error, whatever it was.
    explained: console.filter((text) => text.includes("No 'Access-Control-Allow-Origin' header")).length,
    uncaught: console.filter((text) => text.startsWith('uncaught')),
    told,
  };
}

test('where no peer has the segments, player and origin see what they would see without Leeway, to the end', async () => {
  const folder = '/media/film/360p/';
  // The seed is there to be blamed, and has none of these either.
  stack.origin.faults.push({ match: new RegExp(`^${folder}.*\\.ts$`), askers: ['seed'], status: 403 });
  const [plain, leeway] = await Promise.all([giveUp(folder, 'line1', false), giveUp(folder, 'line2', true)]);
  figures('segments that may not be read, to the end', { plain, leeway });

  expect(plain.errors.length).toBeGreaterThan(2);
  expect(plain.errors.at(-1)).toEqual({ type: 'networkError', details: 'fragLoadError', fatal: true, code: 0 });
  expect(leeway.errors).toEqual(plain.errors);
  expect(leeway.requests).toEqual(plain.requests);
  expect(leeway.spanMs).toBeLessThan(plain.spanMs + 10_000);
  for (const seen of [plain, leeway]) {
    expect(seen).toMatchObject({ given: 0, explained: seen.requests.length, uncaught: [] });
  }
  // A link to the seed stands and stays.
  expect(leeway.told.links.map(({ role }) => role)).toEqual(['seed']);
  expect(leeway.told).toMatchObject({ unlinks: [], notices: [], segments: [], contradictions: 0 });
});
