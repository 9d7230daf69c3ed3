/** Segments by the swarm, a few on their way at a time. */

import type { ByteRange, Loading, SegmentRef, SegmentResult } from '@leeway/core';
import { changed, type Job, type Source } from './job.ts';
import { fetchPart } from './origin.ts';

/** The timeline on which a file's segments are, bytes a millisecond. The same for all viewers: the tracker compares by it what they hold. */
const pace = 1000;
/** How much longer than that a part may take that is in no hurry. */
const patience = 8;
/** Segments on their way at a time: the line does not idle while one ends and the next begins. */
const atOnce = 2;
const mostUpcoming = 32;
/** A file has no playhead. Unless its priority is high, parts are asked for as if so many durations of a part were in hand. */
const hand = 10;

interface Part {
  first: number;
  load(): Promise<SegmentResult>;
  loading: Loading;
  /** Of the origin's last answer. */
  headers?: Headers;
}

export function fromSwarm(job: Job): Source {
  const { href, ask, playback, version, parts, priority, leeway } = job;
  const { clock } = leeway;
  const stretched = priority === 'low' ? patience : 1;
  const whole = ({ first, last }: ByteRange) => first === 0 && last === version.length - 1;
  const refs: SegmentRef[] = parts.map((range) => ({
    url: href,
    range: whole(range) ? undefined : range,
    startMs: range.first / pace,
    durationMs: ((range.last - range.first + 1) / pace) * stretched,
  }));
  const coming: Part[] = [];
  let begun = 0;

  const begin = (n: number) => {
    const ref = refs[n]!;
    const since = clock.now();
    const handMs = priority === 'high' ? 0 : hand * ref.durationMs;
    const part = {
      first: parts[n]!.first,
      load() {
        part.loading = playback.load({
          ...ref,
          rendition: 'file',
          bitrate: (8000 * pace) / stretched,
          adaptive: false,
          live: false,
          deadlineMs: () => handMs + since - clock.now(),
          upcoming: refs.slice(n + 1, n + 1 + mostUpcoming),
          origin: async (stop, onProgress, range = ref.range) => {
            const length = range ? range.last - range.first + 1 : version.length;
            const { headers, ...got } = await fetchPart(ask, length, range, stop, onProgress);
            part.headers = headers;
            return got;
          },
        });
        return part.loading.result;
      },
    } as Part;
    part.load().catch(() => {}); // it is looked at in its turn
    coming.push(part);
  };

  return {
    async next() {
      while (coming.length < atOnce && begun < parts.length) begin(begun++);
      const part = coming[0]!;
      let got = await part.loading.result;
      // The origin sent it to another reader of the page: of which version it is, that one knows. So it is loaded once more.
      while (!got.version && !part.headers) got = await part.load();
      coming.shift();
      if (got.version ? !version.certified(got.version) : !version.answers(part.headers!)) throw changed(job);
      return { first: part.first, bytes: new Uint8Array(got.data) };
    },
    stop() {
      for (const { loading } of coming.splice(0)) loading.abort();
    },
  };
}
