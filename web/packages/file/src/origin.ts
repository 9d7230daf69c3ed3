/** How the origin is asked for a file, and for parts of it. */

import type { ByteRange, OriginResult } from '@leeway/core';

/** How a page has its origin asked: headers, credentials and the like. */
export type Ask = (init: RequestInit) => Promise<Response>;

/** The origin answers a range with everything, or not at all. */
export class NoRanges extends Error {}

export const rangeHeader = ({ first, last }: { first: number; last?: number }) => ({
  range: `bytes=${first}-${last ?? ''}`,
});

/** Asks as the page would. The page's own headers stay. */
export function asker(url: string, request: RequestInit = {}): Ask {
  return ({ headers, ...init }) => {
    const all = new Headers(request.headers);
    for (const [name, value] of new Headers(headers)) all.set(name, value);
    return fetch(url, { ...request, ...init, headers: all });
  };
}

/**
 * One segment of the file, or a part of one. `length` is what it has to have; `range` is left out for the whole file. That is asked for by
 * a range, too: for one, browsers ask for bytes that are not packed, which have another `ETag` than packed ones.
 */
export async function fetchPart(
  ask: Ask,
  length: number,
  range: ByteRange | undefined,
  signal: AbortSignal,
  onProgress: (loaded: number, total: number) => void,
): Promise<OriginResult & { headers: Headers }> {
  const response = await ask({ signal, headers: rangeHeader(range ?? { first: 0 }) });
  const { status, url, headers, body } = response;
  if (!(range ? status === 206 : response.ok) || !body) {
    void body?.cancel();
    if (range && (response.ok || status === 416)) throw new NoRanges();
    throw new TypeError(`The origin answered ${status}.`);
  }
  const data = new Uint8Array(length);
  const reader = body.getReader();
  let loaded = 0;
  let began = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    began ||= performance.now();
    if (loaded + value.length > length) {
      void reader.cancel();
      throw new TypeError('The origin sent more than was asked for.');
    }
    data.set(value, loaded);
    loaded += value.length;
    onProgress(loaded, length);
  }
  if (loaded < length) throw new TypeError('The origin sent less than was asked for.');
  return {
    data: data.buffer,
    status,
    url,
    headers,
    transferMs: performance.now() - began,
    unshared: /no-store/i.test(headers.get('cache-control') ?? ''),
  };
}
