/** What `fetch` does for a file, with bytes of other viewers. */

import type { ByteRange, Leeway } from '@leeway/core';
import type { FilePriority } from './job.ts';
import { asker, rangeHeader } from './origin.ts';
import { partsOf } from './parts.ts';
import { streamOf } from './stream.ts';
import { type Version, versionOf } from './version.ts';

/** Bytes of the file, both inclusive; without `last` to its end. */
export interface FileRange {
  first: number;
  last?: number;
}

export interface FileOptions {
  range?: FileRange;
  priority?: FilePriority;
  signal?: AbortSignal;
  /** How the origin is asked: `credentials`, `headers` and what else `fetch` takes. */
  request?: Omit<RequestInit, 'signal' | 'method' | 'body'>;
}

/**
 * Fetches a file, or a range of it, from other viewers and the origin. The answer is as of `fetch`: status 200, or 206 for a range,
 * and a body that is fetched as it is read. Where nothing can be shared, it is the origin's.
 */
export async function fetchFile(leeway: Leeway, url: string, options: FileOptions = {}): Promise<Response> {
  const { range, priority = 'auto', signal, request } = options;
  const { first = 0, last = Number.POSITIVE_INFINITY } = range ?? {};
  if (!(first >= 0 && last >= first && first % 1 === 0 && (last % 1 === 0 || last === Number.POSITIVE_INFINITY)))
    throw new TypeError('A range of a file is { first, last } in bytes, with first ≤ last.');
  if (!/^(high|auto|low)$/.test(priority)) throw new TypeError('The priority of a file is high, auto or low.');
  signal?.throwIfAborted();
  const { href } = new URL(url, document.baseURI);
  const ask = asker(href, request);
  const playback = leeway.open(href, { file: true });
  try {
    const head = playback.active
      ? await ask({ method: 'HEAD', signal, headers: rangeHeader({ first: 0 }) }).catch(() => undefined)
      : undefined;
    signal?.throwIfAborted();
    const version = head?.ok ? versionOf(head.headers) : undefined;
    const asked = { first, last: Math.min(last, (version?.length ?? 0) - 1) };
    const parts = version && first <= asked.last ? partsOf(version.length, asked) : undefined;
    if (!head || !version || !parts) {
      playback.close();
      return await ask({ signal, headers: range && rangeHeader(range) });
    }
    const body = streamOf({ leeway, href, ask, playback, version, parts, asked, priority }, signal);
    return new Response(body, { status: range ? 206 : 200, headers: headersOf(head.headers, version, asked, range) });
  } catch (error) {
    playback.close();
    throw error;
  }
}

function headersOf(head: Headers, { length }: Version, { first, last }: ByteRange, range?: FileRange): Headers {
  const headers = new Headers({ 'content-length': `${last - first + 1}` });
  if (range) headers.set('content-range', `bytes ${first}-${last}/${length}`);
  for (const name of ['content-type', 'etag', 'last-modified']) {
    const value = head.get(name);
    if (value) headers.set(name, value);
  }
  return headers;
}
