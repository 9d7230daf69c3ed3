/** Where a chunk ends that the origin sends (spec/parts.md, "Chunks"). */

/** The type of a box of media. */
const mdat = 0x6d646174;

/** How long the chunk is that begins at a byte of a segment, as its boxes say; 0: not all of it has come. */
export const chunkLength = (data: Uint8Array, from: number): number => {
  const view = new DataView(data.buffer, data.byteOffset);
  for (let at = from; at + 8 <= data.length; ) {
    const length = view.getUint32(at);
    const end = at + length;
    if (length < 8 || end > data.length) break;
    if (view.getUint32(at + 4) === mdat) return end - from;
    at = end;
  }
  return 0;
};
