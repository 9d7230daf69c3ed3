/** A low-latency stream: its parts as they are published, and the origin that serves them. */

import type { OriginFetcher, OriginResult, PartRef } from '../ports.ts';
import { idOf, noise, type Signer } from './film.ts';
import type { Network } from './world.ts';

/** The first answer of the origin takes so long, ms. */
const answerMs = 20;

export interface BroadcastPart extends PartRef {
  name: string;
}

export class Broadcast {
  readonly partMs: number;
  /** Parts of a segment. */
  readonly perSegment: number;
  /** How many segments after its timeline's beginning it began. */
  epoch = 0;
  /** URL of the playlist as a player has it after a reload, and the ID of its stream. */
  readonly playlist: string;
  readonly stream: string;
  /** Requests for a whole part, and for ranges of it, by viewer. */
  readonly wholes = new Map<string, number>();
  readonly ranges = new Map<string, number>();
  /** The origin answers no request for a range with a range. */
  rangeless = false;
  /** Its answers are not to be stored. */
  unshared = false;
  /** The packager, which signs the n-th part so long after it is published, ms. */
  packager?: { signer: Signer; lateMs(n: number): number };
  /** Certificates that were asked for, and those that were there, by viewer. */
  readonly certificates = new Map<string, { asked: number; there: number }>();
  /** It sends something else than it sent the seed, to viewers. */
  differs = (_name: string) => false;
  protected readonly beganMs: number;
  private readonly contents = new Map<string, Uint8Array>();

  constructor(
    protected readonly network: Network,
    readonly rendition = 'mid',
    readonly partBytes = 60_000,
    partMs = 500,
  ) {
    this.partMs = partMs;
    this.perSegment = 2_000 / partMs;
    this.beganMs = network.world.now() - 20_000;
    const path = `/live/${rendition}/index.m3u8`;
    this.playlist = `https://video.example.com${path}?_HLS_msn=5&_HLS_part=1`;
    this.stream = idOf(path);
  }

  part(n: number): BroadcastPart {
    const sequence = Math.floor(n / this.perSegment);
    const index = n % this.perSegment;
    const name = `/live/${this.rendition}/${sequence}.${index}.m4s`;
    const url = `https://video.example.com${name}`;
    return { name, url, sequence, index, startMs: n * this.partMs, durationMs: this.partMs };
  }

  /** The latest part that is published. */
  latest(): number {
    return Math.floor((this.network.world.now() - this.beganMs) / this.partMs) - 1;
  }

  /** How long until the part is published, ms. */
  dueMs(n: number): number {
    return this.beganMs + (n + 1) * this.partMs - this.network.world.now();
  }

  /** The segment of chunks that a part ends. */
  endsWith(_part: Pick<PartRef, 'sequence' | 'index'>): { name: string; data: Uint8Array } | undefined {
    return undefined;
  }

  listed(): PartRef[] {
    const latest = this.latest();
    return Array.from({ length: 20 }, (_, i) => this.part(latest - 19 + i));
  }

  content(name: string, bytes = this.partBytes): Uint8Array {
    const known = this.contents.get(name) ?? noise(name, bytes);
    this.contents.set(name, known);
    return known;
  }

  /** What a viewer fetches beside a part: its certificate, which is there when the packager has written it. */
  fetchBeside(node: string, part: BroadcastPart, n: number, url: string, signal: AbortSignal): Promise<OriginResult> {
    const data = this.content(part.name);
    return this.beside(node, n, signal, url, () =>
      url === `${part.url}.leeway` ? { name: part.name, data, object: data.length } : undefined,
    );
  }

  /** A certificate that is there when the packager has written it: so long after the n-th part. */
  protected beside(
    node: string,
    n: number,
    signal: AbortSignal,
    url: string,
    of: () => { name: string; data: Uint8Array; object: number } | undefined,
  ): Promise<OriginResult> {
    const counts = this.certificates.get(node) ?? { asked: 0, there: 0 };
    this.certificates.set(node, counts);
    counts.asked++;
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('AbortError')));
      this.network.world.setTimer(() => {
        const { packager } = this;
        const what = of();
        if (!packager || !what || this.dueMs(n) + packager.lateMs(n) > 0) return reject(new Error('404'));
        counts.there++;
        const nowMs = Math.floor(this.network.world.now());
        const data = packager.signer.certify(what.name, what.data, nowMs, what.object);
        resolve({ data: data.slice().buffer as ArrayBuffer, status: 200, url });
      }, answerMs);
    });
  }

  /** Fetches over the network, in chunks of 16 KiB. */
  fetcher(node: string, name: string): OriginFetcher {
    return (signal, onProgress, range) =>
      new Promise((resolve, reject) => {
        const asked = range ? this.ranges : this.wholes;
        asked.set(node, (asked.get(node) ?? 0) + 1);
        signal.addEventListener('abort', () => reject(new Error('AbortError')));
        this.network.world.setTimer(() => {
          const part = this.rangeless ? undefined : range;
          const data = this.content(name).slice(part?.first, part && part.last + 1);
          if (this.differs(name)) data[0]! ^= 1;
          const firstMs = this.network.world.now();
          let loaded = 0;
          const send = (from: number) => {
            if (signal.aborted || from >= data.length) return;
            const size = Math.min(data.length - from, 16_384);
            const arrived = () => {
              if (signal.aborted) return;
              loaded += size;
              onProgress(loaded, data.length);
              if (loaded < data.length) return;
              const transferMs = this.network.world.now() - firstMs;
              const url = `https://video.example.com${name}`;
              resolve({ data: data.buffer as ArrayBuffer, status: 200, url, transferMs, unshared: this.unshared });
            };
            this.network.send('origin', node, size, () => send(from + size), arrived);
          };
          send(0);
        }, answerMs);
      });
  }
}
