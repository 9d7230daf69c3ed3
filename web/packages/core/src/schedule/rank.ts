/** The hash by which peers agree, without a word, on which of them takes what (spec/schedule.md, rule 7). */

/** A hexadecimal digit's value. */
const digit = (c: number): number => (c & 15) + (c >> 6) * 9;

/** fnv1a32 of no bytes. */
export const fnvStart = 0x811c9dc5;

/** fnv1a32 goes on over the bytes of hexadecimal text. */
export const fnv1a32 = (h: number, hex: string): number => {
  for (let i = 0; i + 1 < hex.length; i += 2) {
    h ^= (digit(hex.charCodeAt(i)) << 4) | digit(hex.charCodeAt(i + 1));
    h = Math.imul(h, 0x01000193);
  }
  return h;
};

/** fmix32(fnv1a32(segment ID ‖ piece u16 ‖ peer ID)), IDs as hex. */
export const rank = (segment: string, piece: number, peer: string): number => {
  let h = fnv1a32(fnvStart, segment);
  h = Math.imul(h ^ (piece >> 8), 0x01000193);
  h = Math.imul(h ^ (piece & 255), 0x01000193);
  h = fnv1a32(h, peer);
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  return h >>> 0;
};

/** Of the peers, the one of the lowest rank; ties by ID. */
export const owner = (segment: string, piece: number, peers: string[]): string => {
  let best = peers[0]!;
  if (peers.length === 1) return best;
  let low = rank(segment, piece, best);
  for (const p of peers.slice(1)) {
    const r = rank(segment, piece, p);
    if (r < low || (r === low && p < best)) {
      best = p;
      low = r;
    }
  }
  return best;
};
