import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHex, hex as toHex } from '../segment/segment.ts';
import { decodeParts, encodeParts, type PartsMessage, pushed, pushedId } from './parts.ts';
import { decode, maxControl } from './peer.ts';

interface Vectors {
  parts: { name: string; hex: string; message: Record<string, unknown> }[];
  parts_malformed: { name: string; hex: string; reason: string }[];
  pushed: { push: number; piece: number; request: number }[];
}

const file = new URL('../../../../../spec/vectors/peer.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;

const plain = (m: unknown) => JSON.parse(JSON.stringify(m, (_, v) => (v instanceof Uint8Array ? toHex(v) : v)));

describe('vectors of the messages of parts', () => {
  it.each(vectors.parts)('$name', ({ hex, message }) => {
    expect(plain(decodeParts(fromHex(hex)))).toEqual(message);
    const certificate = fromHex(String(message.certificate ?? ''));
    const m = { ...message, ...(message.certificate !== undefined && { certificate }) } as PartsMessage;
    expect(toHex(encodeParts(m))).toBe(hex);
    expect(decode('control', fromHex(hex)), 'of a type that the first messages do not know').toBeUndefined();
  });

  it.each(vectors.parts_malformed)('malformed: $name', ({ hex, reason }) => {
    expect(decodeParts(fromHex(hex))).toBe(reason);
  });

  it('names pushed pieces', () => {
    for (const { push, piece, request } of vectors.pushed) {
      expect(pushedId(push, piece)).toBe(request);
      expect(pushed(request)).toEqual({ push, piece });
    }
    expect(pushed(2 ** 31 - 1)).toBeUndefined();
  });
});

describe('messages of parts', () => {
  it('survive any bytes, and what is accepted encodes back', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0x5f, max: 0x68 }), fc.uint8Array({ maxLength: 200 }), (type, body) => {
        const b = new Uint8Array([type, ...body]);
        const m = decodeParts(b);
        if (m === undefined) expect(type < 0x60 || type > 0x67).toBe(true);
        else if (typeof m !== 'string') expect(toHex(encodeParts(m))).toBe(toHex(b));
      }),
      { numRuns: 3000 },
    );
  });

  it('are bounded', () => {
    const b = new Uint8Array(maxControl + 1);
    b[0] = 0x65;
    expect(decodeParts(b)).toBe('long');
  });

  it('are not encoded where the other side would refuse them', () => {
    const stream = '0'.repeat(32);
    const place = { type: 'place', stream, stripe: 0, rank: 1, room: 0, least: 0 } as const;
    for (const m of [
      { type: 'end', stream, stripe: 4 },
      { ...place, path: [] },
      { ...place, path: Array(9).fill(stream) },
      { type: 'part', stream, push: 2 ** 22, turn: 0, certificate: new Uint8Array(1) },
      { type: 'part', stream, push: 0, turn: 0, certificate: new Uint8Array() },
    ] as PartsMessage[])
      expect(() => encodeParts(m)).toThrow(RangeError);
  });
});
