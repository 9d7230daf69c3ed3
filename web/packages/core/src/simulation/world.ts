/**
 * A small world for tests: virtual time, nodes with an uplink and a downlink, in-memory links between them. Everything
 * happens in an order that only the inputs decide.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';
import type { Clock, Crypto, LinkCloseReason, PeerLink, PeerRole } from '../ports.ts';
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

/** Real SHA-256 and ECDSA, done at once, so that virtual time does not race with them. */
export const crypto: Crypto = {
  digest: async (data) => new Uint8Array(createHash('sha256').update(data).digest()),
  verify: async (key, signature, data) => {
    const b64 = (b: Uint8Array) => Buffer.from(b).toString('base64url');
    const jwk = { kty: 'EC', crv: 'P-256', x: b64(key.subarray(1, 33)), y: b64(key.subarray(33, 65)) };
    const k = createPublicKey({ key: jwk, format: 'jwk' });
    return verify('sha256', data, { key: k, dsaEncoding: 'ieee-p1363' }, signature);
  },
};

/** Bytes per second each way. */
export interface Line {
  up: number;
  down: number;
}

interface Node extends Line {
  upFree: number;
  downFree: number;
}

export class Network {
  private readonly nodes = new Map<string, Node>();
  constructor(
    readonly world: World,
    readonly delayMs = 10,
  ) {}

  addNode(id: string, line: Line): void {
    this.nodes.set(id, { ...line, upFree: 0, downFree: 0 });
  }

  /** Sends so many bytes; `sent` when they have left, `arrived` when they are there. */
  send(from: string, to: string, bytes: number, sent: () => void, arrived: () => void): void {
    const a = this.nodes.get(from)!;
    const b = this.nodes.get(to)!;
    const now = this.world.now();
    a.upFree = Math.max(now, a.upFree) + (bytes * 1000) / a.up;
    this.world.setTimer(() => {
      sent();
      const there = this.world.now() + this.delayMs;
      b.downFree = Math.max(there, b.downFree) + (bytes * 1000) / b.down;
      this.world.setTimer(arrived, b.downFree - this.world.now());
    }, a.upFree - now);
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

export class SimLink implements PeerLink {
  readonly maxMessage = 16_384;
  other!: SimLink;
  open = true;
  closedWith?: LinkCloseReason;
  onControl?: (message: Uint8Array) => void;
  onData?: (message: Uint8Array) => void;
  onDrain?: () => void;
  onClose?: (reason: LinkCloseReason) => void;
  private buffered = 0;
  private full = false;

  constructor(
    private readonly network: Network,
    readonly self: string,
    readonly peer: string,
    readonly role: PeerRole,
  ) {}

  path(): 'direct' {
    return 'direct';
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
        if (this.other.open) receive(message);
      },
    );
  }

  sendControl(message: Uint8Array): void {
    if (this.open) this.carry(message, (m) => this.other.onControl?.(m));
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

  close(reason: LinkCloseReason, bye?: number): void {
    if (!this.open) return;
    if (bye !== undefined) this.sendControl(encode({ type: 'bye', reason: bye }));
    this.open = false;
    this.closedWith = reason;
    this.network.world.setTimer(() => {
      if (!this.other.open) return;
      this.other.open = false;
      this.other.onClose?.('closed');
    }, 50);
  }
}
