/** The segments of a file (spec/site.md, "Virtual segments"). */

import type { ByteRange } from '@leeway/core';

const longestWhole = 8 << 20;
/** Bytes of a segment of a file that is longer than that. */
export const partLength = 4 << 20;
const longestFile = 2 ** 40;

/** Those that have bytes of a range; undefined: the file is too long to be shared. */
export function partsOf(length: number, { first, last }: ByteRange): ByteRange[] | undefined {
  if (length > longestFile) return undefined;
  if (length <= longestWhole) return [{ first: 0, last: length - 1 }];
  const parts: ByteRange[] = [];
  for (let at = first - (first % partLength); at <= last; at += partLength)
    parts.push({ first: at, last: Math.min(at + partLength, length) - 1 });
  return parts;
}
