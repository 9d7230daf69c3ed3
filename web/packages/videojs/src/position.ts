/** Which segment a request of VHS is for, and where it stands on the timeline of the playback, in the terms of the core. */

import type { ByteRange, PartRef, SegmentRef } from '@leeway/core';
import type { VhsHandler, VhsLoader, VhsPending, VhsRange, VhsResource, XhrOptions } from './videojs.ts';

/** Segments after the asked one that the library hears of: as many as it fetches ahead. */
const lookahead = 32;

/** What a request is for. */
export interface Place {
  /** What its sound or picture is one of. */
  track: 'main' | 'audio';
  loader: VhsLoader;
  pending: VhsPending;
  /** An initialization segment: it cannot wait. */
  init: boolean;
  resource: VhsResource;
}

const rangeOf = (range: VhsRange | undefined): ByteRange | undefined => {
  if (!range) return undefined;
  const first = Number(range.offset);
  return { first, last: first + Number(range.length) - 1 };
};

/** Of its own accord VHS asks for what its loaders have before them. undefined: it is none of our business. */
export function placeOf({ playlistController_: controller }: VhsHandler, options: XhrOptions): Place | undefined {
  const init = options.requestType === 'segment-media-initialization';
  if (!controller || (!init && options.requestType !== 'segment')) return undefined;
  for (const track of ['main', 'audio'] as const) {
    const loader = controller[`${track}SegmentLoader_`];
    const pending = loader?.pendingSegment_;
    const resource = pending && (init ? pending.segment.map : pending.part || pending.segment);
    if (resource?.resolvedUri !== options.uri) continue;
    const range = rangeOf(resource.byterange);
    if ((range && `bytes=${range.first}-${range.last}`) !== options.headers?.Range) continue;
    return { track, loader, pending: pending!, resource, init };
  }
  return undefined;
}

/** Name and times of a place. */
export function refOf({ resource, pending: { startOfSegment, duration } }: Place): SegmentRef {
  return refFor(resource, startOfSegment ?? 0, duration);
}

function refFor({ resolvedUri, byterange }: VhsResource, start: number, duration: number): SegmentRef {
  const range = rangeOf(byterange);
  return { url: resolvedUri, startMs: start * 1000, durationMs: duration * 1000, ...(range && { range }) };
}

/** The parts that the playlist lists now. The library asks for no times of them. */
export const partsOf = ({ playlist_: playlist }: VhsLoader): PartRef[] =>
  (playlist?.segments ?? []).flatMap(({ parts = [] }, at) =>
    parts.map((part, index) => ({ ...refFor(part, 0, part.duration), sequence: playlist!.mediaSequence + at, index })),
  );

/** The next segments of the same rendition; VHS loads by parts what has parts. */
export function upcomingOf({ playlist, mediaIndex, startOfSegment, duration }: VhsPending): SegmentRef[] {
  let at = (startOfSegment ?? 0) + duration;
  const next = playlist.segments.slice(mediaIndex + 1, mediaIndex + 1 + lookahead);
  return next
    .filter(({ parts }) => !parts)
    .map((segment) => {
      const start = at;
      at += segment.duration;
      return refFor(segment, start, segment.duration);
    });
}

/**
 * Bits per second of the rendition at a moment of the buffer; 0 unknown. Of the cues it does not read which are active: Video.js takes a
 * change that was seen there for told, and a page would hear of none.
 */
export function bitrateAt({ playlistController_: controller }: VhsHandler, seconds: number): number {
  const cues = Array.from(controller?.segmentMetadataTrack_?.cues ?? []);
  return cues.find(({ startTime, endTime }) => startTime <= seconds && seconds < endTime)?.value?.bandwidth ?? 0;
}
