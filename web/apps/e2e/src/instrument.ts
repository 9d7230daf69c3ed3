/** What the instrument in a page has seen; times in ms since the page's navigation. */
export interface Seen {
  /** First frame of playback; -1 before. */
  startup: number;
  stalls: { at: number; ms: number }[];
  /** SHA-256 and length of every buffer that a SourceBuffer was given, in order. */
  appended: { digest: string; length: number }[];
  currentTime: number;
  bufferedAhead: number;
  paused: boolean;
  ended: boolean;
  errors: string[];
  /** Media segments that the page asked of a server, as the browser's network stack saw them. */
  fetched: { url: string; bytes: number; at: number }[];
}

declare global {
  interface Window {
    __seen?: () => Promise<Seen>;
  }
}

/**
 * Runs in the page before any of its scripts (puppeteer serializes it, so it uses nothing from outside). It watches the video
 * element and the SourceBuffers from below the player: what the player or the library say about themselves is no witness.
 */
export function instrument(): void {
  const stalls: { at: number; ms: number }[] = [];
  const appended: Promise<{ digest: string; length: number }>[] = [];
  const errors: string[] = [];
  let startup = -1;
  let waitingSince = -1;
  let video: HTMLVideoElement | undefined;
  let watching = false;

  const endStall = () => {
    if (waitingSince < 0) return;
    const ms = performance.now() - waitingSince;
    // A wait shorter than a few frames is the decoder's and cannot be seen.
    if (ms > 100) stalls.push({ at: waitingSince, ms });
    waitingSince = -1;
  };
  const watchFrames = () => {
    if (watching || !video) return;
    watching = true;
    video.requestVideoFrameCallback(() => {
      if (startup < 0) startup = performance.now();
    });
  };
  const on = (type: string, f: (v: HTMLVideoElement) => void) =>
    document.addEventListener(
      type,
      (event) => {
        if (event.target instanceof HTMLVideoElement) f(event.target);
      },
      true,
    );
  for (const type of ['loadstart', 'loadedmetadata', 'play']) {
    on(type, (v) => {
      video = v;
      watchFrames();
    });
  }
  on('waiting', (v) => {
    if (startup >= 0 && !v.seeking && !v.ended && waitingSince < 0) waitingSince = performance.now();
  });
  on('playing', endStall);
  on('seeking', () => {
    waitingSince = -1;
  });
  on('timeupdate', (v) => {
    if (v.readyState >= 3) endStall();
  });
  addEventListener('error', (event) => errors.push(String(event.message || 'error')));
  addEventListener('unhandledrejection', (event) => errors.push(`unhandled rejection: ${String(event.reason)}`));

  const hex = (buffer: ArrayBuffer) =>
    Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const append = SourceBuffer.prototype.appendBuffer;
  SourceBuffer.prototype.appendBuffer = function (data: BufferSource) {
    if (globalThis.crypto?.subtle) {
      const view = ArrayBuffer.isView(data)
        ? new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
        : new Uint8Array(data);
      const copy = view.slice();
      appended.push(crypto.subtle.digest('SHA-256', copy).then((d) => ({ digest: hex(d), length: copy.byteLength })));
    }
    append.call(this, data);
  };

  performance.setResourceTimingBufferSize(5000);
  const fetched = () =>
    (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
      .filter((entry) => /\.(ts|m4s)(\?|$)/.test(entry.name))
      .map((entry) => ({ url: entry.name, bytes: entry.encodedBodySize, at: entry.startTime }));

  window.__seen = async () => {
    let bufferedAhead = 0;
    if (video) {
      for (let i = 0; i < video.buffered.length; i++) {
        if (video.buffered.start(i) <= video.currentTime + 0.1 && video.buffered.end(i) >= video.currentTime) {
          bufferedAhead = video.buffered.end(i) - video.currentTime;
        }
      }
    }
    const open = waitingSince >= 0 ? performance.now() - waitingSince : 0;
    return {
      startup,
      stalls: open > 100 ? [...stalls, { at: waitingSince, ms: open }] : [...stalls],
      appended: await Promise.all(appended),
      currentTime: video?.currentTime ?? -1,
      bufferedAhead,
      paused: video?.paused ?? true,
      ended: video?.ended ?? false,
      errors: [...errors],
      fetched: fetched(),
    };
  };
}
