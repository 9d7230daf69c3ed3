/** A live presentation, republished from the segments of a fixture: what its playlist says at a moment. */

import { linesOf, type MediaPlaylist } from '../fixtures/playlists.ts';

export interface LiveOptions {
  /** Segments in the window. */
  window: number;
  /** Seconds of the presentation that are there when it begins. */
  head: number;
}

/** How many segments are whole after `elapsed` seconds. */
export function wholeAt({ entries }: MediaPlaylist, elapsed: number, { head }: LiveOptions): number {
  let end = 0;
  for (const [i, { seconds }] of entries.entries()) {
    end += seconds;
    if (end > elapsed + head + 1e-6) return i;
  }
  return entries.length;
}

const targetOf = ({ entries }: MediaPlaylist) => Math.ceil(Math.max(...entries.map(({ seconds }) => seconds)));

/** The sliding window after `elapsed` seconds; at the fixture's end the presentation ends. */
export function liveWindow(playlist: MediaPlaylist, elapsed: number, options: LiveOptions): string {
  const whole = wholeAt(playlist, elapsed, options);
  const first = Math.max(0, whole - options.window);
  return [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${targetOf(playlist)}`,
    `#EXT-X-MEDIA-SEQUENCE:${first}`,
    ...(playlist.map ? [playlist.map] : []),
    ...playlist.entries.slice(first, whole).flatMap(linesOf),
    ...(whole === playlist.entries.length ? ['#EXT-X-ENDLIST'] : []),
    '',
  ].join('\n');
}

/** Parts of a segment in the presentation of low latency. */
export const partsOfSegment = 4;

/** `seg-007.m4s` → `seg-007.2.m4s`. */
export const partName = (uri: string, part: number): string => uri.replace(/(\.\w+)$/, `.${part}$1`);

/** The newest part that is whole: media sequence number and index. */
export interface Edge {
  segment: number;
  part: number;
}

export function edgeAt(playlist: MediaPlaylist, elapsed: number, options: LiveOptions): Edge {
  const segment = wholeAt(playlist, elapsed, options);
  const seconds = playlist.entries[segment]?.seconds ?? 0;
  const before = playlist.entries.slice(0, segment).reduce((sum, entry) => sum + entry.seconds, 0);
  const inSegment = elapsed + options.head - before;
  const parts = seconds ? Math.min(partsOfSegment - 1, Math.floor((inSegment / seconds) * partsOfSegment + 1e-6)) : 0;
  return parts > 0 ? { segment, part: parts - 1 } : { segment: segment - 1, part: partsOfSegment - 1 };
}

/** The playlist with the parts of the newest segments, and the hint of the next. */
export function lowLatencyWindow(playlist: MediaPlaylist, elapsed: number, options: LiveOptions): string {
  const { entries } = playlist;
  const edge = edgeAt(playlist, elapsed, options);
  const whole = edge.part === partsOfSegment - 1 ? edge.segment + 1 : edge.segment;
  const first = Math.max(0, whole - options.window);
  const part = entries[0]!.seconds / partsOfSegment;
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:9',
    `#EXT-X-TARGETDURATION:${targetOf(playlist)}`,
    `#EXT-X-PART-INF:PART-TARGET=${part}`,
    `#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${6 * part}`,
    `#EXT-X-MEDIA-SEQUENCE:${first}`,
    ...(playlist.map ? [playlist.map] : []),
  ];
  const partLine = (uri: string, i: number) =>
    `#EXT-X-PART:DURATION=${part},URI="${partName(uri, i)}"${i === 0 ? ',INDEPENDENT=YES' : ''}`;
  for (let i = first; i < whole; i++) {
    const entry = entries[i]!;
    // Parts far from the edge are left out: their segments are named.
    if (i >= whole - 3) for (let p = 0; p < partsOfSegment; p++) lines.push(partLine(entry.uri, p));
    lines.push(...linesOf(entry));
  }
  const open = entries[whole];
  if (!open) return [...lines, '#EXT-X-ENDLIST', ''].join('\n');
  const done = edge.segment === whole ? edge.part + 1 : 0;
  for (let p = 0; p < done; p++) lines.push(partLine(open.uri, p));
  return [...lines, `#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${partName(open.uri, done)}"`, ''].join('\n');
}

/** The part of a segment made of chunks: of `partsOfSegment` runs that each end with the data of a movie fragment. */
export function partOf(segment: Buffer, part: number): Buffer {
  const ends = [0];
  for (let at = 0; at + 8 <= segment.length; ) {
    const size = segment.readUInt32BE(at);
    if (size < 8) break;
    at += size;
    if (segment.toString('latin1', at - size + 4, at - size + 8) === 'mdat') ends.push(at);
  }
  const end = ends[part + 1];
  return end === undefined ? Buffer.alloc(0) : segment.subarray(ends[part], end);
}
