/** Films of hours, and what pages keep of them. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Film, noise } from './film.ts';

/** A film that is made anew each time that it is read: what is in memory is the pages'. */
export class LongFilm extends Film {
  constructor(count: number, durationMs: number, bytes: number) {
    super(0, durationMs, bytes);
    for (let n = 0; n < count; n++) {
      const name = `/film/${n}.ts`;
      const url = `https://video.example.com${name}`;
      this.segments.push({ url, name, startMs: n * durationMs, durationMs });
    }
  }

  /** Requests are not counted, as that would be kept, too. */
  override count(): void {}

  override content(name: string): Uint8Array {
    return noise(name, this.bytes);
  }
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes in use once all garbage is gone. */
export const inUse = (): number => {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
