import { describe, expect, it } from 'vitest';
import { maxPieceMessages } from '../protocol/limits.ts';
import { createDownloads } from './downloads.ts';

const piece = (lane: 0 | 1 = 0, length = 100) => ({
  segment: 'a',
  piece: 0,
  length,
  lane,
  reason: 'near',
  sentUs: 0,
});
const message = (request: number, offset: number, bytes: number) => ({
  type: 'data' as const,
  request,
  offset,
  sentAt: 0,
  payload: new Uint8Array(bytes).fill(offset + 1),
});

describe('a piece', () => {
  it('comes together in any order', () => {
    const downloads = createDownloads();
    const d = downloads.add(piece());
    expect(downloads.find('a', 0)).toBe(d);
    expect(downloads.queued()).toBe(100);
    for (const [offset, bytes] of [
      [60, 40],
      [0, 30],
    ] as const)
      expect(downloads.data(message(d.id, offset, bytes), 0)).toBe(d);
    expect([d.received, d.checking]).toEqual([70, false]);
    downloads.data(message(d.id, 30, 30), 0);
    expect([d.received, d.checking, downloads.queued()]).toEqual([100, true, 0]);
    expect([d.data[0], d.data[29], d.data[30], d.data[59], d.data[60], d.data[99]]).toEqual([1, 1, 31, 31, 61, 61]);
  });

  it.each([
    ['over its end', 90, 11],
    ['twice', 0, 10],
    ['that overlaps from the left', 5, 10],
    ['that overlaps from the right', 35, 10],
  ])('does not take bytes %s', (_, offset, bytes) => {
    const downloads = createDownloads();
    const d = downloads.add(piece());
    downloads.data(message(d.id, 0, 10), 0);
    downloads.data(message(d.id, 40, 10), 0);
    expect(downloads.data(message(d.id, offset, bytes), 0)).toBe('malformed');
  });

  it('that comes in too many messages is crumbs', () => {
    const downloads = createDownloads();
    const d = downloads.add(piece(0, 1_000));
    for (let n = 0; n < maxPieceMessages; n++) expect(downloads.data(message(d.id, n, 1), 0)).toBe(d);
    expect(downloads.data(message(d.id, maxPieceMessages, 1), 0)).toBe('crumbs');
  });
});

describe('a canceled request', () => {
  it('may still bring what was left of it, for a minute', () => {
    const downloads = createDownloads();
    const d = downloads.add(piece());
    const behind = downloads.add(piece(1));
    downloads.data(message(d.id, 0, 60), 0);
    downloads.cancel(d, 0);
    downloads.cancel(behind, 0);
    expect(downloads.data(message(d.id, 60, 30), 59_999)).toBe('canceled');
    expect(downloads.data(message(d.id, 90, 11), 59_999)).toBe('unsolicited');
    expect(downloads.data(message(behind.id, 0, 10), 59_999)).toBe('taken back');
    expect(downloads.data(message(behind.id, 10, 10), 60_000)).toBe('unsolicited');
    expect(downloads.data(message(99, 0, 1), 0)).toBe('unsolicited');
  });

  it('of which the last byte is in is checked all the same', () => {
    const downloads = createDownloads();
    const d = downloads.add(piece());
    downloads.data(message(d.id, 0, 100), 0);
    downloads.cancel(d, 0);
    expect(downloads.data(message(d.id, 0, 1), 1)).toBe('unsolicited');
  });
});

it('the foreground alone is owed', () => {
  const downloads = createDownloads();
  const behind = downloads.add(piece(1));
  const d = downloads.add(piece());
  expect(downloads.queued()).toBe(100);
  downloads.promote(behind, 7);
  expect([behind.lane, behind.sentUs, downloads.queued()]).toEqual([0, 7, 200]);
  downloads.remove(d);
  downloads.remove(d);
  expect(downloads.queued()).toBe(100);
});
