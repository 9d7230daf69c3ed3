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

/** Collections at most, and how many in a row have to find the same. */
const [collections, settled] = [30, 3];

/**
 * Bytes in use once all garbage is gone. Buffers that a collection finds are freed by another thread, which the next collection waits for;
 * and what was waiting for them may only then let go of more. So it collects until that changes nothing: by no clock, a busy machine
 * has the same.
 */
export const inUse = async (): Promise<number> => {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0, same = 0; n < collections && same < settled; n++) {
    await new Promise((done) => setImmediate(done));
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    same = heapUsed + arrayBuffers < least - 1_000 ? 0 : same + 1;
    least = Math.min(least, heapUsed + arrayBuffers);
  }
  return least;
};
