/** What a cell's folder on the origin holds: the fixture, as it is or republished live, and a license for its key. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Body } from '../bench.ts';
import { readPlaylist } from '../fixtures/playlists.ts';
import { clearKey, type Fixture } from '../fixtures/recipe.ts';
import { edgeAt, type LiveOptions, liveWindow, lowLatencyWindow, partOf } from './live.ts';

export interface Ask {
  /** In the cell's folder. */
  path: string;
  query: URLSearchParams;
}

export interface MediaOptions {
  live?: LiveOptions;
  lowLatency?: boolean;
  /** Milliseconds, monotonic. */
  now(): number;
  /** Resolves after some milliseconds. */
  wait(ms: number): Promise<void>;
}

const name = /^[\w.-]+$/;

/** What a cell plays, below a path of the origin. */
export interface Folder {
  readonly fixture: Fixture;
  /** The body of a path; undefined: there is none. */
  answer(ask: Ask): Promise<Body | undefined>;
  /** Segments that were asked for before they were whole; undefined: none can be. */
  readonly early?: number;
  /** Whether a path is a media segment, or a part of one. */
  isMedia(path: string): boolean;
}

/** How often a request that waits for a playlist looks again, in ms. */
const lookMs = 50;

/** Longest wait of a request for a playlist that is not there yet, in ms. */
const patienceMs = 6_000;

export class Media implements Folder {
  private readonly begunAt: number;

  constructor(
    private readonly dir: string,
    readonly fixture: Fixture,
    private readonly options: MediaOptions,
  ) {
    this.begunAt = options.now();
  }

  async answer({ path, query }: Ask): Promise<Buffer | undefined> {
    if (!name.test(path)) return undefined;
    if (path === 'license') return license();
    if (path === 'index.m3u8' && this.options.live) return Buffer.from(await this.playlist(query));
    const [, segment, part] = /^(seg-\d+)\.(\d)\.m4s$/.exec(path) ?? [];
    if (!segment) return this.file(path);
    const whole = await this.file(`${segment}.m4s`);
    return whole && partOf(whole, Number(part));
  }

  isMedia(path: string): boolean {
    return this.fixture.media.test(path);
  }

  private async file(path: string): Promise<Buffer | undefined> {
    return readFile(join(this.dir, this.fixture.name, path)).catch(() => undefined);
  }

  private async playlist(query: URLSearchParams): Promise<string> {
    const playlist = readPlaylist((await this.file('index.m3u8'))!.toString());
    const live = this.options.live!;
    const elapsed = () => (this.options.now() - this.begunAt) / 1000;
    if (!this.options.lowLatency) return liveWindow(playlist, elapsed(), live);
    const [segment, part] = [query.get('_HLS_msn'), query.get('_HLS_part')];
    const until = this.options.now() + patienceMs;
    const there = () => {
      const edge = edgeAt(playlist, elapsed(), live);
      if (edge.segment >= playlist.entries.length - 1) return true;
      if (edge.segment !== Number(segment)) return edge.segment > Number(segment);
      return part === null ? edge.part === 3 : edge.part >= Number(part);
    };
    while (segment !== null && !there() && this.options.now() < until) await this.options.wait(lookMs);
    return lowLatencyWindow(playlist, elapsed(), live);
  }
}

/** What a license server of the Clear Key system answers, a JSON Web Key Set. */
function license(): Buffer {
  const [kid, k] = [clearKey.id, clearKey.key].map((hex) => Buffer.from(hex, 'hex').toString('base64url'));
  return Buffer.from(JSON.stringify({ keys: [{ kty: 'oct', kid, k }], type: 'temporary' }));
}
