import { webcrypto } from 'node:crypto';
import type { SegmentResult } from '@leeway/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { virtualRanges } from '../../core/src/segment/index.ts';
import { type FileOptions, type FileRange, fetchFile } from './file.ts';
import { partsOf } from './parts.ts';
import { byOrigin, byPeers, FakeLeeway, type FileOrigin, startOrigin } from './testing.ts';
import { versionOf } from './version.ts';

const part = 4 << 20;
const noise = (length: number) => {
  const data = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) webcrypto.getRandomValues(data.subarray(at, at + 65_536));
  return data;
};
const long = noise(2 * part + part / 2);
const short = noise(300_000);

let origin: FileOrigin;
let page: FakeLeeway;

beforeEach(async () => {
  vi.stubGlobal('document', { baseURI: 'http://127.0.0.1/page/' });
  origin = await startOrigin(long);
  page = new FakeLeeway();
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await origin.stop();
});

const fetched = (options?: FileOptions) => fetchFile(page.leeway, origin.url, options);
const bytes = async (response: Response) => Buffer.from(await response.arrayBuffer());
const same = (got: Buffer, want: Uint8Array) => got.equals(Buffer.from(want));

describe('a file', () => {
  it('is asked for by its parts, and handed on in order, with the headers of the origin', async () => {
    const response = await fetched();
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-length': String(long.length),
      'content-type': 'application/x-test',
      etag: '"1"',
    });
    expect(same(await bytes(response), long)).toBe(true);
    expect(page.requests.map(({ range }) => range)).toEqual(virtualRanges(long.length));
    expect(page.requests[0]!.upcoming.map(({ range }) => range)).toEqual(virtualRanges(long.length).slice(1));
    expect(origin.asked[0]).toBe('HEAD bytes=0-');
    expect(page.log).toEqual(['open', 'paused']);
  });

  it('that is short comes whole', async () => {
    origin.file.data = short;
    expect(same(await bytes(await fetched()), short)).toBe(true);
    expect(page.requests.map(({ range }) => range)).toEqual([undefined]);
  });

  it.each([
    ['short', short],
    ['long', long],
  ])('that is %s comes as it is from an origin that packs what it may', async (_, data) => {
    Object.assign(origin.file, { data, packs: 'unasked' });
    expect(same(await bytes(await fetched()), data)).toBe(true);
    expect(page.requests.length).toBe(partsOf(data.length, { first: 0, last: data.length - 1 })!.length);
  });

  it('comes from peers under certificates of the version that the origin has', async () => {
    page.load = byPeers(long, '"1"');
    expect(same(await bytes(await fetched()), long)).toBe(true);
    expect(origin.asked).toEqual(['HEAD bytes=0-']);
  });

  it('is fetched as it is read, two parts ahead at most', async () => {
    origin.file.data = noise(5 * part);
    const reader = (await fetched()).body!.getReader();
    expect(page.requests.length).toBe(0);
    await reader.read();
    expect(page.requests.length).toBe(2);
    await reader.cancel();
    expect(page.log).toEqual(['open', 'abort', 'close']);
  });

  it('is read by two at a time, one of whose requests the engine has answered for both', async () => {
    origin.file.data = short;
    let first: Promise<SegmentResult> | undefined;
    page.load = (request, signal) => {
      if (page.requests.length > 2) return byOrigin(request, signal);
      first ??= vi.waitFor(() => expect(page.requests.length).toBe(2)).then(() => byOrigin(request, signal));
      return first;
    };
    const both = await Promise.all([fetched(), fetched()].map(async (response) => bytes(await response)));
    for (const got of both) expect(same(got, short)).toBe(true);
    expect(page.requests.length).toBe(3);
  });

  it('gives its place to the next one that was fetched', async () => {
    await bytes(await fetched());
    await bytes(await fetched());
    expect(page.log).toEqual(['open', 'paused', 'open', 'close', 'paused']);
  });
});

describe('a range', () => {
  it.each<[FileRange, number]>([
    [{ first: 10, last: 99 }, 1],
    [{ first: part - 1, last: part }, 2],
    [{ first: 2 * part + 7 }, 1],
    [{ first: 5, last: 10 ** 12 }, 3],
  ])('%j comes by the parts that it touches', async (range, parts) => {
    const response = await fetched({ range });
    const last = Math.min(range.last ?? Number.POSITIVE_INFINITY, long.length - 1);
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${range.first}-${last}/${long.length}`);
    expect(same(await bytes(response), long.subarray(range.first, last + 1))).toBe(true);
    expect(page.requests.length).toBe(parts);
  });

  it('behind the end is the origin’s to answer', async () => {
    origin.file.status = 416;
    expect((await fetched({ range: { first: long.length } })).status).toBe(416);
    expect(page.log).toEqual(['open', 'close']);
  });

  it.each([
    { first: -1 },
    { first: 2, last: 1 },
    { first: 0.5 },
    { first: Number.NaN },
  ])('%j is refused', async (range) => {
    await expect(fetched({ range })).rejects.toThrow(TypeError);
    expect(page.log).toEqual([]);
  });
});

describe('an abort', () => {
  it('before the fetch asks for nothing', async () => {
    await expect(fetched({ signal: AbortSignal.abort('gone') })).rejects.toBe('gone');
    expect(origin.asked).toEqual([]);
  });

  it('while the body is read stops what is under way', async () => {
    const controller = new AbortController();
    page.load = ({ range }, signal) =>
      range!.first === 0
        ? byPeers(long, '"1"')({ range } as never, signal)
        : new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    const reader = (await fetched({ signal: controller.signal })).body!.getReader();
    await reader.read();
    const next = reader.read();
    await vi.waitFor(() => expect(page.requests.length).toBe(3));
    controller.abort('enough');
    await expect(next).rejects.toBe('enough');
    expect(page.log).toEqual(['open', 'abort', 'abort', 'close']);
  });
});

describe('without the swarm', () => {
  it.each<[string, () => void]>([
    [
      'peer delivery is off',
      () => {
        page.active = false;
      },
    ],
    [
      'the origin does not say how long it is',
      () => {
        origin.file.length = false;
      },
    ],
    [
      'the origin tells no version',
      () => {
        origin.file.etag = undefined;
      },
    ],
    [
      'the origin packs it, and says the length of that',
      () => {
        origin.file.packs = 'always';
      },
    ],
  ])('a file comes by one request where %s', async (_, set) => {
    set();
    const response = await fetched({ range: { first: 5, last: 9 } });
    expect(same(await bytes(response), long.subarray(5, 10))).toBe(true);
    expect(origin.asked.filter((line) => line.startsWith('GET'))).toEqual(['GET bytes=5-9']);
    expect(page.requests).toEqual([]);
    expect(page.log).toEqual(['open', 'close']);
  });

  it('an origin that knows no ranges is asked for the whole', async () => {
    origin.file.ranges = false;
    const response = await fetched({ range: { first: part + 3, last: 2 * part + 9 } });
    expect(same(await bytes(response), long.subarray(part + 3, 2 * part + 10))).toBe(true);
    expect(page.bypassed.length).toBeGreaterThan(0);
  });

  it('what comes as a whole is counted once, by segments', async () => {
    origin.file.ranges = false;
    expect(same(await bytes(await fetched()), long)).toBe(true);
    expect(page.bypassed.length).toBe(virtualRanges(long.length).length);
    expect(page.bypassed.reduce((a, b) => a + b)).toBe(long.length);
    const reader = (await fetched()).body!.getReader();
    await reader.read();
    await reader.cancel();
    expect(page.log.slice(-2)).toEqual(['bypass', 'close']);
  });

  it('an error of the origin is the reader’s', async () => {
    page.load = async (request, signal) => {
      origin.file.status = 503;
      return byOrigin(request, signal);
    };
    await expect(bytes(await fetched())).rejects.toThrow('503');
    expect(page.log.at(-1)).toBe('close');
  });
});

describe('a file that changes meanwhile', () => {
  it.each<[string, () => void]>([
    [
      'at the origin',
      () => {
        origin.file.etag = '"2"';
      },
    ],
    [
      'among peers',
      () => {
        page.load = byPeers(long, '"2"');
      },
    ],
    [
      'in its length',
      () => {
        page.load = byPeers(long, '"1"', long.length + 1);
      },
    ],
  ])('%s gives an error and no further byte', async (_, change) => {
    const reader = (await fetched()).body!.getReader();
    await reader.read();
    // The second part is under way already, in the version before.
    await vi.waitFor(() => expect(origin.asked.length).toBe(3));
    change();
    await reader.read();
    await expect(reader.read()).rejects.toThrow('changed');
    expect(page.log.at(-1)).toBe('close');
  });
});

describe('priority', () => {
  it('low waits for a first peer, and gives it longer', async () => {
    const reading = bytes(await fetched({ priority: 'low' }));
    await vi.waitFor(() => expect(page.timers.size).toBe(1));
    expect(page.requests).toEqual([]);
    page.listeners.get('link')!({ manifest: origin.url } as never);
    await reading;
    expect(page.timers.size).toBe(0);
    expect(page.requests[0]!.durationMs).toBeGreaterThan(30_000);
  });

  it.each([
    ['no other viewer is there', 'joined', { viewers: 1 }],
    ['peer delivery is off', 'off', { reason: 'policy' }],
  ])('low does not wait where %s', async (_, event, detail) => {
    const reading = bytes(await fetched({ priority: 'low' }));
    await vi.waitFor(() => expect(page.timers.size).toBe(1));
    page.listeners.get(event)!({ manifest: origin.url, ...detail } as never);
    expect(same(await reading, long)).toBe(true);
  });

  it.each<[string, object]>([
    ['no other viewer was there as the title was joined', { swarm: 'ab', viewers: 1 }],
    ['peer delivery was off by then', { off: 'policy' }],
    ['a peer is linked already', { links: { open: 1, opening: 0 } }],
  ])('low does not wait where %s', async (_, known) => {
    Object.assign(page.known, known);
    expect(same(await bytes(await fetched({ priority: 'low' })), long)).toBe(true);
    expect(page.timers.size).toBe(0);
  });

  it('high has the origin asked at once', async () => {
    await bytes(await fetched({ priority: 'high' }));
    expect(page.requests[0]!.deadlineMs()).toBeLessThanOrEqual(0);
    expect(page.listeners.size).toBe(0);
  });

  it('of another name is refused', async () => {
    await expect(fetched({ priority: 'soon' as never })).rejects.toThrow(TypeError);
  });
});

it('parts are the virtual segments of the core', () => {
  for (const length of [1, 8 << 20, (8 << 20) + 1, 3 * part, 3 * part + 1])
    expect(partsOf(length, { first: 0, last: length - 1 })).toEqual(
      virtualRanges(length).length ? virtualRanges(length) : [{ first: 0, last: length - 1 }],
    );
  expect(partsOf(2 ** 40 + 1, { first: 0, last: 1 })).toBeUndefined();
});

describe('a version', () => {
  const of = (headers: Record<string, string>) => versionOf(new Headers({ 'content-length': '10', ...headers }))!;
  const cert = (mark: string, objectLength = 10) => ({ objectLength, validator: new TextEncoder().encode(mark) });

  it('by a date alone takes certificates of that date, or of the first ETag', () => {
    const version = of({ 'last-modified': 'Mon' });
    expect(version.certified(cert('Mon'))).toBe(true);
    expect(version.certified(cert('Tue'))).toBe(false);
    expect(version.certified(cert('"a"'))).toBe(true);
    expect(version.certified(cert('"b"'))).toBe(false);
    expect(version.certified(cert('"a"'))).toBe(true);
    expect(version.certified(cert('"a"', 11))).toBe(false);
  });

  it('by an ETag takes no other', () => {
    const version = of({ etag: 'W/"a"', 'last-modified': 'Mon' });
    expect(version.certified(cert('W/"a"'))).toBe(true);
    expect(version.certified(cert('"a"'))).toBe(false);
    expect(version.answers(new Headers({ etag: 'W/"a"', 'last-modified': 'Mon' }))).toBe(true);
    expect(version.answers(new Headers({ etag: 'W/"a"', 'last-modified': 'Tue' }))).toBe(false);
  });

  it('is unknown without a length or a mark', () => {
    expect(versionOf(new Headers({ 'content-length': '10' }))).toBeUndefined();
    expect(versionOf(new Headers({ etag: '"a"' }))).toBeUndefined();
    expect(versionOf(new Headers({ etag: '"a"', 'content-length': '10', 'content-encoding': 'br' }))).toBeUndefined();
  });
});
