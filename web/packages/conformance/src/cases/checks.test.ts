import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { OriginRequest } from '../bench.ts';
import type { PageSeen, PlayerSeen } from '../page/probe.ts';
import { originBytes, ownKeys, playedThrough, quiet, sharedSegments, type Watched } from './checks.ts';
import type { Scene } from './scene.ts';

const film = Buffer.from('the bytes of the origin');
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const url = (file: string) => `http://origin.test/kit/${file}`;

const scene = (requests: Partial<OriginRequest>[] = []) =>
  ({
    media: { isMedia: (path: string) => /^seg/.test(path) },
    requests: () => requests.map((one) => ({ method: 'GET', query: '', status: 200, bytes: 0, ...one })),
    bytes: async (address: string, range: string) => {
      if (!/seg-1\.ts$/.test(address)) return undefined;
      return range ? film.subarray(4, 10) : film;
    },
  }) as unknown as Scene;

const player = (change: Partial<PlayerSeen> = {}): PlayerSeen => ({
  picture: {
    startup: 100,
    stalls: [],
    currentTime: 24,
    played: 24,
    duration: 24,
    bufferedAhead: 0,
    ended: true,
    error: '',
  },
  received: [],
  errors: [],
  ...change,
});
const watched = (change: Partial<PageSeen> = {}): Watched => ({
  name: 'guest',
  seen: {
    players: [player()],
    pageErrors: [],
    joined: true,
    shared: [],
    notices: [],
    contradictions: 0,
    links: 1,
    ...change,
  },
});
const received = (bytes: Buffer, file = 'seg-1.ts', range = '') => ({
  url: url(file),
  range,
  length: bytes.length,
  digest: digest(bytes),
});

test('pictures that stall, stop or never come are told', () => {
  const end = { ended: true, seconds: 23 };
  expect(playedThrough(watched(), end)).toEqual([]);
  const picture = {
    ...player().picture!,
    stalls: [{ at: 5, ms: 400.4 }],
    ended: false,
    currentTime: 20,
    error: 'decode',
  };
  const bad = player({
    picture,
    errors: [
      { code: 'bufferAppendError', fatal: true },
      { code: 'other', fatal: false },
    ],
  });
  expect(playedThrough(watched({ players: [bad, player({ picture: null })] }), end)).toEqual([
    'guest, player 1: not at the end, at 20 s',
    'guest, player 1: only 20 s played',
    'guest, player 1: stalled 400 ms',
    'guest, player 1: video error: decode',
    'guest, player 1: fatal: bufferAppendError',
    'guest, player 2: no picture',
  ]);
});

test('gaps that a player jumps over are not played', () => {
  const jumped = watched({ players: [player({ picture: { ...player().picture!, played: 20 } })] });
  expect(playedThrough(jumped, { ended: false, seconds: 23 })).toEqual([]);
  expect(playedThrough(jumped, { ended: false, seconds: 23, played: 23 })).toEqual([
    'guest: 20 s played of 23, gaps jumped',
  ]);
});

test('bytes that are not those of the origin are told', async () => {
  const good = [received(film), received(film.subarray(4, 10), 'seg-1.ts', 'bytes=4-9')];
  expect(await originBytes(scene(), watched({ players: [player({ received: good })] }), 2)).toEqual([]);
  const bad = [received(Buffer.from('other')), received(film, 'seg-9.ts')];
  expect(await originBytes(scene(), watched({ players: [player({ received: bad })] }), 3)).toEqual([
    "guest: seg-1.ts : 5 bytes that are not the origin's 23",
    'guest: received seg-9.ts , which the origin does not have',
    'guest: only 2 segments received, of at least 3: seg-1.ts , seg-9.ts ',
  ]);
});

test('a viewer that shares nothing is told, by the account of the origin', () => {
  const shared = [{ url: url('seg-1.ts'), startMs: 0, bytes: { origin: 0, seed: 0, peer: film.length } }];
  const players = [player({ received: [received(film), received(film, 'seg-2.ts')] })];
  const asked = [{ asker: 'guest' as const, path: 'seg-2.ts', bytes: film.length }];
  expect(sharedSegments(scene(asked), watched({ players, shared }), 0.5)).toEqual([]);
  expect(sharedSegments(scene(asked), watched({ players, shared: [] }), 0.6)).toEqual([
    'guest: nothing from its peer',
    'guest: 0.5 from others, of at least 0.6 ()',
  ]);
});

test('a key that did not come from the origin to each viewer is told', () => {
  const fetched = (asker: OriginRequest['asker'], path = '0.key') => ({ asker, path });
  expect(ownKeys(scene([fetched('guest')]), /\.key$/, [watched()])).toEqual([]);
  const shared = [{ url: url('0.key'), startMs: 0, bytes: { origin: 0, seed: 0, peer: 16 } }];
  expect(ownKeys(scene([fetched('server')]), /\.key$/, [watched({ shared })], 2)).toEqual([
    'guest: asked the origin for 0 keys, of 2',
    'guest: the library had a key: http://origin.test/kit/0.key',
    'a server of Leeway asked for 0.key',
  ]);
});

test('what the page or the library complains of is told', () => {
  expect(quiet(watched())).toEqual([]);
  expect(quiet(watched({ pageErrors: ['x is undefined'], notices: ['internal'], contradictions: 2 }))).toEqual([
    'guest: page: x is undefined',
    'guest: notices: internal',
    'guest: 2 contradictions',
  ]);
});
