/** From an origin that does not know ranges: the file comes in one answer, also what was there before. */

import { changed, type Job, type Source } from './job.ts';
import { partLength } from './parts.ts';

export function fromWhole(job: Job): Source {
  const controller = new AbortController();
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let at = 0;
  /** Bytes that are not counted yet: that is done by segments, as of what comes by ranges. A stream hands on pieces of any length. */
  let since = 0;
  const count = () => {
    if (since) job.playback.bypass(since);
    since = 0;
  };
  const open = async () => {
    const response = await job.ask({ signal: controller.signal });
    if (!response.ok || !response.body) throw new TypeError(`The origin answered ${response.status}.`);
    if (!job.version.answers(response.headers)) throw changed(job);
    return response.body.getReader();
  };
  return {
    async next() {
      reader ??= await open();
      const { done, value } = await reader.read();
      if (done) throw new TypeError('The origin sent less than was asked for.');
      const first = at;
      at += value.length;
      since += value.length;
      if (since >= partLength) count();
      return { first, bytes: value };
    },
    stop() {
      controller.abort();
      count();
    },
  };
}
