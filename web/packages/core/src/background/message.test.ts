import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pieceSize } from '../protocol/peer.ts';
import { backgroundHeader, decodeBackground, encodeBackground } from './message.ts';

const u32 = fc.nat({ max: 0xffff_ffff });
const stamps = fc.record({ sequence: u32, sentAt: u32, echo: u32, echoes: fc.boolean(), ackNow: fc.boolean() });
const payloads = fc.uint8Array({ minLength: 1, maxLength: 64 });

describe('background data', () => {
  it('reads what it wrote', () => {
    fc.assert(
      fc.property(u32, fc.nat({ max: pieceSize - 64 }), payloads, stamps, (request, offset, payload, stamp) => {
        const b = encodeBackground({ request, offset, payload }, stamp);
        expect(b.length).toBe(backgroundHeader + payload.length);
        const read = decodeBackground(b, b.length);
        expect(read).toEqual({ part: { type: 'data', request, offset, sentAt: stamp.sentAt, payload }, stamp });
        expect(decodeBackground(b, b.length - 1)).toBeUndefined();
      }),
    );
  });

  it('takes what reads back the same, and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, typed) => {
        if (typed) bytes[0] = 0x21;
        const read = decodeBackground(bytes, 16_384);
        if (!read) return;
        expect(bytes.length).toBeGreaterThan(backgroundHeader);
        const again = encodeBackground(read.part, read.stamp);
        again[19] = again[19]! | (bytes[19]! & ~3); // flags of a later version are let pass
        expect([...again]).toEqual([...bytes]);
      }),
    );
  });

  it('refuses an empty payload, another type, and what reaches beyond its piece', () => {
    const stamp = { sequence: 1, sentAt: 2, echo: 0, echoes: false, ackNow: false };
    const made = (offset: number, size: number) =>
      encodeBackground({ request: 1, offset, payload: new Uint8Array(size) }, stamp);
    expect(decodeBackground(made(0, 0), 16_384)).toBeUndefined();
    expect(decodeBackground(made(pieceSize - 10, 10), 16_384)).toBeDefined();
    expect(decodeBackground(made(pieceSize - 10, 11), 16_384)).toBeUndefined();
    const other = made(0, 10);
    other[0] = 0x20;
    expect(decodeBackground(other, 16_384)).toBeUndefined();
  });

  it('is read where it lies in a larger buffer', () => {
    const stamp = { sequence: 1, sentAt: 2, echo: 3, echoes: true, ackNow: false };
    const b = encodeBackground({ request: 9, offset: 5, payload: new Uint8Array([1, 2]) }, stamp);
    const inside = new Uint8Array(b.length + 7);
    inside.set(b, 7);
    expect(decodeBackground(inside.subarray(7), 100)?.part.request).toBe(9);
  });
});
