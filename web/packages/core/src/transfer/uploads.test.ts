import { expect, it } from 'vitest';
import { decode, Malformed, type Message, rejectBusy } from '../protocol/peer.ts';
import { createUploads, type UploadHost } from './uploads.ts';

const setUp = (can: { send: boolean; upload: boolean }, paced = false, more: Partial<UploadHost> = {}) => {
  const said: number[] = [];
  const sent: Parameters<UploadHost['sent']>[] = [];
  const host: UploadHost = {
    piece: () => new Uint8Array(100),
    pieces: () => 4,
    allowed: () => can.upload,
    queued: () => 0,
    sent: (...what) => void sent.push(what),
    reject: () => {},
    nowUs: () => 0,
    idle: () => true,
    drained: () => {},
    ...more,
  };
  const uploads = createUploads(
    (b) => {
      if (!can.send) return false;
      said.push((decode('data', b) as Message & { type: 'data' }).request);
      return true;
    },
    16_384,
    256,
    host,
  );
  if (paced) uploads.pace(() => {});
  return { uploads, said, sent };
};

const first = 2 ** 31;

it('sends what is pushed in its turn, and says when it is out', () => {
  const can = { send: false, upload: true };
  const { uploads, said, sent } = setUp(can);
  const out: number[] = [];
  uploads.request('a', 0, [{ id: 7, piece: 0 }]);
  // Each makes room for the next.
  const push = (n: number) =>
    uploads.push(first + n, 'b', new Uint8Array(50), () => {
      out.push(n);
      if (n < 3) push(n + 1);
    });
  push(0);
  expect(out).toEqual([]);
  can.send = true;
  uploads.pump();
  expect(said).toEqual([7, first, first + 1, first + 2, first + 3]);
  expect(out).toEqual([0, 1, 2, 3]);
  expect(sent).toEqual([[100, 'a', 0, false], ...Array(4).fill([50, 'b', 0, true])]);
  expect(uploads.size()).toBe(0);
});

it('has the controller of the host take what is pushed', () => {
  const { uploads, sent } = setUp({ send: true, upload: true }, true);
  let out = 0;
  uploads.push(first, 'b', new Uint8Array(50), () => out++);
  expect(uploads.source.urgent!()).toBe(true);
  expect(uploads.source.next(30)?.payload).toHaveLength(30);
  expect(out).toBe(0);
  expect(uploads.source.next(30)).toMatchObject({ request: first, offset: 30 });
  expect(out).toBe(1);
  expect(sent).toEqual([[50, 'b', 0, true]]);
  expect(uploads.source.next(30)).toBeUndefined();
});

it('says in which lane a piece went out: a promoted one in the foreground', () => {
  const { uploads, sent } = setUp({ send: true, upload: true }, true);
  uploads.request(
    'a',
    1,
    [0, 1, 2].map((piece) => ({ id: piece, piece })),
  );
  uploads.source.next(100);
  uploads.source.next(40);
  uploads.promote([2]);
  uploads.request('b', 0, [{ id: 3, piece: 0 }]);
  while (uploads.source.next(100));
  expect(sent).toEqual([
    [100, 'a', 1, false],
    [100, 'a', 0, false],
    [100, 'b', 0, false],
    [100, 'a', 1, false],
  ]);
});

it('does not let the peer take back what it did not ask for', () => {
  const can = { send: false, upload: true };
  const { uploads, said } = setUp(can);
  uploads.push(first, 'b', new Uint8Array(50), () => {});
  uploads.request('a', 0, [{ id: 7, piece: 0 }]);
  uploads.cancel([first, 7]);
  can.send = true;
  uploads.pump();
  expect(said).toEqual([first]);
});

it('takes no ID that is outstanding', () => {
  const can = { send: false, upload: true };
  const { uploads, said } = setUp(can);
  const ask = (lane: number, ...ids: number[]) =>
    uploads.request(
      'a',
      lane,
      ids.map((id) => ({ id, piece: 0 })),
    );
  ask(0, 7);
  for (const ids of [[7], [8, 8]]) expect(() => ask(0, ...ids)).toThrow(Malformed);
  uploads.cancel([7, 8]);
  ask(0, 7);
  can.send = true;
  uploads.pump();
  ask(0, 7);
  expect(said).toEqual([7, 7]);
});

it('gives up what may not be sent', () => {
  const { uploads, said, sent } = setUp({ send: true, upload: false });
  let out = 0;
  uploads.push(first, 'b', new Uint8Array(50), () => out++);
  expect([out, said, sent]).toEqual([1, [], []]);
});

it('rejects as busy what waits while nothing goes out, but not what came later, and not what was not asked for', () => {
  let now = 0;
  let drained = 0;
  const rejected: number[][] = [];
  const host = { nowUs: () => now, reject: (...what: [number, number[]]) => rejected.push([what[0], ...what[1]]) };
  const { uploads } = setUp({ send: true, upload: true }, true, { ...host, drained: () => drained++ });
  const { source } = uploads;
  const ask = (...ids: number[]) =>
    uploads.request(
      'a',
      0,
      ids.map((id) => ({ id, piece: 0 })),
    );
  ask(1, 2);
  now = 100_000;
  source.next(30);
  expect(source.midway!()).toBe(true);
  now = 350_000;
  ask(3);
  expect(source.shed!()).toBe(250_000);
  now = 600_000;
  expect(source.shed!()).toBe(250_000);
  uploads.push(first, 'b', new Uint8Array(50), () => {});
  now = 850_000;
  expect(source.shed!()).toBe(Number.POSITIVE_INFINITY);
  expect(rejected).toEqual([
    [rejectBusy, 1, 2],
    [rejectBusy, 3],
  ]);
  expect([uploads.size(), drained, source.midway!()]).toEqual([1, 0, false]);
});

it('counts the time of what is promoted from then on', () => {
  let now = 0;
  const rejected: number[] = [];
  const host = { nowUs: () => now, reject: (_: number, ids: number[]) => rejected.push(...ids) };
  const { uploads } = setUp({ send: true, upload: true }, true, host);
  uploads.request('a', 1, [{ id: 1, piece: 0 }]);
  now = 2_000_000;
  expect(uploads.source.shed!()).toBe(Number.POSITIVE_INFINITY);
  uploads.promote([1]);
  expect(uploads.source.shed!()).toBe(500_000);
  now = 2_500_000;
  uploads.source.shed!();
  expect(rejected).toEqual([1]);
});
