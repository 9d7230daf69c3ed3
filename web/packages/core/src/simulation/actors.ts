import { type Alarm, type Background, createBackground } from '../background/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineDeps } from '../enginedeps.ts';
import { createEmitter, type Emitter } from '../events.ts';
import type { ByteRange, Clock, Engine, EngineEvents, PeerLink, SegmentResult } from '../ports.ts';
import { maxLength, virtualRanges } from '../segment/index.ts';
import { createStats } from '../stats/stats.ts';
import { createCredit } from '../transfer/credit.ts';
import { createLine } from '../transfer/line.ts';
import { createPeer, type PeerHost } from '../transfer/peer.ts';
import type { Peer } from '../transfer/ports.ts';
import { type Film, idOf, rules, type Signer } from './film.ts';
import { crypto, type Network } from './world.ts';

export const swarmId = '5'.repeat(32);

const nothing = () => {};

/** An alarm on simulated time. */
export const alarmOf =
  (clock: Clock) =>
  (f: () => void): Alarm => {
    let timer = 0;
    let at = Number.POSITIVE_INFINITY;
    return {
      set(ms) {
        if (clock.now() + ms >= at) return;
        at = clock.now() + ms;
        clock.clearTimer(timer);
        timer = clock.setTimer(() => {
          at = Number.POSITIVE_INFINITY;
          f();
        }, ms);
      },
      stop: () => clock.clearTimer(timer),
    };
  };

/** A seed: certifies what it fetches, once, and serves it. */
export class Seed {
  readonly peers: Peer[] = [];
  sent = 0;
  /** Certifies, but has nothing any more. */
  silent = false;
  /** Of the content, as certificates say. */
  version = '';
  private readonly fetched = new Map<string, Promise<Uint8Array>>();
  private readonly ready = new Map<string, Uint8Array>();
  private readonly names = new Map<string, string>();
  private readonly ranges = new Map<string, ByteRange>();
  private holder = false;

  constructor(
    readonly id: string,
    private readonly network: Network,
    private readonly film: Film,
    private readonly signer: Signer,
  ) {
    for (const s of film.segments) {
      this.names.set(idOf(s.name), s.name);
      for (const range of virtualRanges(film.bytes)) {
        const id = idOf(`${s.name}#${range.first}-${range.last}`);
        this.names.set(id, s.name);
        this.ranges.set(id, range);
      }
    }
  }

  /** From now on it is a viewer that holds everything, and says so. */
  hold(): void {
    this.holder = true;
    for (const [id, name] of this.names) this.ready.set(id, this.film.content(name));
  }

  /** It has a segment no longer, and would fetch it again. */
  forget(name: string): void {
    this.ready.delete(idOf(name));
    this.fetched.delete(idOf(name));
  }

  private pieces(id: string): number {
    return Math.ceil((this.ready.get(id)?.length ?? 0) / 16384);
  }

  private fetch(id: string): Promise<Uint8Array> {
    const held = this.ready.get(id);
    if (held) return Promise.resolve(held);
    const name = this.names.get(id)!;
    const known = this.fetched.get(id);
    if (known) return known;
    const fetching = this.film
      .fetcher(this.network, this.id, name)(new AbortController().signal, nothing, this.ranges.get(id))
      .then(({ data }) => {
        const bytes = new Uint8Array(data);
        this.ready.set(id, bytes);
        return bytes;
      });
    this.fetched.set(id, fetching);
    return fetching;
  }

  addLink(link: PeerLink): void {
    const host: PeerHost = {
      clock: this.network.world,
      self: () => this.id,
      swarm: swarmId,
      uploads: {
        piece: (s, n) => {
          if (this.silent) return undefined;
          const piece = this.ready.get(s)?.subarray(n * 16384, (n + 1) * 16384);
          return piece?.length ? piece : undefined;
        },
        pieces: (s) => {
          // A viewer that has the certificate from elsewhere asks again in a moment.
          if (this.silent) return 0;
          if (!this.ready.has(s)) this.fetch(s).catch(nothing);
          return this.pieces(s);
        },
        allowed: () => true,
        queued: () => 0,
        idle: () => true,
        drained: nothing,
      },
      greeting: {
        announcement: (segment) => ({ segment, state: 2, pieces: this.pieces(segment) }),
        held: () => (this.holder ? this.names.keys() : []),
        flags: () => (this.holder ? 0 : 1),
      },
      silence: { drifted: () => false },
      stats: { count: nothing, wasted: nothing },
      verification: {
        piece: nothing,
        certificate: nothing,
        none: nothing,
        asked: (p, ids) => {
          for (const segment of ids) {
            const { bytes } = this.film;
            const range = this.ranges.get(segment);
            if (bytes > maxLength && !range) {
              p.send({ type: 'certificate-none', segment, reason: 4, objectLength: bytes });
              continue;
            }
            this.fetch(segment).then(
              (data) => {
                const certificate = this.signer.certify(
                  this.names.get(segment)! + (range ? `#${range.first}-${range.last}` : ''),
                  data,
                  Math.floor(this.network.world.now()),
                  bytes || data.length,
                  this.version,
                );
                p.send({ type: 'certificate', segment, certificate });
              },
              () => p.send({ type: 'certificate-none', segment, reason: 3, objectLength: 0 }),
            );
          }
        },
      },
    };
    const peer = createPeer(link, host, {
      ready: nothing,
      sent: (bytes) => {
        this.sent += bytes;
      },
      closed: (p) => this.peers.splice(this.peers.indexOf(p), 1),
      changed: nothing,
    });
    this.peers.push(peer);
  }

  stop(): void {
    for (const p of [...this.peers]) p.drop('shutdown', 0);
  }
}

/** The engine of a viewer, with what a page would give it. */
export const viewerEngine = (id: string, clock: Clock, signer: Signer, deps: Partial<EngineDeps>) => {
  const line = createLine(clock);
  const events = createEmitter<EngineEvents>(nothing);
  // One home, one controller over all its links.
  let background: Background | undefined;
  const engine = createEngine({
    background() {
      background ??= createBackground({ clock, alarm: alarmOf(clock), soon: queueMicrotask });
      return background;
    },
    line,
    stats: createStats(),
    credit: createCredit(clock),
    clock,
    crypto,
    rules,
    self: () => id,
    swarm: swarmId,
    uploads: () => true,
    hurry: nothing,
    emit: events.emit,
    notice: nothing,
    ...deps,
  });
  engine.setKeys([signer.verifyKey]);
  return { engine, line, events };
};

/** A viewer: an engine and a player that keeps its buffer full. */
export class Viewer {
  readonly engine: Engine;
  readonly results: SegmentResult[] = [];
  readonly errors: unknown[] = [];
  readonly unlinked: { peer: string; reason: string; banned: boolean; at: number }[] = [];
  wrong = 0;
  stalls = 0;
  stallMs = 0;
  startupMs = -1;
  adaptive = false;
  /** Segments behind the asked one that it tells of. */
  tells = 2;
  /** What it plays has no end, as far as it knows. */
  live = false;
  /** How long until the player knows the n-th segment, ms. */
  dueMs = (_n: number) => 0;
  /** Of playback. */
  speed = 1;
  onProgress?: (loaded: number) => void;
  /** Gives up what is being loaded. */
  abort = nothing;
  readonly events: Emitter<EngineEvents>;
  private position = 0;
  private bufferedMs = 0;
  private updatedAt = 0;
  private next = 0;
  private joinedAt = 0;
  private readonly clock: Clock;

  constructor(
    readonly id: string,
    private readonly network: Network,
    private readonly film: Film,
    signer: Signer,
    deps: Partial<EngineDeps> = {},
    private readonly aheadMs = 30_000,
  ) {
    this.clock = deps.clock ?? network.world;
    const { engine, events } = viewerEngine(id, this.clock, signer, deps);
    this.engine = engine;
    this.events = events;
    this.events.on('unlink', (u) => this.unlinked.push({ ...u, at: network.world.now() }));
  }

  /** As the membership has it: viewers make certificates themselves, and are waited for. */
  get packaged(): boolean {
    return !!this.film.list;
  }

  /** Plays from the n-th segment on. */
  play(n = 0): void {
    this.next = n;
    this.position = this.bufferedMs = this.film.segments[n]!.startMs;
    this.joinedAt = this.updatedAt = this.clock.now();
    this.loadNext();
  }

  private update(): void {
    const now = this.clock.now();
    if (this.startupMs >= 0) {
      this.position += (now - this.updatedAt) * this.speed;
      const over = this.position - this.bufferedMs;
      if (over > 0 && this.next < this.film.segments.length) {
        this.stalls++;
        this.stallMs += over / this.speed;
      }
      this.position = Math.min(this.position, this.bufferedMs);
    }
    this.updatedAt = now;
  }

  private loadNext(): void {
    this.update();
    const segment = this.film.segments[this.next];
    if (!segment) return;
    const wait = Math.max((this.bufferedMs - this.position - this.aheadMs) / this.speed, this.dueMs(this.next));
    if (wait > 0) {
      // At least a millisecond: a rounding error would not move the clock.
      this.clock.setTimer(() => this.loadNext(), Math.max(wait, 1));
      return;
    }
    const { engine, film, network } = this;
    const load = engine.load(
      {
        ...segment,
        rendition: '480p',
        bitrate: Math.round((film.bytes * 8000) / film.durationMs),
        adaptive: this.adaptive,
        deadlineMs: () => {
          this.update();
          return (segment.startMs - this.position) / this.speed;
        },
        upcoming: film.segments.slice(this.next + 1, this.next + 1 + this.tells),
        live: this.live,
        origin: film.fetcher(network, this.id, segment.name),
        playlist: film.playlist,
        beside: (url, signal) => film.fetchBeside(network, url, signal),
      },
      (loaded) => this.onProgress?.(loaded),
    );
    this.abort = load.abort;
    load.result.then(
      (r) => {
        this.update();
        this.results.push(r);
        if (!Buffer.from(r.data).equals(film.content(segment.name))) this.wrong++;
        this.bufferedMs = segment.startMs + segment.durationMs;
        if (this.startupMs < 0) this.startupMs = this.clock.now() - this.joinedAt;
        this.next++;
        this.loadNext();
      },
      (error) => this.errors.push(error),
    );
  }

  /** Goes on from the n-th segment. */
  seek(n: number): void {
    this.update();
    this.abort();
    this.next = n;
    this.position = this.bufferedMs = this.film.segments[n]!.startMs;
    this.loadNext();
  }

  bytes(from = 0): Record<'origin' | 'seed' | 'peer', number> {
    const sum = { origin: 0, seed: 0, peer: 0 };
    for (const r of this.results.slice(from)) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += r.bytes[k];
    return sum;
  }
}

export type Other = Viewer | { readonly id: string; addLink(link: PeerLink): void };

/** Joins a viewer to others after the time that links take. */
export const join = (network: Network, viewer: Viewer, others: Other[], afterMs = 400): void => {
  viewer.engine.setLinking(
    true,
    others.some((other) => other instanceof Seed || viewer.packaged),
  );
  network.world.setTimer(() => {
    viewer.engine.setLinking(false, false);
    for (const other of others) {
      const role = other instanceof Seed ? ('seed' as const) : ('viewer' as const);
      const [mine, theirs] = network.link({ id: viewer.id, role: 'viewer' }, { id: other.id, role });
      viewer.engine.addLink(mine);
      if (other instanceof Viewer) other.engine.addLink(theirs);
      else other.addLink(theirs);
    }
  }, afterMs);
};
