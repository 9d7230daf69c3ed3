/**
 * Objects that are too long to be shared whole (spec/site.md, "Virtual segments"): what the player asks for in one piece is
 * put together from parts, each with its own certificate and its own holders.
 */
import { complete } from '../cache/cache.ts';
import type { SegmentResult, Source } from '../ports.ts';
import { maxLength, virtualRanges } from '../segment/index.ts';
import type { Loads } from './loads.ts';
import { type Load, type Segment, sourceOf } from './segments.ts';
import type { Shared } from './shared.ts';

export interface PartsHost {
  /** Longest object that is put together from parts, bytes. */
  most: number;
  loads: Loads;
  /** Holds what the origin sent against the certificate; whether it agrees. */
  fromOrigin(s: Segment, data: Uint8Array): Promise<boolean>;
}

export interface Parts {
  /** The object is so long. */
  large(s: Segment, length: number): Promise<void>;
  /** What the origin sent may be shared. */
  share(s: Segment, data: Uint8Array): Promise<void>;
  /** Loads an object by its parts, if it has some and is not on its way. */
  split(s: Segment): void;
}

export const createParts = ({ segments, cache, changed }: Shared, { most, loads, fromOrigin }: PartsHost): Parts => {
  const start = (s: Segment, load: Load) => {
    const { request, startedMs } = load;
    const parts = s.parts!;
    const data = new Uint8Array(s.object!);
    const bytes: Record<Source, number> = { origin: 0, seed: 0, peer: 0 };
    const loaded = parts.map(() => 0);
    let reason: SegmentResult['reason'];
    let missing = parts.length;
    let over = false;
    // One after the other: together they would share the line, and each would take its part for all of it.
    let turn: Promise<unknown> = Promise.resolve();

    const stop = () => {
      over = true;
      parts.forEach((part, n) => {
        loads.release(part, children[n]!);
      });
    };
    const end = (result: SegmentResult) => {
      stop();
      loads.hand(s.ref, load, result);
    };
    /** A part that cannot be had, or that no certificate covers: parts of two versions must not be mixed. */
    const whole = () => {
      if (over) return;
      stop();
      load.stop = undefined;
      loads.ask(s, load);
      loads.startOrigin(s, 'no-cert');
    };
    const received = async (part: Segment, result: SegmentResult) => {
      const { first, last } = part.ref.range!;
      const got = new Uint8Array(result.data);
      // An origin that does not know ranges sent everything.
      if (!over && got.length > last - first + 1) {
        end(result);
        return part.unshared ? undefined : share(s, got.slice());
      }
      // What is held was compared piece by piece as it came.
      if (!complete(cache.get(part.id)) && (part.unshared || !(await fromOrigin(part, got)))) return whole();
      if (over) return;
      data.set(got, first);
      for (const source in bytes) bytes[source as Source] += result.bytes[source as Source];
      reason ??= result.reason;
      if (--missing) return;
      const version = (p: Segment) => String(p.certificate?.validator);
      if (parts.some((p) => !p.certificate || version(p) !== version(parts[0]!))) return whole();
      end({ data: data.buffer, source: sourceOf(bytes), reason, bytes, crowded: true });
    };

    const children = parts.map((part, n): Load => {
      const { range } = part.ref;
      return {
        request: {
          ...request,
          range,
          origin: (signal, onProgress, stretch = range) => {
            const next = turn.then(() => {
              // What no certificate covers is not worth a request of its own.
              if (!part.certificate) whole();
              signal.throwIfAborted();
              return request.origin(signal, onProgress, stretch);
            });
            turn = next.catch(() => {});
            return next;
          },
        },
        onProgress(now) {
          loaded[n] = Math.max(loaded[n]!, now);
          load.onProgress(
            Math.min(
              loaded.reduce((a, b) => a + b),
              data.length,
            ),
            data.length,
          );
        },
        resolve: (result) => received(part, result).catch(whole),
        reject: whole,
        startedMs,
        part: true,
      };
    });
    load.stop = stop;
    parts.forEach((part, n) => {
      loads.ask(part, children[n]!);
    });
  };

  const split = (s: Segment) => {
    if (!s.parts || s.origin !== 'idle') return;
    for (const load of [...s.loads]) {
      s.loads.delete(load);
      start(s, load);
    }
  };

  const large = async (s: Segment, length: number) => {
    if (!s.parts && !s.ref.range && length <= most) {
      const ranges = virtualRanges(length);
      const parts = await Promise.all(
        ranges.map((range) => segments.resolve({ ...s.ref, range }, s.rendition, s.bitrate)),
      );
      for (const part of parts) Object.assign(part, { object: length, playlist: s.playlist });
      if (parts.length) s.parts = parts;
      s.object = length;
      split(s);
    }
    // No seed certifies it whole.
    s.state = 'refused';
    changed();
  };

  const share = async (s: Segment, data: Uint8Array) => {
    if (data.length > maxLength) await large(s, data.length);
    if (!s.parts) await fromOrigin(s, data);
    for (const part of s.parts ?? []) {
      const { first, last } = part.ref.range!;
      await fromOrigin(part, data.subarray(first, last + 1));
    }
  };

  return { large, share, split };
};
