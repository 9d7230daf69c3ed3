/** The loader of hls.js itself under the plug-in: the times that it keeps. */

import Hls from 'hls.js';
import { afterEach, expect, test, vi } from 'vitest';
import type { HlsLike, LoaderConstructor } from './hls.ts';
import { wrapLoader } from './loader.ts';
import { FakeHls, FakePlayback, settle, TestClock } from './testing.ts';

/** As much of a request as the loader uses. */
class Xhr {
  static made: Xhr[] = [];
  readyState = 0;
  responseType = '';
  response = new ArrayBuffer(70);
  status = 200;
  aborted = false;
  onreadystatechange: (() => void) | null = null;
  constructor() {
    Xhr.made.push(this);
  }
  open(): void {
    this.readyState = 1;
  }
  send(): void {}
  setRequestHeader(): void {}
  getResponseHeader(): null {
    return null;
  }
  abort(): void {
    this.aborted = true;
  }
  come(readyState: number): void {
    this.readyState = readyState;
    this.onreadystatechange?.();
  }
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a segment that comes has the time of a whole one, also where the list of its playlist came before its first byte', async () => {
  vi.useFakeTimers();
  vi.stubGlobal('self', globalThis);
  vi.stubGlobal('XMLHttpRequest', Xhr);
  const hls = new FakeHls();
  const playback = new FakePlayback();
  const Loader = wrapLoader(Hls.DefaultConfig.loader as unknown as LoaderConstructor, {
    hls: hls as unknown as HlsLike,
    clock: new TestClock(),
    playback: () => playback,
    caught: vi.fn(),
  });
  const url = 'https://cdn/5.ts';
  const frag = { sn: 5, start: 20, duration: 4, level: 1, type: 'main', url };
  const callbacks = { onSuccess: vi.fn(), onError: vi.fn(), onTimeout: vi.fn() };
  const loadPolicy = { ...Hls.DefaultConfig.fragLoadPolicy.default, timeoutRetry: null, errorRetry: null };
  expect([loadPolicy.maxTimeToFirstByteMs, loadPolicy.maxLoadTimeMs]).toEqual([10_000, 120_000]);
  const context = { frag, part: null, url, headers: {}, responseType: 'arraybuffer' };
  new Loader(hls.config).load(context, { loadPolicy }, callbacks);
  playback.fromOrigin();
  playback.request!.beside!('https://cdn/index.m3u8.leeway', new AbortController().signal, () => {}).catch(() => {});
  const [segment, list] = Xhr.made;
  list!.come(2);
  segment!.come(2);
  vi.advanceTimersByTime(20_000);
  expect(segment!.aborted).toBe(false);
  segment!.come(4);
  await settle();
  expect(callbacks.onTimeout).not.toHaveBeenCalled();
  expect(callbacks.onSuccess).toHaveBeenCalledOnce();
  // A fetch of which nothing comes any more ends all the same.
  vi.advanceTimersByTime(120_000);
  expect(list!.aborted).toBe(true);
});
