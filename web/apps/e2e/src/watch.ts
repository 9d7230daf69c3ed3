/**
 * One Chromium as a viewer of test/kube/test: `node watch.mjs PAGE PIN`. Opens the page, watches until it is told to end (SIGUSR2), and
 * prints what it saw in the words of `leeway viewer`. PIN is the hash of the one key that it takes without the signature of an issuer: a
 * user accepts the dev overlay's certificate by hand.
 */
import process, { argv, stderr, stdout } from 'node:process';
import { Chromium } from './browser.ts';
import { pause, Viewer } from './viewer.ts';

const [url, pin] = argv.slice(2) as [string, string];
let told = false;
process.once('SIGUSR2', () => (told = true)); // the others end puppeteer's browser at once

const begun = Date.now();
const browser = await Chromium.start([`--ignore-certificate-errors-spki-list=${pin}`]);
const viewer = await Viewer.open(browser, url, { name: 'Chromium' });
let links = 0;
for (let second = 0; !told; second++) {
  await pause(1000);
  const [seen, stats] = await Promise.all([viewer.seen(), viewer.stats()]);
  links = Math.max(links, stats?.titles[0]?.links.open ?? 0);
  if (second % 10 === 0) {
    stderr.write(
      `${Math.round(seen.currentTime)} s of film, ${Math.round(seen.bufferedAhead)} s ahead, ${seen.stalls.length} stalls, ${links} links\n`,
    );
    // What a Chromium without links is found by: was it introduced, is it off, why did segments not come from others.
    if (links === 0) stderr.write(`${JSON.stringify({ ...stats?.titles[0], engine: undefined }).slice(0, 900)}\n`);
  }
}
const [seen, stats] = await Promise.all([viewer.seen(), viewer.stats()]);
const watched = Date.now() - begun;
const stalled = seen.stalls.reduce((sum, { ms }) => sum + ms, 0);
stdout.write(
  `${JSON.stringify({
    // A film that stands still has not been watched, whatever its player says.
    ended: seen.ended || seen.paused || seen.currentTime * 1000 < watched / 2 ? 'early' : 'left',
    watched_ms: watched,
    stall_ratio: stalled / watched,
    errors: seen.errors.length,
    last_error: seen.errors.at(-1),
    links_opened: links,
    reconnects: stats?.session?.reconnects ?? 0,
    stats: {
      bytes: stats?.titles[0]?.totals.bytes ?? {},
      stalls: seen.stalls.length,
      startup_ms: Math.round(Math.max(0, seen.startup)),
    },
  })}\n`,
);
await browser.stop();
