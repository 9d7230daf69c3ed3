import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Stack, type StackOptions } from './stack.ts';
import { type Bytes, pause, Viewer } from './viewer.ts';

let browser: Chromium;
beforeAll(async () => {
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
});

/** So many viewers, 5 s apart, of one rendition until each has seen a minute: what came from where, after the first segment of each. */
export async function watch(name: string, options: StackOptions, viewers = 4) {
  const stack = await Stack.start({ split: true, ...options });
  const windows: Viewer[] = [];
  try {
    for (let i = 1; i <= viewers; i++) {
      windows.push(await Viewer.open(browser, stack.page({ level: 2, buffer: 20 }), { name: `viewer ${i}` }));
      if (i < viewers) await pause(5000);
    }
    const seen = await Promise.all(
      windows.map((v) => v.until('60 s of film', ({ currentTime }) => currentTime >= 60, 100_000)),
    );
    const titles = await Promise.all(windows.map(async (v) => (await v.stats()).titles[0]));
    // A first segment waits at most 0.75 s for a link, which a busy machine does not open by then.
    const segments = (await Promise.all(windows.map((v) => v.told()))).flatMap((told) => told.segments.slice(1));
    const sum: Bytes = { origin: 0, seed: 0, peer: 0 };
    for (const { bytes } of segments) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += bytes[k];
    const asked = stack.origin.segments();
    const result = {
      name,
      requestsPerSegment: round(asked.length / new Set(asked.map((r) => r.path)).size),
      bySeed: asked.filter((r) => r.asker === 'seed').length,
      afterFirst: round(sum.peer / (sum.origin + sum.seed + sum.peer)),
      stalls: seen.flatMap((s) => s.stalls),
      errors: windows.flatMap((v) => v.consoleErrors()),
      lists: stack.origin.ledger.filter((r) => r.path.endsWith('.leeway')).map((r) => r.status),
      contradictions: titles.reduce((n, t) => n + t.totals.contradictions, 0),
      counters: titles.map((t) => t.engine?.counters),
    };
    figures('packaged', result);
    return result;
  } finally {
    await Promise.all(windows.map((v) => v.close().catch(() => {})));
    await stack.stop();
  }
}

test('four viewers of a film that was signed at packaging share it without any seed', async () => {
  const f = await watch('no seed', { packaged: true, seedless: true });
  expect(f).toMatchObject({ stalls: [], errors: [], contradictions: 0, bySeed: 0, lists: [200, 200, 200, 200] });
  expect(f.counters[0]).toMatchObject({ lists: 1 });
  expect(f.afterFirst).toBeGreaterThanOrEqual(0.66);
  expect(f.requestsPerSegment).toBeLessThanOrEqual(1.4);
});
