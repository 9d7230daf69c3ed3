/** The body of the answer: what its reader reads is fetched then, and a little ahead. */

import type { Leeway, Playback } from '@leeway/core';
import type { Job, Source } from './job.ts';
import { NoRanges } from './origin.ts';
import { fromSwarm } from './swarm.ts';
import { firstPeer } from './wait.ts';
import { fromWhole } from './whole.ts';

/** The file that a page fetched last: it goes on serving that one to others. */
const served = new WeakMap<Leeway, Playback>();

export function streamOf(job: Job, signal?: AbortSignal): ReadableStream<Uint8Array> {
  const { leeway, playback, asked, priority, href } = job;
  const over = new AbortController();
  let source: Source = fromSwarm(job);
  let waits = priority === 'low';
  /** The next byte for the reader. */
  let at = asked.first;

  const end = () => {
    signal?.removeEventListener('abort', aborted);
    over.abort();
    source.stop();
  };
  const cancel = () => {
    end();
    playback.close();
  };
  const finish = () => {
    end();
    served.get(leeway)?.close();
    served.set(leeway, playback);
    playback.setPaused(true);
  };
  let stream: ReadableStreamDefaultController<Uint8Array>;
  const aborted = () => {
    cancel();
    stream.error(signal!.reason);
  };

  /** What the source has of what is asked for, which may be nothing yet. */
  const next = async () => {
    const { first, bytes } = await source.next().catch((error) => {
      if (!(error instanceof NoRanges) || over.signal.aborted) throw error;
      source.stop();
      source = fromWhole(job);
      return source.next();
    });
    return bytes.subarray(Math.max(0, at - first), Math.max(0, asked.last + 1 - first));
  };

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stream = controller;
        signal?.addEventListener('abort', aborted);
      },
      async pull() {
        try {
          if (waits) await firstPeer(leeway, href, over.signal);
          waits = false;
          let bytes: Uint8Array | undefined;
          while (!bytes?.length && !over.signal.aborted) bytes = await next();
          if (over.signal.aborted) return;
          at += bytes!.length;
          stream.enqueue(bytes!);
          if (at <= asked.last) return;
          finish();
          stream.close();
        } catch (error) {
          if (over.signal.aborted) return;
          cancel();
          throw error;
        }
      },
      cancel,
    },
    { highWaterMark: 0 },
  );
}
