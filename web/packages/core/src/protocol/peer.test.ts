import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHex, hex as toHex } from '../segment/segment.ts';
import { type Channel, cutSize, decode, encode, Malformed, type Message, negotiate } from './peer.ts';

const vectors = JSON.parse(readFileSync(new URL('../../../../../spec/vectors/peer.json', import.meta.url), 'utf8'));

interface Vector {
  name: string;
  hex: string;
  channel: Channel;
  message: unknown;
  decode_only?: boolean;
  reason?: string;
}

const bytesFields = new Set(['bitmap', 'certificate', 'payload']);

/** The vectors' snake case and hex in the codec's terms. */
const fromVector = (value: unknown, key = ''): unknown => {
  if (Array.isArray(value)) return value.map((v) => fromVector(v));
  if (value && typeof value === 'object')
    return Object.fromEntries(
      Object.entries(value).map(([k, v]) => [k.replace(/_(.)/g, (_, c) => c.toUpperCase()), fromVector(v, k)]),
    );
  return bytesFields.has(key) ? fromHex(value as string) : value;
};

const plain = (m: unknown) => JSON.parse(JSON.stringify(m, (_, v) => (v instanceof Uint8Array ? toHex(v) : v)));

const malformedReason = (channel: Channel, b: Uint8Array): string => {
  try {
    decode(channel, b);
    return 'none';
  } catch (e) {
    if (e instanceof Malformed) return e.reason;
    throw e;
  }
};

describe('vectors of the peer protocol', () => {
  it.each(vectors.messages as Vector[])('$name', ({ hex, channel, message, decode_only }) => {
    const want = fromVector(message) as Message;
    expect(plain(decode(channel, fromHex(hex)))).toEqual(plain(want));
    if (!decode_only) expect(toHex(encode(want))).toBe(hex);
  });

  it.each(vectors.malformed as Vector[])('malformed: $name', ({ hex, channel, reason }) => {
    expect(malformedReason(channel, fromHex(hex))).toBe(reason);
  });

  it('skips unknown types', () => {
    for (const v of vectors.unknown) expect(decode(v.channel, fromHex(v.hex)), v.name).toBeUndefined();
  });

  it('cuts pieces and negotiates versions', () => {
    for (const v of vectors.cuts) {
      const size = cutSize(v.length, v.message);
      expect([size, Math.ceil(v.length / size)]).toEqual([v.payload, v.messages]);
    }
    for (const { a, b, version } of vectors.versions) {
      const of = ([minVersion, maxVersion]: [number, number]) => ({ minVersion, maxVersion });
      expect(negotiate(of(a), of(b))).toBe(version ?? undefined);
    }
  });
});

describe('decode', () => {
  it('survives any bytes, and what it accepts encodes back', () => {
    const types = [1, 2, 3, 4, 5, 0x10, 0x11, 0x12, 0x13, 0x20, 0x40, 0x41, 0x50, 0x77];
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 120 }), (type, body) => {
        const b = new Uint8Array([type, ...body]);
        const channel = type === 0x20 ? 'data' : 'control';
        let m: Message | undefined;
        try {
          m = decode(channel, b);
        } catch (e) {
          if (!(e instanceof Malformed)) throw e;
          return;
        }
        if (m && m.type !== 'hello') expect(toHex(encode(m))).toBe(toHex(b));
      }),
      { numRuns: 3000 },
    );
  });

  it('refuses to encode what the other side would refuse', () => {
    expect(() => encode({ type: 'cancel', ids: [] })).toThrow(Malformed);
    expect(() => encode({ type: 'bye', reason: 9 })).toThrow(Malformed);
    expect(() =>
      encode({ type: 'have', entries: [{ segment: '0'.repeat(32), state: 1, pieces: 8, bitmap: new Uint8Array(2) }] }),
    ).toThrow(Malformed);
  });
});
