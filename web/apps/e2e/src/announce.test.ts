import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Announce, type Client, type ClientClass, clientClass, startLeeway, startReference } from './announce.ts';

let trackers: Announce[];
let TrackerClient: ClientClass;
const clients: Client[] = [];

beforeAll(async () => {
  TrackerClient = await clientClass();
  trackers = [await startLeeway(['127.0.0.1:1']), await startLeeway(['127.0.0.1:1'], 2), await startReference()];
});
afterEach(() => Promise.all(clients.splice(0).map(gone)));
afterAll(() => Promise.all((trackers ?? []).map((tracker) => tracker.stop())));

// Bytes of every kind: what JSON escapes, what UTF-8 writes as two bytes.
const hash = (n: number) => `00221f5c7f80ff0a09c3a9e228a10d${n.toString(16).padStart(10, '0')}`;
const peer = (n: number) => `2d5757303030302dff80005c2241${n.toString(16).padStart(12, '0')}`;

/** Clients with one `page` share a socket, as those of a browser's page do. Pages take the tracker's processes in turn. */
function client(tracker: Announce, page: number, infoHash: string, peerId: string, left?: number): Client {
  const announce = [`${tracker.urls[page % tracker.urls.length]}&page=${page}`];
  const getAnnounceOpts = left === undefined ? undefined : () => ({ left });
  const c = new TrackerClient({ infoHash, peerId, announce, port: 6881, getAnnounceOpts });
  clients.push(c);
  c.on('warning', (error: Error) => warnings.set(c, [...(warnings.get(c) ?? []), error.message]));
  return c;
}
const warnings = new Map<Client, string[]>();

function gone(c: Client): Promise<void> {
  const at = clients.indexOf(c);
  if (at >= 0) clients.splice(at, 1);
  return new Promise((resolve) => c.destroy(resolve));
}

/** The next event of a kind, after `act`. */
async function next<T>(c: Client, event: string, act: () => void): Promise<T> {
  const [value] = await Promise.all([once(c, event), act()]);
  return value[0] as T;
}

interface Counts {
  complete: number;
  incomplete: number;
  infoHash: string;
  interval?: number;
  downloaded?: number;
}

/** A connection as the client has made it of an offer or answer. */
interface Peer {
  id: string;
  _pc: { localDescription: { sdp: string }; remoteDescription: { sdp: string } };
}

describe.each([
  ['leeway', 0],
  ['two of leeway', 1],
  ['bittorrent-tracker', 2],
])('%s', (_, i) => {
  test('clients announce, exchange offers and answers, are counted, and leave', async () => {
    const tracker = trackers[i]!;
    const a = client(tracker, 1, hash(i), peer(1), 0);
    const b = client(tracker, 2, hash(i), peer(2)); // never says how much it has
    const other = client(tracker, 2, hash(100 + i), peer(3), 5); // another swarm on the same socket
    expect(await next<Counts>(a, 'update', () => a.start())).toMatchObject({
      complete: 1,
      incomplete: 0,
      infoHash: hash(i),
    });
    const met = [once(a, 'peer'), once(b, 'peer')];
    expect(await next<Counts>(b, 'update', () => b.start())).toMatchObject({
      complete: 1,
      incomplete: 1,
      infoHash: hash(i),
    });
    const [ofA, ofB] = (await Promise.all(met)).map(([p]) => p as Peer);
    expect([ofA!.id, ofB!.id]).toEqual([peer(2), peer(1)]);
    // The answer came to the very offer, and both word by word.
    expect(ofA!._pc.remoteDescription.sdp).toBe(ofB!._pc.localDescription.sdp);
    expect(ofB!._pc.remoteDescription.sdp).toBe(ofA!._pc.localDescription.sdp);
    expect(await next<Counts>(other, 'update', () => other.start())).toMatchObject({
      complete: 0,
      incomplete: 1,
      infoHash: hash(100 + i),
    });

    expect(await next<Counts>(b, 'update', () => b.complete())).toMatchObject({ complete: 2, incomplete: 0 });
    expect(await next<Counts>(b, 'update', () => b.update())).toMatchObject({ complete: 2, incomplete: 0 });
    const all: Counts[] = [];
    other.on('scrape', (counts: Counts) => all.push(counts));
    other.scrape({ infoHash: [hash(i), hash(100 + i)] });
    await expect.poll(() => all.length).toBe(2);
    all.sort((x, y) => x.infoHash.localeCompare(y.infoHash));
    expect(all).toMatchObject([
      { infoHash: hash(i), complete: 2, incomplete: 0 },
      { infoHash: hash(100 + i), complete: 0, incomplete: 1 },
    ]);
    for (const page of [3, 4]) {
      const outside = client(tracker, page, hash(i), peer(9)); // is in no swarm
      expect(await next<Counts>(outside, 'scrape', () => outside.scrape())).toMatchObject({
        complete: 2,
        incomplete: 0,
      });
    }
    expect(await next<Counts>(a, 'update', () => a.stop())).toMatchObject({ complete: 1, incomplete: 0 });
    await gone(b); // without a word, on a socket that was not its alone
    await gone(other);
    await expect.poll(() => next<Counts>(a, 'scrape', () => a.scrape())).toMatchObject({ complete: 0, incomplete: 0 });
    expect([a, b, other].map((c) => warnings.get(c))).toEqual([undefined, undefined, undefined]);
  });
});

describe.each([
  ['leeway', 0],
  ['two of leeway', 1],
])('what bittorrent-tracker does otherwise: %s', (_, i) => {
  const film = hash(7);

  test('a peer_id is of the socket that announced it first, until that is gone', async () => {
    const tracker = trackers[i]!;
    const owner = client(tracker, 1, film, peer(1));
    expect(await next<Counts>(owner, 'update', () => owner.start())).toMatchObject({ incomplete: 1, interval: 61 });
    const second = client(tracker, 2, film, peer(1));
    const refused = await next<Error>(second, 'warning', () => second.start());
    expect(refused.message).toMatch(/^peer-id-taken: /);
    second.stop();
    await expect.poll(() => warnings.get(second)?.length).toBe(2);
    expect(await next<Counts>(owner, 'scrape', () => owner.scrape())).toMatchObject({ incomplete: 1 });
    // It was told to come again soon, not only after the 30 s of its own.
    const taken = once(second, 'update');
    await gone(owner);
    expect((await taken)[0]).toMatchObject({ incomplete: 1 });
  });

  test('a client that begins anew gets its peer_id back once its last socket is closed', async () => {
    const tracker = trackers[i]!;
    const [a, b] = [client(tracker, 1, film, peer(1)), client(tracker, 2, film, peer(2))];
    await next(a, 'update', () => a.start());
    await next(b, 'peer', () => b.start());
    // It has sent an answer, to which none comes, so it holds its socket for a second.
    const closed = gone(a);
    const anew = client(tracker, 1, film, peer(1));
    expect(await next<Counts>(anew, 'update', () => anew.start())).toMatchObject({ incomplete: 2 });
    for (const warning of warnings.get(anew) ?? []) expect(warning).toMatch(/^peer-id-taken: /);
    await closed;
  });

  test('offers pass over the full and the complete', async () => {
    const tracker = trackers[i]!;
    const met: string[] = [];
    const page = (n: number, name: string, peerId: number, left?: number) => {
      const c = client(tracker, n, film, peer(peerId), left);
      c.on('peer', () => met.push(name));
      return c;
    };
    const full = page(1, 'full', 1);
    await next(full, 'update', () => full.start());
    await next(full, 'update', () => full.update({ numwant: 0 }));
    const wanting = page(2, 'wanting', 2);
    await next(wanting, 'update', () => wanting.start({ numwant: 0 })); // a start is no word about being full
    const complete = page(3, 'complete', 3, 0);
    await next(complete, 'update', () => complete.start());
    await expect.poll(() => met.sort()).toEqual(['complete', 'wanting']);
    await gone(wanting);
    const second = page(4, 'second complete', 4, 0);
    await next(second, 'update', () => second.start());
    // Each has its answer after whatever was passed on to it.
    for (const c of [full, complete, second]) await next(c, 'scrape', () => c.scrape());
    expect(met).toHaveLength(2);
  });
});
