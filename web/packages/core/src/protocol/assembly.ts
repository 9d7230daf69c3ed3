import { maxPieceMessages } from './limits.ts';
import type { DataMessage } from './peer.ts';

/** A piece that comes together from messages. */
export interface Assembly {
  data: Uint8Array;
  /** Bytes of it that have come. */
  received: number;
  /** From where to where, one a message. */
  spans: [from: number, to: number][];
}

export const createAssembly = (length: number): Assembly => ({ data: new Uint8Array(length), received: 0, spans: [] });

/** Puts a message in its place, or says why it does not fit. */
export const assemble = (a: Assembly, { offset, payload }: DataMessage): 'malformed' | 'crumbs' | undefined => {
  const end = offset + payload.length;
  if (end > a.data.length) return 'malformed';
  if (a.spans.length === maxPieceMessages) return 'crumbs';
  if (a.spans.some(([from, to]) => from < end && to > offset)) return 'malformed';
  a.spans.push([offset, end]);
  a.data.set(payload, offset);
  a.received += payload.length;
  return undefined;
};
