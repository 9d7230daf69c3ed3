/** Where a segment stands on the timeline of the playback, in the terms of the core. */

import type { ByteRange, SegmentRef, SegmentRequest } from '@leeway/core';
import type { PlayerLike, SegmentReference, ShakaRequest, ShakaStream } from './shaka.ts';

/** Segments after the asked one that the library hears of: as many as it fetches ahead. */
const lookahead = 32;

/** The byte range that a request asks for; null: one that has no end, and so no name. */
export function rangeOf({ headers }: ShakaRequest): ByteRange | undefined | null {
  if (!headers.Range) return undefined;
  const found = /^bytes=(\d+)-(\d+)$/.exec(headers.Range);
  return found && { first: Number(found[1]), last: Number(found[2]) };
}

/** The next segments of the same rendition. */
export function upcomingOf({ segmentIndex: index }: ShakaStream, segment: SegmentReference): SegmentRef[] {
  const at = index?.find(segment.getStartTime()) ?? null;
  const refs: SegmentRef[] = [];
  if (at === null) return refs;
  for (let i = 1; i <= lookahead; i++) {
    const next = index!.get(at + i);
    const url = next?.getUris()[0];
    if (!next || !url) break;
    const start = next.getStartTime();
    const ref: SegmentRef = { url, startMs: start * 1000, durationMs: (next.getEndTime() - start) * 1000 };
    const [first, last] = [next.getStartByte(), next.getEndByte()];
    if (last !== null) ref.range = { first, last };
    // Without an end it has no name.
    else if (first) break;
    refs.push(ref);
  }
  return refs;
}

/** What names the segments of a stream: the representation of an MPD, or a media playlist. Of a stream of several nothing is known. */
export function playlistOf(
  player: PlayerLike,
  manifest: string,
  { originalId: id }: ShakaStream,
): Pick<SegmentRequest, 'playlist' | 'representation'> {
  if (!id || id.includes(',')) return {};
  if (player.getManifestType() === 'DASH') return { playlist: manifest, representation: id };
  return { playlist: new URL(id, manifest).href };
}

const playing = (player: PlayerLike) => player.getVariantTracks().find(({ active }) => active);

/** Bits per second of the rendition on screen; 0 unknown. */
export const bitrateShown = (player: PlayerLike): number => playing(player)?.bandwidth ?? 0;

/** Bits per second of the rendition that a segment belongs to; in HLS the playlists state that of picture and sound together. */
export const bitrateOf = (player: PlayerLike, stream: ShakaStream): number => stream.bandwidth || bitrateShown(player);
