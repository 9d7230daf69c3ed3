/** Where a fragment stands on the timeline of the playback, in the terms of the core. */

import type { ByteRange, PartRef, SegmentRef } from '@leeway/core';
import type { FragmentContext, FragmentLike, HlsLike, NamedLike } from './hls.ts';

/** Fragments after the asked one that the library hears of: as many as it fetches ahead. */
const lookahead = 32;

/** A byte range, inclusive; hls.js has it exclusive, and 0–0 for none. Missing ones are null or undefined, and no number is less. */
const between = (first?: number | null, end?: number | null): ByteRange | undefined =>
  end! > first! ? { first: first!, last: end! - 1 } : undefined;

/** The byte range of a request. */
export const rangeOf = (context: FragmentContext): ByteRange | undefined =>
  between(context.rangeStart ?? 0, context.rangeEnd);

/** The rendition of a fragment of video or audio. */
const renditionOf = (hls: HlsLike, { type, level }: FragmentLike) =>
  (type === 'main' ? hls.levels : hls.audioTracks)?.[level];

const detailsOf = (hls: HlsLike, frag: FragmentLike) => renditionOf(hls, frag)?.details;

/** Whether there may be more fragments later. */
export const isLive = (hls: HlsLike, frag: FragmentLike): boolean => detailsOf(hls, frag)?.live !== false;

/**
 * What a moment of the timeline, which begins where this viewer has joined, is moved by for others, ms: they mean the wall clock of the
 * stream, or count target durations by its sequence numbers, which may be a date or µs of the clock (spec/tracker-protocol.md, range).
 * Where there is an end, all begin alike.
 */
export function zeroOf(hls: HlsLike, frag: FragmentLike): number {
  const details = detailsOf(hls, frag);
  if (!details?.live || frag.sn === 'initSegment') return 0;
  return (
    (frag.programDateTime ?? (frag.sn * (details.targetduration ?? frag.duration) * 1000) % 4e12) - frag.start * 1000
  );
}

/** What a playlist names, as the core has it. */
export const refOf = ({
  url,
  start,
  duration,
  byteRangeStartOffset: first,
  byteRangeEndOffset: end,
}: NamedLike): SegmentRef => ({
  url,
  startMs: start * 1000,
  durationMs: duration * 1000,
  range: between(first, end),
});

/** The parts that the playlist of a fragment lists now. */
export const partsOf = (hls: HlsLike, frag: FragmentLike): PartRef[] =>
  (detailsOf(hls, frag)?.partList ?? []).map((part) => ({
    ...refOf(part),
    sequence: part.fragment.sn as number,
    index: part.index,
  }));

/** The next fragments of the same rendition. */
export function upcomingOf(hls: HlsLike, frag: FragmentLike): SegmentRef[] {
  const fragments = detailsOf(hls, frag)?.fragments ?? [];
  const at = fragments.findIndex((other) => other.sn === frag.sn);
  if (at < 0) return [];
  return fragments
    .slice(at + 1, at + 1 + lookahead)
    .filter((next) => next.url)
    .map(refOf);
}

/** Bits per second of the rendition that a fragment belongs to; 0 unknown. */
export const bitrateOf = (hls: HlsLike, frag: FragmentLike): number => renditionOf(hls, frag)?.bitrate ?? 0;
