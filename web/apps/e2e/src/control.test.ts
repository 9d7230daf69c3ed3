/** The control group: the origin alone serves it, in a browser as without one, and it is counted apart. */
import { spawn } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { binary } from './paths.ts';
import { metrics, sum } from './service.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';

const manifest = '/media/film/240p/index.m3u8';

let browser: Chromium;
let stack: Stack;

beforeEach(async () => {
  stack = await Stack.start({ policy: { control_group_permille: 1000 }, tracker: { stats_interval: '1s' } });
  browser = await Chromium.start();
});
afterEach(async () => {
  await browser?.stop();
  await stack?.stop();
});

test('viewers of the control group meet no peer, and what they see is counted as theirs', async () => {
  const tracker = stack.tracker.replace('http', 'ws');
  const headless = spawn(binary, ['viewer', '--tracker', tracker, '--leave', '20s', stack.origin.url(manifest)], {
    stdio: 'ignore',
  });
  const over = new Promise((resolve) => headless.once('exit', resolve));
  const viewer = await Viewer.open(browser, stack.page({ manifest }), { name: 'Chromium' });
  await viewer.until('8 s of film', (seen) => seen.currentTime >= 8, 60_000);
  const [title] = (await viewer.stats()).titles;
  await over;
  const of = async (name: string, ...labels: string[]) => sum(await metrics(stack.admin), name, ...labels);
  // Two viewers have more than one of them alone could.
  await until(
    'both are counted',
    async () => (await of('leeway_viewer_startup_seconds_count', 'variant="control"')) === 2,
  );
  expect(title.totals.bytes).toMatchObject({ peer: 0, seed: 0 });
  expect(await of('leeway_viewer_played_seconds_total', 'variant="control"')).toBeGreaterThan(5);
  expect(await of('leeway_viewer_received_bytes_total', 'variant="control"', 'source="origin"')).toBeGreaterThan(
    100_000,
  );
  expect(await of('leeway_viewer_segment_reasons_total', 'reason="control-group"')).toBeGreaterThan(2);
  expect(await of('leeway_viewer_played_seconds_total', 'variant="peer"')).toBe(0);
  expect(await of('leeway_tracker_introductions_total')).toBe(0);
});
