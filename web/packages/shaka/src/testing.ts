/** The real Shaka Player, as far as it runs without a page: its networking, its events, its settings. And an origin to fetch from. */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { expect, onTestFinished, vi } from 'vitest';
import { FakePlayback, TestClock } from '../../hlsjs/src/testing.ts';
import { type Asked, createPlugin } from './loader.ts';
import type {
  PlayerLike,
  RequestContext,
  SegmentReference,
  ShakaLike,
  ShakaRequest,
  ShakaResponse,
  ShakaStream,
} from './shaka.ts';

interface Pending {
  promise: Promise<ShakaResponse>;
  abort(): Promise<void>;
}

export interface RealEngine {
  configure(settings: unknown): void;
  request(type: number, request: ShakaRequest, context?: object): Pending;
  registerRequestFilter(filter: unknown): void;
  destroy(): Promise<void>;
}

export interface RealPlayer extends PlayerLike {
  dispatchEvent(event: Event): boolean;
  getConfiguration(): { abr: { enabled: boolean }; networking: unknown };
  destroy(): Promise<void>;
}

type Real = ShakaLike & {
  Player: new () => RealPlayer;
  net: {
    NetworkingEngine: {
      readonly PluginPriority: { readonly APPLICATION: number };
      unregisterScheme(scheme: string): void;
      new (progress: (ms: number, bytes: number) => void): RealEngine;
      makeRequest(uris: string[], retry: object): ShakaRequest;
      defaultRetryParameters(): object;
    };
  };
  polyfill: { installAll(): void };
};

/** Loads Shaka, which looks for a page at once. The page here has what Shaka looks at, and does nothing. */
function loadShaka(): Real {
  const ignore = () => {};
  const silent = { addEventListener: ignore, removeEventListener: ignore };
  const page = {
    self: globalThis,
    window: globalThis,
    location: { protocol: 'http:' },
    document: {
      ...silent,
      baseURI: 'https://page.example.com/watch/',
      createElement: () => ({ canPlayType: () => '' }),
    },
    ...silent,
  };
  for (const [name, value] of Object.entries(page)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  const navigator = { userAgent: 'node', vendor: '', platform: '', languages: ['en'] };
  Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
  const shaka = createRequire(import.meta.url)('shaka-player') as Real;
  shaka.polyfill.installAll();
  return shaka;
}

export const shaka = loadShaka();

/** A player that plays what the test says. */
export class Page extends shaka.Player {
  uri: string | null = null;
  type: string | null = null;
  tracks = [
    { active: false, bandwidth: 500_000 },
    { active: true, bandwidth: 1_500_000 },
  ];
  media: HTMLMediaElement | null = null;
  override getAssetUri(): string | null {
    return this.uri;
  }
  override getManifestType(): string | null {
    return this.type;
  }
  override getVariantTracks(): { active: boolean; bandwidth: number }[] {
    return this.tracks;
  }
  override getMediaElement(): HTMLMediaElement | null {
    return this.media;
  }
  live = false;
  /** It grows, and is not what Shaka calls live. */
  event = false;
  isLive(): boolean {
    return this.live;
  }
  override isDynamic(): boolean {
    return this.live || this.event;
  }
  override getPresentationStartTimeAsDate(): Date | null {
    return this.isDynamic() ? new Date(1_800_000_000_000) : null;
  }
  say(...events: string[]): void {
    for (const event of events) this.dispatchEvent(new Event(event));
  }
  load(uri: string, type = 'HLS'): void {
    this.uri = uri;
    this.type = null;
    this.say('loading');
    this.type = type;
    this.say('manifestparsed', 'loaded');
  }
}

export function newPlayer(): Page {
  const player = new Page();
  onTestFinished(() => player.destroy());
  return player;
}

/** A networking engine with a player's settings, and the samples that it makes of what it loads. */
export function newEngine(player: Page): { engine: RealEngine; samples: { ms: number; bytes: number }[] } {
  const samples: { ms: number; bytes: number }[] = [];
  const engine = new shaka.net.NetworkingEngine((ms, bytes) => samples.push({ ms, bytes }));
  engine.configure(player.getConfiguration().networking);
  onTestFinished(() => engine.destroy());
  return { engine, samples };
}

export interface AskedOfOrigin {
  url: string;
  headers: IncomingHttpHeaders;
  answer: ServerResponse;
}

/** An origin that answers when, and as, the test says; left alone it sends `bytes`. */
export async function startOrigin(bytes = 1_000): Promise<{
  url(path: string): string;
  asked: AskedOfOrigin[];
  /** Keeps the answers back: `next` is the request. */
  hold(): { next: Promise<AskedOfOrigin> };
}> {
  const asked: AskedOfOrigin[] = [];
  let taker: ((request: AskedOfOrigin) => void) | undefined;
  const server = createServer((request, answer) => {
    const one = { url: request.url!, headers: request.headers, answer };
    asked.push(one);
    const [take] = [taker];
    taker = undefined;
    if (take) return take(one);
    answer.writeHead(200, { 'Cache-Control': 'no-store' }).end(Buffer.alloc(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  const { port } = server.address() as { port: number };
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    asked,
    hold: () => ({
      next: new Promise((resolve) => {
        taker = resolve;
      }),
    }),
  };
}

/** Segments of 4 s, as a playlist has them; `range`: all in one file. */
export function newStream(
  base: string,
  count: number,
  range = false,
): { stream: ShakaStream; segments: SegmentReference[] } {
  const segments = Array.from(
    { length: count },
    (_, i): SegmentReference => ({
      getUris: () => [range ? `${base}film.mp4` : `${base}${i}.ts`],
      getStartByte: () => (range ? i * 100 : 0),
      getEndByte: () => (range ? i * 100 + 99 : null),
      getStartTime: () => i * 4,
      getEndTime: () => i * 4 + 4,
      isPartial: () => false,
    }),
  );
  const segmentIndex = {
    find: (time: number) => Math.floor(time / 4),
    get: (position: number) => segments[position] ?? null,
  };
  return { stream: { id: 7, type: 'video', segmentIndex }, segments };
}

/** Shaka's own networking with the plug-in in it, as `attachShaka` puts it there. */
export async function loading(retry: object = {}) {
  const { NetworkingEngine } = shaka.net;
  const { SEGMENT } = NetworkingEngine.RequestType;
  const { APPLICATION } = NetworkingEngine.PluginPriority;
  const none = { maxAttempts: 1, timeout: 0, connectionTimeout: 0, stallTimeout: 0 };
  const clock = new TestClock();
  const player = newPlayer();
  const origin = await startOrigin();
  const playback = new FakePlayback();
  const caught = vi.fn();
  const asks = new WeakMap<ShakaRequest, Asked>();
  NetworkingEngine.registerScheme(
    'http',
    createPlugin(shaka, clock, (r) => asks.get(r)),
    APPLICATION,
    false,
  );
  const { engine, samples } = newEngine(player);
  const { stream, segments } = newStream(origin.url('/'), 40);
  const load = (
    context: Partial<RequestContext> = {},
    more: Partial<ShakaRequest> = {},
    uri = origin.url('/5.ts?CMCD=x'),
  ) => {
    const request = Object.assign(
      NetworkingEngine.makeRequest([uri], { ...NetworkingEngine.defaultRetryParameters(), ...none, ...retry }),
      more,
    );
    const own = { stream, segment: segments[5]!, ...context };
    asks.set(request, { player, context: own, playback: () => playback, moved: () => {}, caught });
    return engine.request(SEGMENT, request);
  };
  const asked = () => vi.waitFor(() => expect(playback.request).toBeDefined());
  return { clock, player, origin, playback, caught, engine, samples, stream, segments, load, asked };
}

/** Of a segment, by where they came from. */
export const bytes = (origin: number, peer: number) => ({ origin, seed: 0, peer });
