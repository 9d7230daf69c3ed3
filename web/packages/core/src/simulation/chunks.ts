/** A low-latency stream of DASH, whose segments are read while they are made, and viewers of it (spec/parts.md, "Chunks"). */

import { joinBytes } from '../certificate/index.ts';
import type { EngineDeps } from '../enginedeps.ts';
import type { Loading } from '../playback.ts';
import type { Growing, OriginFetcher, OriginResult } from '../ports.ts';
import { paced } from '../transfer/paced.ts';
import { Broadcast, type BroadcastPart } from './broadcast.ts';
import { EdgeViewer } from './edgeviewer.ts';
import { idOf, type Signer } from './film.ts';
import type { Network } from './world.ts';

const nothing = () => {};
/** The origin answers after so long, ms. */
const answerMs = 20;
const manifest = 'https://video.example.com/live/manifest.mpd';
/** A player is so far behind the edge, ms, and two chunks more. */
const behindMs = 1_500;

export class ChunkBroadcast extends Broadcast {
  override readonly stream: string;
  /** Requests for segments, by viewer. */
  readonly asked = new Map<string, number>();
  /** Below 1: each chunk of a segment is shorter than the one before. */
  bend = 1;
  /** The origin sends nothing more, */
  dead = false;
  /** or answers with an error. */
  broken = false;
  /** Its answers end after so many bytes. */
  most = Number.POSITIVE_INFINITY;
  /** How late the packager is with the n-th chunk, ms. */
  lateMs = (_n: number) => 0;

  override readonly partMs: number;
  override readonly perSegment: number;
  private readonly segments = new Map<number, Uint8Array>();

  constructor(network: Network, chunks = 4, bytes = 240_000, segmentMs = 2_000) {
    super(network, 'mid', bytes / chunks);
    this.perSegment = chunks;
    this.partMs = segmentMs / chunks;
    this.stream = idOf('/live/manifest.mpd.mid');
  }

  /** On the clock, where the timeline begins. */
  get zeroMs(): number {
    return this.beganMs - this.epoch * this.segmentMs;
  }

  get segmentMs(): number {
    return this.perSegment * this.partMs;
  }

  override dueMs(n: number): number {
    return super.dueMs(n) + this.lateMs(n);
  }

  /** What a viewer fetches beside a segment: the certificate of a chunk, or of all of it. */
  fetchSigned(node: string, sequence: number, url: string, signal: AbortSignal): Promise<OriginResult> {
    const [, first, last] = /(?:\.(\d+)-(\d+))?\.leeway$/.exec(url)!;
    const key = this.key(sequence);
    const whole = this.segment(sequence);
    const index = last
      ? Array.from({ length: this.perSegment }, (_, i) => this.begins(i + 1)).indexOf(+last + 1)
      : this.perSegment - 1;
    const name = last ? `${key}#${first}-${last}` : key;
    const data = last ? whole.slice(+first!, +last + 1) : whole;
    const n = this.perSegment * sequence + index;
    const known = index >= 0 && (!last || this.begins(index) === +first!);
    return this.beside(node, n, signal, url, () =>
      known ? { name, data, object: last ? +last + 1 : data.length } : undefined,
    );
  }

  key(sequence: number): string {
    return `/live/${this.rendition}/${sequence}.m4s`;
  }

  override part(n: number): BroadcastPart {
    const part = super.part(n);
    const { sequence, index } = part;
    const key = this.key(sequence);
    const name = `${key}#${this.begins(index)}-${this.begins(index + 1) - 1}`;
    return { ...part, name, url: `https://video.example.com${key}` };
  }

  /** Where a chunk begins in its segment. */
  begins(index: number): number {
    return Math.floor(this.perSegment * this.partBytes * (index / this.perSegment) ** this.bend);
  }

  /** A chunk: a moof box of 16 bytes, and its mdat. */
  override content(name: string): Uint8Array {
    const [, first, last] = /#(\d+)-(\d+)$/.exec(name)!;
    const data = super.content(name, +last! - +first! + 1);
    const view = new DataView(data.buffer);
    view.setUint32(0, 16);
    view.setUint32(4, 0x6d6f6f66);
    view.setUint32(16, data.length - 16);
    view.setUint32(20, 0x6d646174);
    return data;
  }

  segment(sequence: number): Uint8Array {
    const known = this.segments.get(sequence);
    if (known) return known;
    const names = Array.from({ length: this.perSegment }, (_, i) => this.part(this.perSegment * sequence + i).name);
    const whole = joinBytes(...names.map((name) => this.content(name)));
    this.segments.set(sequence, whole);
    return whole;
  }

  override endsWith({ sequence, index }: { sequence: number; index: number }) {
    if (index < this.perSegment - 1) return undefined;
    return { name: this.key(sequence), data: this.segment(sequence) };
  }

  /** The origin's answer, which ends when the segment is complete. */
  reader(node: string, sequence: number, take: (bytes: Uint8Array) => void): OriginFetcher {
    return (signal, onProgress) =>
      new Promise((resolve, reject) => {
        const { world } = this.network;
        this.asked.set(node, (this.asked.get(node) ?? 0) + 1);
        signal.addEventListener('abort', () => reject(new Error('AbortError')));
        const all = this.segment(sequence);
        let loaded = 0;
        const send = (index: number) => {
          if (signal.aborted || this.dead) return;
          const due = this.dueMs(this.perSegment * sequence + index);
          if (due > 0) return world.setTimer(() => send(index), due);
          const bytes = all.slice(this.begins(index), this.begins(index + 1));
          const arrived = () => {
            if (signal.aborted) return;
            loaded += bytes.length;
            take(bytes);
            onProgress(loaded, all.length);
            if (loaded < Math.min(all.length, this.most)) return;
            const { unshared } = this;
            resolve({ data: all.slice(0, this.most).buffer, status: 200, url: this.key(sequence), unshared });
          };
          const next = () => (index < this.perSegment - 1 ? send(index + 1) : undefined);
          this.network.send('origin', node, bytes.length, next, arrived);
          return undefined;
        };
        world.setTimer(() => (this.broken ? reject(new Error('503')) : send(0)), answerMs);
      });
  }
}

export class ChunkViewer extends EdgeViewer {
  /** How late chunks came, ms behind their publication. */
  readonly late: number[] = [];
  playing: ChunkBroadcast;
  /** It asks for nothing. */
  paused = false;
  /** Segments behind the edge. */
  behind = 0;
  /** How long a segment plays, as the player says, ms: Shaka takes its start from its end, both in seconds. */
  lastsMs = (sequence: number) => {
    const { epoch, segmentMs } = this.playing;
    const start = ((epoch + sequence) * segmentMs) / 1000;
    return (start + segmentMs / 1000 - start) * 1000;
  };
  /** The origin's bytes reach the player when all have come. */
  mute = false;
  private begun = false;

  constructor(id: string, network: Network, broadcast: ChunkBroadcast, signer: Signer, deps: Partial<EngineDeps> = {}) {
    super(id, network, signer, deps);
    this.playing = broadcast;
  }

  play(): void {
    this.next(Math.floor((this.playing.latest() * this.playing.partMs) / this.playing.segmentMs) - this.behind);
  }

  /** From the edge on. */
  resume(): void {
    this.paused = false;
    this.begun = false;
    this.bufferedMs = 0;
    this.play();
  }

  protected plays(): boolean {
    return this.begun;
  }

  /** Asks for a segment as soon as its first chunk is there. */
  private next(sequence: number): void {
    if (this.paused) return;
    const due = this.playing.dueMs(this.playing.perSegment * (sequence + this.behind));
    if (due > 0) this.network.world.setTimer(() => this.next(sequence), due);
    else if (!this.stopped) this.load(sequence);
  }

  /** What the player has of a segment grows: it plays whole chunks. */
  private has(sequence: number, bytes: number): void {
    const { playing } = this;
    let n = 0;
    while (playing.begins(n + 1) <= bytes) n++;
    const ends = sequence * playing.segmentMs + n * playing.partMs;
    this.update();
    for (; this.bufferedMs < ends; this.bufferedMs += playing.partMs) {
      if (!this.begun) this.bufferedMs = Math.max(this.bufferedMs, sequence * playing.segmentMs);
      this.late.push(-playing.dueMs(Math.round(this.bufferedMs / playing.partMs)));
    }
    if (this.begun || this.results.length < 2) return;
    this.begun = true;
    this.position = ends - behindMs - 2 * playing.partMs;
  }

  /** Asks for a segment, as another player of the page does, too. */
  ask(sequence: number, has: (bytes: number) => void = nothing): Loading {
    const { playing } = this;
    const whole = playing.segment(sequence);
    let given = 0;
    const take = (bytes: Uint8Array, at: number) => {
      if (at > given) this.wrong++; // a gap
      if (!Buffer.from(bytes).equals(whole.subarray(at, at + bytes.length))) this.wrong++;
      given = Math.max(given, at + bytes.length);
      has(given);
    };
    let sent = 0;
    const growing: Growing = { give: take };
    const heard = (bytes: Uint8Array) => {
      if (this.mute) return;
      take(bytes, sent);
      sent += bytes.length;
      growing.heard?.(bytes, playing.unshared);
    };
    const startMs = sequence * playing.segmentMs;
    const request = paced(
      {
        url: `https://video.example.com${playing.key(sequence)}`,
        startMs: startMs + playing.epoch * playing.segmentMs,
        zeroMs: playing.zeroMs,
        durationMs: this.lastsMs(sequence),
        rendition: playing.rendition,
        bitrate: Math.round((playing.partBytes * 8_000) / playing.partMs),
        adaptive: this.adaptive,
        deadlineMs: () => this.untilMs(startMs),
        upcoming: [],
        track: 'main',
        live: true,
        playlist: manifest,
        representation: playing.rendition,
        growing,
        beside: (url, signal) => playing.fetchSigned(this.id, sequence, url, signal),
        origin: playing.reader(this.id, sequence, heard),
      },
      this.network.world,
      this.line,
    );
    return this.engine.load(request, nothing);
  }

  private load(sequence: number): void {
    const whole = this.playing.segment(sequence);
    const load = this.ask(sequence, (bytes) => this.has(sequence, bytes));
    this.abort = load.abort;
    load.result.then(
      (r) => {
        this.results.push(r);
        if (!Buffer.from(r.data).equals(whole)) this.wrong++;
        this.has(sequence, whole.length);
        this.next(sequence + 1);
      },
      (error) => this.errors.push(error),
    );
  }
}
