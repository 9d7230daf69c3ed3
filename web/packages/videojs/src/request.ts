/** Stands for the `XMLHttpRequest` of a segment that peers may send. */

import type { ProgressLike, XhrRequest, XhrResponse } from './videojs.ts';

export interface StandIn extends XhrRequest {
  /** Headers of the origin's answer, by their names in lower case. */
  received: XhrResponse['headers'];
  /** For the page's hooks, as they have it of an `XMLHttpRequest`. */
  getResponseHeader(name: string): string | null;
  getAllResponseHeaders(): string;
  progress(loaded: number, total: number): void;
  /** Ends it: `loadend`. Only the first of all ends counts: false for another. */
  end(tell?: () => void): boolean;
}

/** `aborted`: VHS has taken the request back. */
export function createRequest(aborted: () => void): StandIn {
  const listeners: [type: string, listener: (event: ProgressLike) => void][] = [];
  let ended = false;
  const fire = (type: string, loaded = 0, total = 0) => {
    for (const [wanted, listener] of listeners) if (wanted === type) listener({ type, target: request, loaded, total });
  };
  const request: StandIn = {
    responseType: 'arraybuffer',
    response: null,
    status: 0,
    received: {},
    getResponseHeader: (name) => request.received[name.toLowerCase()] ?? null,
    getAllResponseHeaders: () =>
      Object.entries(request.received)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join(''),
    addEventListener: (type, listener) => void listeners.push([type, listener]),
    progress(loaded, total) {
      if (!ended) fire('progress', loaded, total);
    },
    abort() {
      // An aborted XMLHttpRequest calls no callback, and says that it has ended.
      if (request.end()) aborted();
    },
    end(tell) {
      if (ended) return false;
      ended = true;
      tell?.();
      fire('loadend');
      return true;
    },
  };
  return request;
}
