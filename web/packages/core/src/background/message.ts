import type { Stamp } from '../ledbat/ack.ts';
import { type DataMessage, Malformed, pieceSize } from '../protocol/peer.ts';

/*
 * A background data message, big-endian (spec/background-transport.md):
 *
 *   type u8 · request u32 · offset u16 · sequence u32 · sent at u32 · echo u32 · flags u8 · payload
 */
export const backgroundType = 0x21;
/** Bytes before the payload. */
export const backgroundHeader = 20;
const flagEchoes = 1;
const flagAckNow = 2;

/** A part of a piece, as a source gives it. */
export type Part = Omit<DataMessage, 'type' | 'sentAt'>;

/** What is sent is written here: a channel copies it. */
const view = new DataView(new ArrayBuffer(pieceSize + backgroundHeader));

/** Writes a message, which stands until the next one is written. */
export const encodeBackground = (part: Part, s: Stamp): Uint8Array<ArrayBuffer> => {
  const b = new Uint8Array(view.buffer, 0, backgroundHeader + part.payload.length);
  b[0] = backgroundType;
  view.setUint32(1, part.request);
  view.setUint16(5, part.offset);
  view.setUint32(7, s.sequence);
  view.setUint32(11, s.sentAt);
  view.setUint32(15, s.echo);
  b[19] = (s.echoes ? flagEchoes : 0) | (s.ackNow ? flagAckNow : 0);
  b.set(part.payload, backgroundHeader);
  return b;
};

/** Reads a background message of at most so many bytes, or throws Malformed. The payload shares their memory. */
export const decodeBackground = (b: Uint8Array, most: number): { part: DataMessage; stamp: Stamp } => {
  if (b[0] !== backgroundType) throw new Malformed('empty');
  if (b.length > most) throw new Malformed('long');
  if (b.length <= backgroundHeader) throw new Malformed('short');
  const view = new DataView(b.buffer, b.byteOffset);
  const offset = view.getUint16(5);
  const payload = b.subarray(backgroundHeader);
  if (offset + payload.length > pieceSize) throw new Malformed('limit');
  const sentAt = view.getUint32(11);
  const flags = b[19]!;
  return {
    part: { type: 'data', request: view.getUint32(1), offset, sentAt, payload },
    stamp: {
      sequence: view.getUint32(7),
      sentAt,
      echo: view.getUint32(15),
      echoes: (flags & flagEchoes) !== 0,
      ackNow: (flags & flagAckNow) !== 0,
    },
  };
};
