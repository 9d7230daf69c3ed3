import { describe, expect, it } from 'vitest';
import { type DataMessage, decode, laneBackground, laneForeground } from '../protocol/peer.ts';
import { createDownloads } from './downloads.ts';
import { createUploads, type UploadHost, type Uploads } from './uploads.ts';

const message = (request: number, offset: number, length: number): DataMessage => ({
  type: 'data',
  request,
  offset,
  sentAt: 0,
  payload: new Uint8Array(length).fill(offset & 255),
});
const wanted = { segment: 's', piece: 0, length: 100, lane: 0 as const, reason: 'near', sentUs: 0 };

describe('downloads', () => {
  it('put a piece together in any order', () => {
    const downloads = createDownloads();
    const d = downloads.add(wanted);
    expect(downloads.queued()).toBe(100);
    for (const offset of [50, 0, 75]) expect(downloads.data(message(d.id, offset, 25), 0)).toBe(d);
    expect([d.checking, d.received]).toEqual([false, 75]);
    downloads.data(message(d.id, 25, 25), 0);
    expect([d.checking, downloads.queued()]).toEqual([true, 0]);
    expect([0, 25, 50, 75].map((n) => d.data[n])).toEqual([0, 25, 50, 75]);
  });

  it('refuse bytes that overlap, reach beyond the piece or come after it', () => {
    const downloads = createDownloads();
    const d = downloads.add(wanted);
    downloads.data(message(d.id, 10, 20), 0);
    for (const [at, n] of [
      [10, 20],
      [0, 11],
      [29, 1],
      [15, 5],
      [0, 100],
      [90, 11],
    ] as const)
      expect(downloads.data(message(d.id, at, n), 0)).toBe('malformed');
    downloads.data(message(d.id, 0, 10), 0);
    downloads.data(message(d.id, 30, 70), 0);
    expect(downloads.data(message(d.id, 0, 1), 0)).toBe('malformed');
  });

  it('take no more of what was canceled than was asked for', () => {
    const downloads = createDownloads();
    const d = downloads.add(wanted);
    downloads.data(message(d.id, 0, 40), 0);
    downloads.cancel(d, 0);
    expect(downloads.data(message(d.id, 40, 60), 0)).toBe('canceled');
    expect(downloads.data(message(d.id, 40, 60), 0)).toBe('unsolicited');
    const behind = downloads.add({ ...wanted, lane: 1 });
    downloads.cancel(behind, 0);
    expect(downloads.data(message(behind.id, 0, 60), 0)).toBe('taken back');
  });

  it('know what was canceled, for a minute, from what was never asked for', () => {
    const downloads = createDownloads();
    const d = downloads.add(wanted);
    downloads.cancel(d, 1_000);
    expect(downloads.queued()).toBe(0);
    expect(downloads.data(message(d.id, 0, 10), 60_999)).toBe('canceled');
    expect(downloads.data(message(d.id, 0, 10), 61_000)).toBe('unsolicited');
    expect(downloads.data(message(77, 0, 10), 0)).toBe('unsolicited');
    expect(downloads.add(wanted).id).not.toBe(d.id);
  });
});

describe('uploads', () => {
  const setUp = (maxRequests = 10, others = 0, more: Partial<UploadHost> = {}) => {
    const sent: string[] = [];
    const rejected: [number, number[]][] = [];
    const held = new Map([
      ['a', new Uint8Array(16384).fill(1)],
      ['b', new Uint8Array(3).fill(2)],
    ]);
    let room = 0;
    const uploads: Uploads = createUploads(
      (m) => {
        if (room === 0) return false;
        room--;
        const d = decode('data', m) as DataMessage;
        sent.push(`${d.request}@${d.offset}+${d.payload.length}`);
        return true;
      },
      16_384,
      maxRequests,
      {
        piece: (s, n) => (n === 0 ? held.get(s) : undefined),
        pieces: (s) => (held.has(s) ? 2 : 0),
        allowed: () => true,
        queued: () => others + uploads.size(),
        sent: () => {},
        reject: (reason, ids) => rejected.push([reason, ids]),
        nowUs: () => 0,
        idle: () => true,
        drained: () => {},
        ...more,
      },
    );
    const pump = (n: number) => {
      room = n;
      uploads.pump();
      return sent.splice(0);
    };
    return { uploads, rejected, held, pump };
  };
  const ask = (id: number, piece = 0) => [{ id, piece }];

  it('without a controller are of the foreground alone, in order, and stop when the link is full', () => {
    const { uploads, rejected, pump } = setUp();
    uploads.request('b', laneBackground, ask(1));
    expect(rejected).toEqual([[4, [1]]]);
    uploads.request('a', laneForeground, ask(2));
    uploads.request('b', laneForeground, ask(3));
    expect(pump(1)).toEqual(['2@0+8192']);
    expect(pump(2)).toEqual(['2@8192+8192', '3@0+3']);
    expect(uploads.size()).toBe(0);
  });

  it('finish what was begun although it was dropped, but for what is canceled', () => {
    const { uploads, held, pump } = setUp();
    uploads.request('a', laneForeground, ask(2));
    expect(pump(1)).toEqual(['2@0+8192']);
    held.delete('a');
    expect(pump(1)).toEqual(['2@8192+8192']);
    held.set('a', new Uint8Array(16384));
    uploads.request('a', laneForeground, ask(3));
    expect(pump(1)).toEqual(['3@0+8192']);
    uploads.cancel([3]);
    expect(pump(9)).toEqual([]);
  });

  it('are taken part by part where the controller of the host paces them, foreground first, promoted in place', () => {
    const { uploads, held, rejected, pump } = setUp();
    let woken = 0;
    uploads.pace(() => woken++);
    expect([woken, uploads.source.next(9)]).toEqual([0, undefined]);
    const take = (n: number) => {
      const part = uploads.source.next(n);
      return part && `${part.request}@${part.offset}+${part.payload.length}`;
    };
    uploads.request('b', laneBackground, ask(1));
    uploads.request('a', laneBackground, ask(2));
    expect([pump(9), woken, uploads.source.waiting()]).toEqual([[], 3, true]);
    expect(take(2)).toBe('1@0+2');
    uploads.promote([2]);
    expect(take(1_000)).toBe('2@0+1000');
    held.delete('a');
    uploads.request('b', laneForeground, ask(3));
    expect(take(65_536)).toBe('2@1000+15384');
    uploads.cancel([3]);
    expect(take(9)).toBe('1@2+1');
    held.delete('b');
    held.set('a', new Uint8Array(16384));
    uploads.request('a', laneForeground, ask(4));
    held.clear();
    expect([take(9), rejected]).toEqual([undefined, [[3, [4]]]]);
    expect([uploads.size(), uploads.source.waiting()]).toEqual([0, false]);
  });

  it('of the background wait for the foreground of other links, and hear when it has gone out', () => {
    let idle = false;
    let drained = 0;
    const { uploads } = setUp(10, 0, { idle: () => idle, drained: () => drained++ });
    uploads.pace(() => {});
    uploads.request('b', laneBackground, ask(1));
    uploads.request('b', laneForeground, ask(2));
    expect(uploads.urgent()).toBe(true);
    expect(uploads.source.next(9)?.request).toBe(2);
    expect([drained, uploads.urgent(), uploads.source.waiting(), uploads.source.next(9)]).toEqual([
      1,
      false,
      false,
      undefined,
    ]);
    idle = true;
    expect(uploads.source.next(9)?.request).toBe(1);
    expect(drained).toBe(1);
  });

  it('leave each link its share when all together are many', () => {
    const many = Array.from({ length: 100 }, (_, id) => ({ id, piece: 0 }));
    for (const [others, queued] of [
      [0, 100],
      [200, 56],
      [256, 32],
      [10_000, 32],
    ] as const) {
      const { uploads, rejected } = setUp(256, others);
      uploads.request('a', laneForeground, many);
      expect(uploads.size()).toBe(queued);
      expect(rejected).toEqual(queued < 100 ? [[1, many.slice(queued).map(({ id }) => id)]] : []);
    }
  });

  it('say why not', () => {
    const { uploads, rejected, held, pump } = setUp(2);
    uploads.request('none', laneForeground, ask(1));
    uploads.request('a', laneForeground, [...ask(2, 1), ...ask(3, 2), ...ask(4), ...ask(5), ...ask(6)]);
    expect(rejected).toEqual([
      [3, [1]],
      [0, [2]],
      [5, [3]],
      [1, [6]],
    ]);
    held.clear();
    // The one at the head had its bytes taken already.
    expect(pump(5)).toHaveLength(2);
    expect(rejected.at(-1)).toEqual([3, [5]]);
  });
});
