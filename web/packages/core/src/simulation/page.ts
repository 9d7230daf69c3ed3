/** A page in virtual time: its scripts, a player, and the library in it or not, on a line of its own. */

import { createBackground } from '../background/index.ts';
import { createClient, type Leeway } from '../client.ts';
import { createEngine } from '../engine.ts';
import type { Environment } from '../environment.ts';
import { inspection } from '../link/inspect.ts';
import type { Playback } from '../playback.ts';
import type { OriginResult, PeerLink, SegmentRequest } from '../ports.ts';
import { decode, encode, flagOnDemand } from '../protocol/peer.ts';
import { SiteRules } from '../segment/index.ts';
import type { CreateEngine } from '../title/options.ts';
import { alarmOf, Seed, swarmId } from './actors.ts';
import { Connection, type Reachable, ServerConnection } from './connection.ts';
import type { Film, Signer } from './film.ts';
import { Hostile } from './hostile.ts';
import { type Door, Tracker } from './tracker.ts';
import { crypto, Network, World } from './world.ts';

/** A viewer's line. */
export interface Access {
  name: string;
  /** Bits per second. */
  rate: number;
  /** To all servers and peers, without queues. */
  rttMs: number;
  /** What the rate falls to, four seconds after the first picture and for 15 s. */
  low?: number;
  /** How long the first segment is in hand before it is on screen; 0 if left out. */
  paintMs?: number;
}

/** A part of Leeway that fails. */
export interface Failure {
  name: string;
  door?: Door;
  /** The peers there are; the seed alone if nothing is said. */
  peers?: 'none' | 'silent-seed' | 'slow';
  engine?: 'missing' | 'slow';
  /** No link opens. */
  shut?: boolean;
}

/** What a viewer had of it, ms since the navigation. */
export interface Watched {
  startupMs: number;
  stallMs: number;
  /** When ten seconds were in hand; infinite: never. */
  filledMs: number;
  /** What was in hand as each segment was there. */
  hand: { atMs: number; ms: number }[];
  /** Segments that are not the origin's, and errors of the library's own. */
  wrong: number;
  /** What peers were asked for, certificates among it, in messages. */
  asked: number;
  /** Bytes by where they came from. */
  bytes: Record<'origin' | 'seed' | 'peer', number>;
}

/** What was in hand at a moment. */
export const handAt = ({ hand }: Watched, ms: number): number => {
  const last = hand.findLast(({ atMs }) => atMs <= ms);
  return last ? Math.max(0, last.ms - (ms - last.atMs)) : 0;
};

const fallAfterMs = 4_000;
const fallForMs = 15_000;
const diesAfterMs = 5_000;
const watchMs = 25_000;
const upRate = 5_000_000;
const home = '1'.repeat(32);
const fastNode = { up: 12_500_000, down: 12_500_000 };
/** Bytes on the line of the scripts: the player's, the library's, the engine's. */
const scripts = { player: 130_000, library: 20_000, engine: 32_000 };
const engineSlowMs = 10_000;
const aheadMs = 60_000;
const enoughMs = 10_000;
const manifest = 'https://video.example.com/film/master.m3u8';

/** Numbers in [0, 1) that a seed decides. */
const random = (seed: number) => {
  let x = (seed * 2_654_435_761 + 12_345) >>> 0 || 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 2 ** 32;
  };
};

/** Has a viewer watch, with the library while something fails, or without it. */
export async function watch(
  film: Film,
  signer: Signer,
  access: Access,
  failure: Failure | undefined,
  seed: number,
): Promise<Watched> {
  const page = new Page(film, signer, access, failure, seed);
  await page.run();
  return page.watched;
}

class Page {
  readonly watched: Watched = {
    startupMs: -1,
    stallMs: 0,
    filledMs: Number.POSITIVE_INFINITY,
    hand: [],
    wrong: 0,
    asked: 0,
    bytes: { origin: 0, seed: 0, peer: 0 },
  };
  private readonly world = new World();
  private readonly network: Network;
  private readonly server: ServerConnection;
  private readonly begunAt = this.world.now();
  /** What the server and the player draw is the same with the library and without: each segment has its own. */
  private readonly draw = (n: number) => random(this.seed * 1_000 + n)();
  private tracker?: Tracker;
  private leeway?: Leeway;
  private position = 0;
  private bufferedMs = 0;
  private updatedAt = 0;

  constructor(
    private readonly film: Film,
    private readonly signer: Signer,
    private readonly access: Access,
    private readonly failure: Failure | undefined,
    private readonly seed: number,
  ) {
    const { rate, rttMs } = access;
    this.network = new Network(this.world, rttMs / 2);
    this.network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
    this.network.addNode('tracker', fastNode);
    this.network.addNode(home, { up: upRate / 8, down: rate / 8 });
    // The path, and a queue as the lab's lines have it.
    const queue = Math.max(32_768, ((rate / 8) * Math.max(100, rttMs)) / 1_000);
    this.server = new ServerConnection(this.network, home, (rate / 8 / 1_000) * rttMs + queue);
  }

  async run(): Promise<void> {
    const { world, watched } = this;
    this.play().catch(() => {});
    while (watched.startupMs < 0) await world.runUntil(world.now() + 50);
    const pictureAt = this.begunAt + watched.startupMs;
    const at = (ms: number, f: () => void) => world.setTimer(f, Math.max(0, pictureAt + ms - world.now()));
    const { rate, low } = this.access;
    if (this.failure?.door === 'dies') at(diesAfterMs, () => this.tracker!.die());
    if (low) {
      at(fallAfterMs, () => this.network.falls(home, low / 8));
      at(fallAfterMs + fallForMs, () => this.network.falls(home, rate / 8));
    }
    await world.runUntil(pictureAt + (low ? fallAfterMs + fallForMs : 0) + watchMs);
    this.update();
    for (const { engine } of this.leeway?.stats().titles ?? []) watched.wrong += engine?.counters.errors ?? 0;
    this.leeway?.stop();
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.world.setTimer(resolve, ms));
  }

  private async play(): Promise<void> {
    const { server, world, film, watched } = this;
    // The library is asked for first and is there first, as it is smaller.
    if (this.failure)
      server.fetch(scripts.library, 5).then(
        () => this.start(this.failure!),
        () => {},
      );
    await server.fetch(scripts.player, 5);
    await this.wait(30 + 20 * this.draw(1));
    const openedAt = world.now();
    const playback = this.leeway?.open(manifest);
    await server.fetch(1_500, 5 + 10 * this.draw(2));
    await server.fetch(6_000, 5 + 10 * this.draw(3));
    for (const [n, segment] of film.segments.entries()) {
      this.update();
      const over = this.bufferedMs - this.position - aheadMs;
      if (over > 0) await this.wait(over + 1);
      const data = await this.load(n, playback);
      await this.wait(5 + 20 * this.draw(100 + n));
      if (!Buffer.from(data).equals(film.content(segment.name))) watched.wrong++;
      this.update();
      this.bufferedMs = segment.startMs + segment.durationMs;
      if (n === 0) {
        void this.wait(this.access.paintMs ?? 0).then(() => {
          this.updatedAt = world.now();
          watched.startupMs = world.now() - this.begunAt;
          playback?.observe({ startup_ms: world.now() - openedAt });
        });
      }
      const inHand = { atMs: world.now() - this.begunAt, ms: this.bufferedMs - this.position };
      watched.hand.push(inHand);
      if (inHand.ms >= enoughMs) watched.filledMs = Math.min(watched.filledMs, inHand.atMs);
    }
  }

  private update(): void {
    const now = this.world.now();
    if (this.watched.startupMs >= 0) {
      this.position += now - this.updatedAt;
      this.watched.stallMs += Math.max(0, this.position - this.bufferedMs);
      this.position = Math.min(this.position, this.bufferedMs);
    }
    this.updatedAt = now;
  }

  private async load(n: number, playback?: Playback): Promise<ArrayBuffer> {
    const { film, server, watched, world } = this;
    const segment = film.segments[n]!;
    const origin: SegmentRequest['origin'] = async (signal, onProgress, part) => {
      const data = film.content(segment.name).slice(part?.first, part && part.last + 1);
      let firstAt = 0;
      await server.fetch(data.length, 12 + 10 * this.draw(1_000 + n), signal, (loaded) => {
        firstAt ||= world.now();
        onProgress(loaded, data.length);
      });
      const answer: OriginResult = { data: data.buffer as ArrayBuffer, status: 200, url: segment.url };
      return { ...answer, transferMs: world.now() - firstAt };
    };
    if (!playback?.active) {
      const { data, transferMs } = await origin(new AbortController().signal, () => {});
      playback?.bypass(data.byteLength, transferMs);
      watched.bytes.origin += data.byteLength;
      return data;
    }
    const { data, bytes } = await playback.load({
      ...segment,
      rendition: 'main-2',
      bitrate: Math.round((film.bytes * 8_000) / film.durationMs),
      adaptive: false,
      deadlineMs: () => {
        this.update();
        return segment.startMs - this.position;
      },
      upcoming: film.segments.slice(n + 1, n + 17),
      track: 'main',
      live: false,
      origin,
    }).result;
    for (const k of ['origin', 'seed', 'peer'] as const) watched.bytes[k] += bytes[k];
    return data;
  }

  /** The library's script runs. */
  private start({ door = 'open', peers, engine, shut }: Failure): void {
    const { network, world, server, signer } = this;
    const draw = random(this.seed);
    const others = this.others(peers);
    const tracker = new Tracker(network, home, door, others, signer);
    this.tracker = tracker;
    const environment: Environment = {
      clock: world,
      crypto,
      random: draw,
      randomBytes: (length) => Uint8Array.from({ length }, () => 256 * draw()),
      openSocket: tracker.openSocket,
      createConnection: () => new Connection(network, home, others, !shut) as unknown as RTCPeerConnection,
      missing: () => null,
      onPublicHost: () => true,
      localAccess: async () => true,
      line: () => ({ metered: false, unknown: false, coarse: false }),
      battery: () => false,
      hidden: () => false,
      onVisibility: () => () => {},
      onSleep: () => () => {},
      onForbidden: () => () => {},
    };
    const makeEngine: CreateEngine = (context) => {
      const background = createBackground({ clock: world, alarm: alarmOf(world), soon: queueMicrotask });
      return Object.assign(
        createEngine({ ...context, clock: world, crypto, background: () => background }),
        inspection,
      );
    };
    this.leeway = createClient(
      { tracker: 'wss://tracker.example.com' },
      {
        environment,
        version: 'test',
        loadEngine: async () => {
          if (engine === 'missing') {
            await server.fetch(200, 5);
            throw new Error('404');
          }
          await server.fetch(scripts.engine, engine === 'slow' ? engineSlowMs : 5);
          await this.wait(10 + 30 * draw());
          return makeEngine;
        },
        clear: async () => {},
        rules: ({ site }) => new SiteRules(site),
      },
    );
    this.leeway.on('notice', ({ code }) => {
      if (code === 'internal') this.watched.wrong++;
    });
    this.leeway.start();
  }

  private others(kind: Failure['peers']): Reachable[] {
    const { network, film, signer } = this;
    if (kind === 'none') return [];
    const slow = kind === 'slow';
    return (slow ? ['a', 'b', 'c', 'f'] : ['f']).map((digit): Reachable => {
      const id = digit.repeat(32);
      const role = digit === 'f' ? 'seed' : 'viewer';
      network.addNode(id, fastNode);
      const peer = slow ? new Hostile(id, network, film, signer, 'burst') : new Seed(id, network, film, signer);
      const addLink = (link: PeerLink) => {
        if (kind === 'silent-seed') sayHello(link, id);
        else peer.addLink(link);
        const hear = link.onControl;
        link.onControl = (message) => {
          if (/request$/.test(decode('control', message)?.type ?? '')) this.watched.asked++;
          hear?.(message);
        };
      };
      return { id, role, addLink };
    });
  }
}

/** A seed that says hello and nothing else. */
function sayHello(link: PeerLink, peer: string): void {
  const hello = { minVersion: 1, maxVersion: 1, flags: flagOnDemand, maxRequests: 64, peer, swarm: swarmId };
  link.sendControl(encode({ type: 'hello', ...hello }));
}
