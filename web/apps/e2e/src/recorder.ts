import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Viewer } from './viewer.ts';

/** A media response as the page's hls.js was given it, from whatever source. */
export interface Given {
  path: string;
  digest: string;
}

interface RecorderWindow {
  __given?: Promise<Given>[];
  __note(path: string, data: BufferSource): void;
  __received: RecorderStage['received'];
  // biome-ignore lint/suspicious/noExplicitAny: the page's Video.js
  videojs?: any;
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js
  Hls?: any;
  recordHls(hlsClass: unknown, hls: unknown, stage: RecorderStage): void;
}

/** What a stage of the conformance suite hears of a player of hls.js. */
interface RecorderStage {
  error(): void;
  received(response: { url: string; range?: string; data: ArrayBuffer }): void;
}

/** Runs in the page, before what notes there: keeps the digests of what a player was given. */
function takeNotes(): void {
  const page = window as unknown as RecorderWindow;
  const all: Promise<Given>[] = [];
  page.__given = all;
  const hex = (buffer: ArrayBuffer) =>
    Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
  page.__note = (path, data) => {
    all.push(crypto.subtle.digest('SHA-256', data).then((d) => ({ path, digest: hex(d) })));
  };
}

/**
 * Runs in the page: has every player of hls.js tell what it is given. It looks for the class again and again, since an accessor of
 * `window` would be in the library's way.
 */
function watchPlayers(): void {
  const page = window as unknown as RecorderWindow;
  const stage: RecorderStage = {
    error() {},
    received({ url, range, data }) {
      if (range) return;
      const path = new URL(url, location.href).pathname;
      page.__note(path, data.slice(0));
    },
  };
  page.__received = stage.received;
  const known = new WeakSet();
  const timer = setInterval(() => {
    const { Hls } = page;
    if (Hls === undefined) return;
    clearInterval(timer);
    const { trigger } = Hls.prototype;
    Hls.prototype.trigger = function (...event: unknown[]) {
      if (!known.has(this)) {
        known.add(this);
        page.recordHls(Hls, this, stage);
      }
      return trigger.apply(this, event);
    };
  }, 1);
}

const recordHls = readFileSync(join(import.meta.dirname, 'conformance/record-hls.js'), 'utf8');

/** What is to run in a page before any of its scripts. */
export const recordGiven = `${recordHls}\n(${takeNotes})();\n(${watchPlayers})();`;

/** Has a page's player of Video.js tell from now on what it is given, as `recordGiven` has those of hls.js. */
export function recordVideojs(viewer: Viewer): Promise<void> {
  return viewer.page.evaluate(() => {
    const { videojs, __received } = window as unknown as RecorderWindow;
    const [player] = videojs.getAllPlayers();
    player
      .tech(true)
      .vhs.xhr.onResponse(({ requestType, uri, response }: { requestType: string; uri: string; response: unknown }) => {
        if (requestType === 'segment' && response instanceof ArrayBuffer) __received({ url: uri, data: response });
      });
  });
}

/** Runs in the page: has what is appended noted by chunks, each up to the end of an `mdat`. Initialization segments are left out. */
function watchAppends(): void {
  const page = window as unknown as RecorderWindow;
  const left = new WeakMap<SourceBuffer, Uint8Array>();
  const join = (a: Uint8Array, b: Uint8Array) => {
    const joined = new Uint8Array(a.length + b.length);
    joined.set(a);
    joined.set(b, a.length);
    return joined;
  };
  /** Notes what is complete of some bytes, and returns the rest. */
  const note = (bytes: Uint8Array): Uint8Array => {
    const view = new DataView(bytes.buffer);
    let from = 0;
    for (let at = 0; at + 8 <= bytes.length; ) {
      const end = at + view.getUint32(at);
      const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
      if (end > bytes.length || end <= at) break;
      if (type === 'mdat') {
        page.__note('', bytes.slice(from, end));
      }
      if (type === 'mdat' || type === 'moov') from = end;
      at = end;
    }
    return bytes.slice(from);
  };
  const { appendBuffer } = SourceBuffer.prototype;
  SourceBuffer.prototype.appendBuffer = function (data) {
    const bytes =
      data instanceof ArrayBuffer
        ? new Uint8Array(data)
        : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    left.set(this, note(join(left.get(this) ?? new Uint8Array(), bytes)));
    return appendBuffer.call(this, data);
  };
}

/** What is to run in a page that appends chunks of CMAF, before any of its scripts. */
export const recordAppends = `(${takeNotes})();\n(${watchAppends})();`;

/** What the page's player was given so far. */
export function given(viewer: Viewer): Promise<Given[]> {
  return viewer.page.evaluate(() => Promise.all((window as unknown as RecorderWindow).__given ?? []));
}
