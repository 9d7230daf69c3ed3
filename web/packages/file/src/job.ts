/** One fetch of a file, as its sources know it. */

import type { ByteRange, Leeway, Playback } from '@leeway/core';
import type { Ask } from './origin.ts';
import type { Version } from './version.ts';

/**
 * `high`: the origin is asked at once, and peers beside it. `auto`: peers have some seconds for each part. `low`: peers have as
 * long as it takes them to send the file at 125 kB/s, and a first one has ten seconds to come.
 */
export type FilePriority = 'high' | 'auto' | 'low';

export interface Job {
  leeway: Leeway;
  href: string;
  ask: Ask;
  playback: Playback;
  version: Version;
  /** The segments that have what is asked for. */
  parts: ByteRange[];
  asked: ByteRange;
  priority: FilePriority;
}

/** What the reader's bytes come from, in order. Starts anywhere at or before the byte that is asked for next. */
export interface Source {
  next(): Promise<{ first: number; bytes: Uint8Array }>;
  stop(): void;
}

export const changed = ({ href }: Job) => new TypeError(`The file at ${href} changed while it was fetched.`);
