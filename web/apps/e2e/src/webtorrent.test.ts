import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Announce, startLeeway, startReference } from './announce.ts';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import type { Seen } from './instrument.ts';
import { Origin } from './origin.ts';
import { filmDir } from './stack.ts';
import {
  bundle,
  type Contacts,
  installTorrentPages,
  leech,
  play,
  seed,
  type TorrentWindow,
  type Traffic,
  watchContacts,
} from './torrents.ts';
import { Viewer } from './viewer.ts';

let browser: Chromium;
let origin: Origin;
let trackers: Announce[];

beforeAll(async () => {
  origin = await Origin.start(filmDir());
  installTorrentPages(origin);
  const hosts = [`127.0.0.1:${origin.port()}`];
  trackers = [await startLeeway(hosts, 2), await startReference()];
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await Promise.all((trackers ?? []).map((tracker) => tracker.stop()));
  await origin?.stop();
});

/** A page of the origin, once `ready` is in its window. */
async function open(path: string, ready: 'WebTorrent' | 'P2PHls', name: string): Promise<Viewer> {
  const viewer = await Viewer.open(browser, origin.url(path), { name, before: watchContacts });
  await viewer.page.waitForFunction((field: string) => field in window, {}, ready);
  return viewer;
}

interface Figures {
  seen: Seen;
  traffic: Traffic;
  turned: Awaited<ReturnType<typeof contacts>>;
}

/** Bytes that a viewer has to have from the other. */
const least = 500_000;

/** What a page turned to: WebSockets, STUN and TURN servers, hosts of other requests. */
async function contacts(viewer: Viewer): Promise<Contacts & { hosts: string[] }> {
  return viewer.page.evaluate(() => ({
    ...(window as unknown as TorrentWindow).__contacts,
    hosts: [...new Set(performance.getEntriesByType('resource').map(({ name }) => new URL(name).host))].filter(
      (host) => host !== '',
    ),
  }));
}

/** A viewer of the film by p2p-media-loader. */
async function watch(announce: string, name: string): Promise<Viewer> {
  const viewer = await open('/p2pml.html', 'P2PHls', name);
  await viewer.page.evaluate(play, { announce, manifest: '/media/film/master.m3u8' });
  return viewer;
}

const traffic = (viewer: Viewer): Promise<Traffic> =>
  viewer.page.evaluate(() => (window as unknown as TorrentWindow).__traffic);

describe.each([
  ['two of leeway', 0],
  ['bittorrent-tracker', 1],
])('%s', (_, i) => {
  test.skipIf(!bundle)('webtorrent: a file goes from page to page by its info_hash', async () => {
    const { urls, name } = trackers[i]!;
    const size = 3_000_001;
    const first = await open('/torrent.html', 'WebTorrent', 'first');
    const file = await first.page.evaluate(seed, { announce: urls.at(0)!, size });
    const second = await open('/torrent.html', 'WebTorrent', 'second');
    const fetched = await second.page.evaluate(leech, { announce: urls.at(-1)!, infoHash: file.infoHash });
    const turned = [await contacts(first), await contacts(second)];
    // The peer that fetched it is a seed now; the first one is gone.
    await first.close();
    const third = await open('/torrent.html', 'WebTorrent', 'third');
    const again = await third.page.evaluate(leech, { announce: urls.at(0)!, infoHash: file.infoHash });
    turned.push(await contacts(third));
    figures('webtorrent', { tracker: name, file, fetched, again, turned });
    await Promise.all([second.close(), third.close()]);
    expect(file.announce).toEqual([urls.at(0)]);
    for (const f of [fetched, again]) {
      expect(f).toMatchObject({ digest: file.digest, size });
      expect(f.received).toBeGreaterThanOrEqual(size);
    }
    const hosts = [`127.0.0.1:${origin.port()}`];
    expect(turned).toEqual([0, -1, 0].map((n) => ({ sockets: [urls.at(n)], ice: [], hosts })));
    for (const v of [first, second, third]) expect(v.consoleErrors(), v.name).toEqual([]);
  });

  test('p2p-media-loader: a viewer gets segments from another', async () => {
    const { urls, name, metric } = trackers[i]!;
    const first = await watch(urls.at(0)!, 'first');
    await first.until('3 s of film', (seen) => seen.currentTime > 3);
    const second = await watch(urls.at(-1)!, 'second');
    await second.until('5 s of film', (seen) => seen.currentTime > 5);
    await second.page.waitForFunction((n) => (window as unknown as TorrentWindow).__traffic.p2p > n, {}, least);
    // The sender counts before the receiver.
    const viewers: Figures[] = [];
    for (const v of [second, first])
      viewers.unshift({ seen: await v.seen(), traffic: await traffic(v), turned: await contacts(v) });
    figures('p2p-media-loader', {
      tracker: name,
      viewers: viewers.map(({ seen, traffic, turned }) => ({
        played: round(seen.currentTime, 1),
        startup: Math.round(seen.startup),
        stalls: seen.stalls,
        traffic,
        turned,
      })),
    });
    await Promise.all([first.close(), second.close()]);
    const [one, two] = viewers as [Figures, Figures];
    expect(two.traffic.p2p).toBeGreaterThan(least);
    expect(one.traffic.uploaded).toBeGreaterThanOrEqual(two.traffic.p2p);
    const hosts = [`127.0.0.1:${origin.port()}`];
    // One socket for all of a page's swarms.
    expect(viewers.map((v) => v.turned)).toEqual([0, -1].map((n) => ({ sockets: [urls.at(n)], ice: [], hosts })));
    expect(viewers.map((v) => v.traffic.warnings)).toEqual([[], []]);
    for (const code of ['bad-message', 'peer-id-taken', 'rate-limited']) {
      expect(await metric('leeway_tracker_webtorrent_refused_total', `code="${code}"`), code).toBe(0);
    }
  });
});

test('p2p-media-loader: a swarm for each rendition on one socket, and a stream that is loaded anew finds its peers', async () => {
  const { urls, metric } = trackers[0]!;
  const gauge = (name: string) => metric(`leeway_tracker_webtorrent_${name}`);
  const first = await watch(urls[0]!, 'first');
  await first.until('the first picture', (seen) => seen.currentTime > 0);
  const second = await watch(urls[1]!, 'second');
  await expect.poll(async () => (await traffic(first)).peers.length, { timeout: 20_000 }).toBe(1);
  await second.page.evaluate(() => (window as unknown as TorrentWindow).__level(0));
  const gauges = async () => [await gauge('swarms'), await gauge('peers'), await gauge('connections')];
  await expect.poll(gauges, { timeout: 30_000 }).toEqual([2, 3, 2]);
  await second.page.evaluate(() => (window as unknown as TorrentWindow).__level(1));
  // It has answered an offer, so its client holds the last socket for a second, and its peer_id with it.
  await first.page.evaluate(() => (window as unknown as TorrentWindow).__again());
  // The same peer again; in each swarm they have another name. Within the minute after which both announce themselves anyway.
  const met = async () => {
    const { peers } = await traffic(first);
    return peers.filter((peer) => peer === peers[0]).length;
  };
  await expect.poll(met, { timeout: 45_000 }).toBeGreaterThan(1);
  const { peers, warnings } = await traffic(first);
  figures('p2p-media-loader anew', { peers, warnings });
  await Promise.all([first.close(), second.close()]);
  for (const warning of warnings) expect(warning).toContain('peer-id-taken');
});
