import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeAck, encodeAck, type Stamp } from '../ledbat/ack.ts';
import { Malformed, pieceSize } from '../protocol/peer.ts';
import { fromHex, hex as toHex } from '../segment/segment.ts';
import { backgroundHeader, decodeBackground, encodeBackground } from './message.ts';

const most = 16_384;
const vectors = JSON.parse(readFileSync(new URL('../../../../../spec/vectors/peer.json', import.meta.url), 'utf8'));

interface Vector {
  name: string;
  hex: string;
  message: { request: number; offset: number; sent_at: number; ack_now: boolean; payload: string } & Stamp;
  decode_only?: boolean;
}

const reasonOf = (b: Uint8Array, bound = most): string => {
  try {
    decodeBackground(b, bound);
    return 'none';
  } catch (e) {
    if (e instanceof Malformed) return e.reason;
    throw e;
  }
};

describe('vectors of background data', () => {
  it.each(vectors.background as Vector[])('$name', ({ hex, message, decode_only }) => {
    const { request, offset, sequence, sent_at: sentAt, echo, echoes, ack_now: ackNow } = message;
    const payload = fromHex(message.payload);
    const part = { request, offset, payload };
    const stamp = { sequence, sentAt, echo, echoes, ackNow };
    const read = decodeBackground(fromHex(hex), most);
    expect(read.stamp).toEqual(stamp);
    expect({ ...read.part, payload: message.payload }).toEqual({
      ...part,
      type: 'data',
      sentAt,
      payload: message.payload,
    });
    expect(toHex(read.part.payload)).toBe(message.payload);
    if (!decode_only) expect(toHex(encodeBackground(part, stamp))).toBe(hex);
  });

  it.each(
    vectors.background_malformed as { name: string; hex: string; reason: string; message?: number }[],
  )('malformed: $name', ({ hex, reason, message }) => {
    expect(reasonOf(fromHex(hex), message)).toBe(reason);
  });

  it.each(vectors.acks as { name: string; hex: string; ack: Record<string, never> }[])('ack: $name', ({ hex, ack }) => {
    const {
      cumulative,
      highest,
      bitmap,
      received_at: receivedAt,
      hold,
    } = ack as unknown as Record<string, number> & { bitmap: never };
    const halves = [0, 8].map((at) => Number.parseInt((bitmap as string).slice(at, at + 8), 16)) as [number, number];
    const read = decodeAck(fromHex(hex));
    expect(read).toEqual({ cumulative, highest, bitmap: halves, receivedAt, hold });
    expect(toHex(encodeAck(read!))).toBe(hex);
  });

  it.each(vectors.acks_malformed as { name: string; hex: string }[])('no ack: $name', ({ hex }) => {
    expect(decodeAck(fromHex(hex))).toBeUndefined();
  });
});

const u32 = fc.nat({ max: 0xffff_ffff });
const stamps = fc.record({ sequence: u32, sentAt: u32, echo: u32, echoes: fc.boolean(), ackNow: fc.boolean() });
const payloads = fc.uint8Array({ minLength: 1, maxLength: 64 });

describe('background data', () => {
  it('reads what it wrote, where it lies in a larger buffer', () => {
    fc.assert(
      fc.property(u32, fc.nat({ max: pieceSize - 64 }), payloads, stamps, (request, offset, payload, stamp) => {
        const b = encodeBackground({ request, offset, payload }, stamp);
        const around = new Uint8Array(b.length + 9);
        around.set(b, 7);
        const inside = around.subarray(7, 7 + b.length);
        const read = decodeBackground(inside, b.length);
        expect(read.stamp).toEqual(stamp);
        expect([read.part.request, read.part.offset, [...read.part.payload]]).toEqual([request, offset, [...payload]]);
        expect(reasonOf(inside, b.length - 1)).toBe('long');
      }),
    );
  });

  it('takes what reads back the same, and throws nothing but that it is malformed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, typed) => {
        if (typed) bytes[0] = 0x21;
        if (reasonOf(bytes) !== 'none') return;
        const { part, stamp } = decodeBackground(bytes, most);
        expect(bytes.length).toBeGreaterThan(backgroundHeader);
        const again = encodeBackground(part, stamp);
        again[19] = again[19]! | (bytes[19]! & ~3); // flags of a later version are let pass
        expect([...again]).toEqual([...bytes]);
      }),
    );
  });
});
