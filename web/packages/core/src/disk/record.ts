/**
 * A file of the disk: one segment with its certificate.
 *
 *     'LWD1' | length of the certificate, 4 bytes | certificate | source of each piece, 1 byte each | segment
 *
 * Numbers are big-endian. Sources are 0 (origin), 1 (seed), 2 (peer): where the piece came from when it came.
 */

import { type Certificate, parseCertificate } from '../certificate/index.ts';
import type { Source } from '../ports.ts';
import { pieceCount } from '../segment/index.ts';

export interface KeptSegment {
  certificate: Certificate;
  sources: Source[];
  data: Uint8Array;
}

const magic = [0x4c, 0x57, 0x44, 0x31];
const head = 8;
const names: Source[] = ['origin', 'seed', 'peer'];

/** What a file begins with, ahead of the segment's bytes. */
export const recordHead = (certificate: Certificate, sources: readonly (Source | undefined)[]): Uint8Array => {
  const { raw, length } = certificate;
  const pieces = pieceCount(length);
  const out = new Uint8Array(head + raw.length + pieces);
  out.set(magic);
  new DataView(out.buffer).setUint32(4, raw.length);
  out.set(raw, head);
  for (let n = 0; n < pieces; n++) out[head + raw.length + n] = names.indexOf(sources[n] ?? 'peer');
  return out;
};

/** Reads a file; undefined for what is none. Neither the signature nor a digest is checked. The bytes are kept, not copied. */
export const parseRecord = (raw: Uint8Array): KeptSegment | undefined => {
  if (raw.length < head || magic.some((b, i) => b !== raw[i])) return undefined;
  const end = head + new DataView(raw.buffer, raw.byteOffset).getUint32(4);
  const certificate = parseCertificate(raw.subarray(head, end));
  if (typeof certificate === 'string') return undefined;
  const data = end + pieceCount(certificate.length);
  const sources = [...raw.subarray(end, data)].map((n) => names[n]);
  if (raw.length !== data + certificate.length || sources.includes(undefined)) return undefined;
  return { certificate, sources: sources as Source[], data: raw.subarray(data) };
};
