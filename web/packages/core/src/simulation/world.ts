/**
 * A small world for tests: virtual time, nodes with an uplink and a downlink, in-memory links between them. Everything
 * happens in an order that only the inputs decide.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';
import type { Clock, Crypto, LinkCloseReason, LinkPath, PeerLink, PeerRole } from '../ports.ts';
import { encode } from '../protocol/peer.ts';

interface Timer {
  at: number;
  id: number;
  f: () => void;
}

export class World implements Clock {
  private time = 1_000;
  private timers: Timer[] = [];
  private lastId = 0;

  now(): number {
    return this.time;
  }

  /** Timers that are set. */
  get pending(): number {
    return this.timers.length;
  }

  setTimer(f: () => void, ms: number): number {
    const timer = { at: this.time + Math.max(ms, 0), id: ++this.lastId, f };
    let i = this.timers.length;
    while (i > 0 && this.timers[i - 1]!.at > timer.at) i--;
    this.timers.splice(i, 0, timer);
    return timer.id;
  }

  clearTimer(id: number): void {
    this.timers = this.timers.filter((t) => t.id !== id);
  }

  /** Runs until the virtual time has come; promises settle between any two timers. */
  async runUntil(ms: number): Promise<void> {
    for (;;) {
      await new Promise((done) => setImmediate(done));
      const next = this.timers[0];
      if (!next || next.at > ms) break;
      this.timers.shift();
      this.time = Math.max(this.time, next.at);
      next.f();
    }
    this.time = ms;
  }
}

/** The clock of a page whose timers go off only so often: hidden for a while, and for long. */
export const throttled = (world: World, everyMs: number): Clock => ({
  now: () => world.now(),
  setTimer: (f, ms) => world.setTimer(f, Math.ceil((world.now() + ms) / everyMs) * everyMs - world.now()),
  clearTimer: (id) => world.clearTimer(id),
});

/** The clock of a page that does not run until a moment; what came due meanwhile does then, ahead of messages. */
export const sleeping = (world: World, wakesAt: () => number): Clock => {
  const ids = new Map<number, number>();
  return {
    now: () => world.now(),
    setTimer(f, ms) {
      const fire = () => {
        if (wakesAt() > world.now()) ids.set(id, world.setTimer(fire, wakesAt() - world.now()));
        else f();
      };
      const id = world.setTimer(fire, ms);
      return id;
    },
    clearTimer: (id) => world.clearTimer(ids.get(id) ?? id),
  };
};

/** What was verified last, by the digest of key, signature and data: in a play each page verifies the same certificates. */
const verified = new Map<string, boolean>();
const mostVerified = 1_000;

/** Real SHA-256 and ECDSA, done at once, so that virtual time does not race with them. */
export const crypto: Crypto = {
  digest: async (data) => new Uint8Array(createHash('sha256').update(data).digest()),
  verify: async (key, signature, data) => {
    const what = createHash('sha256').update(key).update(signature).update(data).digest('base64');
    const known = verified.get(what);
    if (known !== undefined) return known;
    const b64 = (b: Uint8Array) => Buffer.from(b).toString('base64url');
    const jwk = { kty: 'EC', crv: 'P-256', x: b64(key.subarray(1, 33)), y: b64(key.subarray(33, 65)) };
    const k = createPublicKey({ key: jwk, format: 'jwk' });
    const holds = verify('sha256', data, { key: k, dsaEncoding: 'ieee-p1363' }, signature);
    if (verified.size === mostVerified) verified.clear();
    verified.set(what, holds);
    return holds;
  },
};

/** Bytes per second each way. */
export interface Line {
  up: number;
  down: number;
}

interface Item {
  bytes: number;
  sent: () => void;
  arrived: () => void;
  ahead: boolean;
}

interface Node extends Line {
  /** What waits to leave, by where it goes: each in turn, as separate connections share a line. */
  queues: Map<string, Item[]>;
  busy: boolean;
  downFree: number;
  /** Nothing is taken in before. */
  wakesAt: number;
  /** Counts the networks that it has been in. */
  net: number;
}

export class Network {
  private readonly nodes = new Map<string, Node>();
  /** The viewers that meet each other by a relay alone. */
  readonly apart = new Set<string>();
  constructor(
    readonly world: World,
    readonly delayMs = 10,
  ) {}

  addNode(id: string, line: Line): void {
    this.nodes.set(id, { ...line, queues: new Map(), busy: false, downFree: 0, wakesAt: 0, net: 0 });
  }

  /** A laptop is closed for so long. */
  sleep(id: string, ms: number): void {
    this.nodes.get(id)!.wakesAt = this.world.now() + ms;
  }

  /** A viewer is in another network: its links carry nothing any more, and no peer is told. */
  moves(id: string): void {
    this.nodes.get(id)!.net++;
  }

  /** A viewer's line carries so much from now on, bytes per second; what is on its way already comes as before. */
  falls(id: string, down: number): void {
    this.nodes.get(id)!.down = down;
  }

  lineOf(id: string): Line {
    return this.nodes.get(id)!;
  }

  net(id: string): number {
    return this.nodes.get(id)!.net;
  }

  wakesAt(id: string): number {
    return this.nodes.get(id)!.wakesAt;
  }

  /** Sends so many bytes; `sent` when they have left, `arrived` when they are there. `ahead` of data for the same node. */
  send(from: string, to: string, bytes: number, sent: () => void, arrived: () => void, ahead = false): void {
    const a = this.nodes.get(from)!;
    const queue = a.queues.get(to) ?? [];
    a.queues.set(to, queue);
    let i = queue.length;
    if (ahead) while (i > 0 && !queue[i - 1]!.ahead) i--;
    queue.splice(i, 0, { bytes, sent, arrived, ahead });
    if (!a.busy) this.transmit(a);
  }

  private transmit(a: Node): void {
    const [to] = [...a.queues].find(([, queue]) => queue.length) ?? [];
    a.busy = to !== undefined;
    if (to === undefined) return;
    const queue = a.queues.get(to)!;
    const { bytes, sent, arrived } = queue.shift()!;
    // To the end: it has had its turn.
    a.queues.delete(to);
    a.queues.set(to, queue);
    this.world.setTimer(
      () => {
        sent();
        const b = this.nodes.get(to)!;
        const there = this.world.now() + this.delayMs;
        b.downFree = Math.max(there, b.downFree) + (bytes * 1000) / b.down;
        this.deliver(b, b.downFree, arrived);
        this.transmit(a);
      },
      (bytes * 1000) / a.up,
    );
  }

  /** At a moment, or when the node wakes. */
  private deliver(to: Node, at: number, arrived: () => void): void {
    this.world.setTimer(() => {
      if (to.wakesAt > this.world.now()) this.deliver(to, to.wakesAt + 0.001, arrived);
      else arrived();
    }, at - this.world.now());
  }

  /** Bytes that wait for a node's uplink. */
  waiting(id: string): number {
    return [...this.nodes.get(id)!.queues.values()].flat().reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Two ends of a link. */
  link(a: { id: string; role: PeerRole }, b: { id: string; role: PeerRole }): [SimLink, SimLink] {
    const x = new SimLink(this, a.id, b.id, b.role);
    const y = new SimLink(this, b.id, a.id, a.role);
    x.other = y;
    y.other = x;
    return [x, y];
  }
}

const bufferBound = 262_144;
const nothing = () => {};

export class SimLink implements PeerLink {
  readonly maxMessage = 16_384;
  other!: SimLink;
  open = true;
  closedWith?: LinkCloseReason;
  onControl?: (message: Uint8Array) => void;
  onData?: (message: Uint8Array) => void;
  onAck?: (message: Uint8Array) => void;
  onDrain?: () => void;
  onNamed?: (again: () => void) => void;
  onClose?: (reason: LinkCloseReason) => void;
  private readonly nets: string;
  private buffered = 0;
  private full = false;

  constructor(
    private readonly network: Network,
    readonly self: string,
    readonly peer: string,
    readonly role: PeerRole,
  ) {
    this.nets = this.where();
  }

  private where(): string {
    return [this.self, this.peer].map((id) => this.network.net(id)).join();
  }

  /** It carries something. */
  get works(): boolean {
    return this.open && this.nets === this.where();
  }

  path(): LinkPath {
    const { apart } = this.network;
    return apart.has(this.self) && apart.has(this.peer) ? 'relay' : 'direct';
  }

  private carry(message: Uint8Array, receive: (m: Uint8Array) => void): void {
    this.buffered += message.length;
    this.network.send(
      this.self,
      this.peer,
      message.length + 60,
      () => {
        this.buffered -= message.length;
        if (this.full && this.buffered < bufferBound / 2) {
          this.full = false;
          if (this.open) this.onDrain?.();
        }
      },
      () => {
        if (this.other.works) receive(message);
      },
    );
  }

  sendControl(message: Uint8Array): void {
    if (!this.open) return;
    const arrived = () => {
      if (this.other.works) this.other.onControl?.(message);
    };
    this.network.send(this.self, this.peer, message.length + 60, () => {}, arrived, true);
  }

  sendData(message: Uint8Array): boolean {
    if (!this.open) return true;
    if (this.buffered >= bufferBound) {
      this.full = true;
      return false;
    }
    this.carry(message, (m) => this.other.onData?.(m));
    return true;
  }

  controlRoom(): boolean {
    return true;
  }

  waiting(): number {
    return this.buffered;
  }

  sendBackground(message: Uint8Array): boolean {
    if (this.open) this.carry(message.slice(), (m) => this.other.onData?.(m)); // a copy, as a channel makes one
    return this.open;
  }

  sendAck(message: Uint8Array): void {
    if (this.open)
      this.network.send(this.self, this.peer, message.length + 60, nothing, () => {
        if (this.other.works) this.other.onAck?.(message);
      });
  }

  close(reason: LinkCloseReason, bye?: number): void {
    if (!this.open) return;
    if (bye !== undefined) this.sendControl(encode({ type: 'bye', reason: bye }));
    this.open = false;
    this.closedWith = reason;
    this.network.world.setTimer(() => {
      if (!this.other.works) return;
      this.other.open = false;
      this.other.onClose?.('closed');
    }, 50);
  }
}
