/** The hash by which peers agree, without a word, on who takes what (spec/schedule.md, rule 7). */

/** The piece number that stands for a whole segment. */
export const wholeSegment = 0xffff;

/** fmix32(fnv1a32(segment ID ‖ piece u16 ‖ peer ID)), IDs as hex. */
export const rank = (segment: string, piece: number, peer: string): number => {
  let h = 0x811c9dc5;
  const text = segment + piece.toString(16).padStart(4, '0') + peer;
  for (let i = 0; i < text.length; i += 2) {
    h ^= Number.parseInt(text.slice(i, i + 2), 16);
    h = Math.imul(h, 0x01000193);
  }
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
