import type { ByteRange, Crypto } from '../ports.ts';

/** Unit of request, verification and blame, bytes. */
export const pieceSize = 16384;
/** Longest segment that is shared whole, bytes. */
export const maxLength = 8 << 20;
/** Length of the parts in which a longer object is shared, bytes. */
export const virtualLength = 4 << 20;
/** Longest object that is shared at all, bytes. */
export const maxObject = 2 ** 40;

/** The number of pieces of a segment of `length` bytes. */
export const pieceCount = (length: number): number => Math.ceil(length / pieceSize);

/** The length in bytes of piece `i`; 0 when there is no such piece. */
export const pieceLength = (length: number, i: number): number =>
  i < 0 ? 0 : Math.max(0, Math.min(pieceSize, length - i * pieceSize));

/** The pieces of a segment. They share its memory. */
export const piecesOf = (data: Uint8Array): Uint8Array[] =>
  Array.from({ length: pieceCount(data.length) }, (_, i) => data.subarray(i * pieceSize, (i + 1) * pieceSize));

/** The parts in which an object is shared; none when it is shared whole, or too long to be shared at all. */
export function virtualRanges(length: number): ByteRange[] {
  const ranges: ByteRange[] = [];
  if (length > maxLength && length <= maxObject)
    for (let first = 0; first < length; first += virtualLength)
      ranges.push({ first, last: Math.min(first + virtualLength, length) - 1 });
  return ranges;
}

/** Lower-case hexadecimal. */
export const hex = (bytes: Uint8Array): string => {
  let s = '';
  for (const b of bytes) s += (b < 16 ? '0' : '') + b.toString(16);
  return s;
};

/** The other way. */
export const fromHex = (s: string): Uint8Array => {
  const bytes = new Uint8Array(s.length >> 1);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(s.slice(2 * i, 2 * i + 2), 16);
  return bytes;
};

/** The segment ID of a name, 32 hex characters. */
export async function segmentId(site: string, name: string, crypto: Crypto): Promise<string> {
  const digest = await crypto.digest(new TextEncoder().encode(`leeway segment v1\0${site}\0${name}`));
  return hex(digest.subarray(0, 16));
}
