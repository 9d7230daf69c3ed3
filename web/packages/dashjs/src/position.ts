/** Where a segment stands on the timeline of the playback, in the terms of the core. */

import type { ByteRange, SegmentRef } from '@leeway/core';
import type { FragmentRequest, Representation, Template } from './dashjs.ts';

/** Segments after the asked one that the library hears of: as many as it fetches ahead. */
const lookahead = 32;

/** The byte range of a request; null: one that has no end, and so no name. */
export function rangeOf({ range }: FragmentRequest): ByteRange | undefined | null {
  if (!range) return undefined;
  const found = /^(\d+)-(\d+)$/.exec(range);
  return found && { first: Number(found[1]), last: Number(found[2]) };
}

function templateOf({ adaptation, index }: Representation): Template | undefined {
  const period = adaptation?.period;
  const set = period?.mpd?.manifest?.Period?.[period.index]?.AdaptationSet?.[adaptation!.index];
  return set?.Representation?.[index!]?.SegmentTemplate;
}

/** The reference of a segment (spec/site.md); what else has a template of this kind fits no request. */
const fill = (media: string, { id, bandwidth }: Representation, number: number, time: number): string =>
  media.replace(/\$(?:(\w+)(?:%0(\d+)d)?)?\$/g, (_, name?: string, width = '1') =>
    name
      ? String({ RepresentationID: id, Bandwidth: bandwidth, Number: number, Time: time }[name]).padStart(
          Number(width),
          '0',
        )
      : '$',
  );

/**
 * The next segments of the same rendition, as the template of the MPD has them. dash.js tells of the one that it asks for
 * alone; where the template does not lead to that one, nothing is known.
 */
export function upcomingOf(request: FragmentRequest): SegmentRef[] {
  const { representation, index, url, range, startTime, duration } = request;
  const {
    media,
    timescale = 1,
    duration: regular,
    startNumber = 1,
    SegmentTimeline,
  } = (representation && templateOf(representation)) || ({} as Template);
  const refs: SegmentRef[] = [];
  if (!media || range) return refs;
  let before: string | undefined;
  let startMs = (startTime + duration) * 1000;
  /** Of the template, from the first on; of one without a timeline from the asked one on. */
  let at = SegmentTimeline ? 0 : index;
  let time = 0;
  for (const { t, d, r = 0 } of SegmentTimeline?.S ?? (regular ? [{ t: at * regular, d: regular, r: -1 }] : [])) {
    time = t ?? time;
    // A run without an end goes on as far as is looked.
    for (let left = r < 0 ? index + lookahead - at : r; left >= 0 && refs.length < lookahead; left--) {
      if (at >= index) {
        const reference = fill(media, representation!, startNumber + at, time);
        if (at === index) {
          if (url.endsWith(reference)) before = url.slice(0, -reference.length);
        } else if (before !== undefined) {
          const durationMs = (d * 1000) / timescale;
          refs.push({ url: before + reference, startMs, durationMs });
          startMs += durationMs;
        }
      }
      at++;
      time += d;
    }
  }
  return refs;
}
