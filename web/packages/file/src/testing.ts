/** An origin on a real socket, and a library whose engine is faked: what comes by peers is what a test says. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Leeway, Playback, SegmentRequest, SegmentResult, TitleSnapshot } from '@leeway/core';

export interface FileOrigin {
  url: string;
  /** Method and range of each request. */
  asked: string[];
  /** May change between requests. */
  file: {
    data: Uint8Array;
    etag?: string;
    modified?: string;
    ranges: boolean;
    length: boolean;
    status?: number;
    cache?: string;
    /** Packs what it sends: unless it is asked not to, or whatever it is asked. */
    packs?: 'unasked' | 'always';
  };
  stop(): Promise<void>;
}

export async function startOrigin(data: Uint8Array): Promise<FileOrigin> {
  const file: FileOrigin['file'] = { data, etag: '"1"', ranges: true, length: true };
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    asked.push(`${request.method} ${request.headers.range ?? 'all'}`);
    const packed = file.packs && (file.packs === 'always' || request.headers['accept-encoding'] !== 'identity');
    if (file.etag) response.setHeader('etag', packed ? `W/${file.etag}` : file.etag);
    if (file.modified) response.setHeader('last-modified', file.modified);
    if (file.cache) response.setHeader('cache-control', file.cache);
    response.setHeader('content-type', 'application/x-test');
    let body = file.data;
    if (file.status) return void response.writeHead(file.status).end();
    if (range && file.ranges) {
      const last = Math.min(Number(range[2] || Number.POSITIVE_INFINITY), body.length - 1);
      response.setHeader('content-range', `bytes ${range[1]}-${last}/${body.length}`);
      body = body.subarray(Number(range[1]), last + 1);
      response.statusCode = 206;
    }
    if (packed) {
      response.setHeader('content-encoding', 'gzip');
      body = gzipSync(body);
    }
    if (file.length) response.setHeader('content-length', body.length);
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/file.bin`,
    asked,
    file,
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

type Load = (request: SegmentRequest, signal: AbortSignal) => Promise<SegmentResult>;

/** From the origin, as it comes. */
export const byOrigin: Load = async ({ origin }, signal) => {
  const { data, status } = await origin(signal, () => {});
  return { data, status, source: 'origin', bytes: { origin: data.byteLength, seed: 0, peer: 0 } };
};

/** From peers, under certificates of a version. */
export const byPeers =
  (data: Uint8Array, validator: string, objectLength = data.length): Load =>
  async ({ range }) => {
    const part = range ? data.slice(range.first, range.last + 1) : data.slice();
    return {
      data: part.buffer as ArrayBuffer,
      source: 'peer',
      bytes: { origin: 0, seed: 0, peer: part.length },
      version: { objectLength, validator: new TextEncoder().encode(validator) },
    };
  };

export class FakeLeeway {
  active = true;
  load: Load = byOrigin;
  /** What happened to playbacks, in order. */
  readonly log: string[] = [];
  /** Bytes of each segment that came without the engine. */
  readonly bypassed: number[] = [];
  readonly requests: SegmentRequest[] = [];
  readonly listeners = new Map<string, (detail: never) => void>();
  readonly timers = new Map<number, () => void>();
  /** What is known of each title. */
  readonly known: Partial<TitleSnapshot> = { links: { open: 0, opening: 0 }, off: null };

  readonly leeway = {
    clock: {
      now: () => performance.now(),
      setTimer: (f: () => void) => {
        this.timers.set(this.timers.size + 1, f);
        return this.timers.size;
      },
      clearTimer: (id: number) => void this.timers.delete(id),
    },
    open: (manifest: string, options?: { file?: boolean }) => this.open(manifest, options),
    on: (event: string, f: (detail: never) => void) => {
      this.listeners.set(event, f);
      return () => void this.listeners.delete(event);
    },
    stats: () => ({ titles: [...this.opened].map((manifest) => ({ manifest, ...this.known })) }),
  } as unknown as Leeway;
  private readonly opened = new Set<string>();

  private open(manifest: string, options?: { file?: boolean }): Playback {
    this.opened.add(manifest);
    this.log.push(options?.file ? 'open' : 'open as a manifest');
    const { log } = this;
    return {
      manifest,
      active: this.active,
      alone: false,
      load: (request) => {
        this.requests.push(request);
        const controller = new AbortController();
        const result = this.load(request, controller.signal);
        return {
          result: new Promise((resolve, reject) => {
            controller.signal.addEventListener('abort', () => reject(new Error('aborted')));
            result.then(resolve, reject);
          }),
          abort: () => {
            log.push('abort');
            controller.abort();
          },
        };
      },
      bypass: (bytes) => {
        this.bypassed.push(bytes);
        log.push('bypass');
      },
      capacity: () => undefined,
      observe: () => {},
      setPaused: () => void log.push('paused'),
      close: () => void log.push('close'),
    };
  }
}
