import { afterEach, expect, it, vi } from 'vitest';
import type { PageOptions } from '../film';

/** What the driver asks of hls.js, and the player that it made. */
const { Fake, made } = vi.hoisted(() => {
  const made: Fake[] = [];
  class Fake {
    static ErrorTypes = { MEDIA_ERROR: 'mediaError' };
    levels: object[] = [{}];
    recovered = 0;
    heard = new Map<string, (event: string, data: object) => void>();
    constructor() {
      made.push(this);
    }
    on(event: string, listener: (event: string, data: object) => void) {
      this.heard.set(event, listener);
    }
    attachMedia() {}
    loadSource() {}
    recoverMediaError() {
      this.recovered++;
    }
    fails(details: string) {
      this.heard.get('hlsError')!('hlsError', { fatal: true, type: 'mediaError', details });
    }
  }
  return { Fake, made };
});
vi.mock('hls.js', () => ({ default: Fake, Events: { ERROR: 'hlsError' } }));
vi.stubGlobal('window', {});
const { start } = await import('./hlsjs');

afterEach(() => {
  made.length = 0;
});

function played() {
  const video = { currentTime: 0 };
  const failures: string[] = [];
  const failed = (text: string) => failures.push(text);
  start(video as HTMLVideoElement, '', {} as PageOptions, { segment() {}, switched() {}, failed });
  return { video, failures, hls: made[0]! };
}

it('goes on after a media error, and says so where it does not', () => {
  const { video, failures, hls } = played();
  hls.fails('bufferAppendError');
  video.currentTime = 30;
  hls.fails('bufferAppendError');
  expect([hls.recovered, failures]).toEqual([2, []]);
  hls.fails('bufferAppendError');
  expect([hls.recovered, failures]).toEqual([2, ['The film does not load: bufferAppendError.']]);
});

it('says that the browser has none of the codecs', () => {
  const { failures, hls } = played();
  hls.levels = [];
  hls.fails('manifestIncompatibleCodecsError');
  expect([hls.recovered, failures]).toEqual([0, ['The film does not load: manifestIncompatibleCodecsError.']]);
});
