import type { PeerLink } from '../ports.ts';
import { decode, encode, type Message } from '../protocol/peer.ts';
import { swarmId } from './actors.ts';
import { type Film, idOf, type Signer } from './film.ts';
import type { Network } from './world.ts';

/** What a hostile viewer does. */
export type Malice =
  | 'flip' // one bit of every piece is wrong
  | 'flip-then-stall' // the first piece is wrong, then nothing more comes
  | 'not-held' // announces everything, rejects every request as not held
  | 'withdrawn' // the same, as if it had been given up since
  | 'out-of-range' // the same, as if there were no such piece
  | 'busy' // announces everything, is always busy
  | 'fickle' // takes back what is asked for, rejects, and announces it again
  | 'silent' // announces everything, answers nothing but pings
  | 'silent-mid-piece' // sends half of a piece, then nothing
  | 'deaf' // announces again and again, answers neither requests nor pings
  | 'drip' // 5.6 kB/s of what it was asked for
  | 'burst' // 1 kB/s of it, in messages of half a piece, each once the one before is paid for
  | 'trickle' // ten bytes of the first piece every 500 ms
  | 'late' // nothing, but for a few bytes of what is canceled
  | 'no-hello' // announces, and never says hello
  | 'garbage' // random bytes on every channel
  | 'forger' // certificates without a valid signature
  | 'replayer' // certificates that are signed, of other segments
  | 'flood'; // unsolicited data

const rejects: Partial<Record<Malice, number>> = { 'not-held': 0, busy: 1, withdrawn: 3, fickle: 3, 'out-of-range': 5 };

/** Announces the whole film as complete, whatever it holds, and misbehaves. */
export class Hostile {
  requests = 0;
  /** The viewers that asked it for pieces: since when it owes an answer, and what it owed longest before. Canceled is not owed. */
  readonly asked = new Map<string, { since: number; longest: number }>();
  private readonly names: Map<string, string>;
  private readonly pieces: number;
  constructor(
    readonly id: string,
    private readonly network: Network,
    private readonly film: Film,
    private readonly signer: Signer,
    private readonly malice: Malice,
  ) {
    this.names = new Map(film.segments.map((s) => [idOf(s.name), s.name]));
    this.pieces = Math.ceil(film.bytes / 16384);
  }

  addLink(link: PeerLink): void {
    const { malice, network } = this;
    const say = (m: Message) => link.sendControl(encode(m));
    const waiting: Uint8Array[] = [];
    const pump = () => {
      while (waiting.length && link.sendData(waiting[0]!)) waiting.shift();
    };
    link.onDrain = pump;
    const data = (request: number, offset: number, payload: Uint8Array) => {
      waiting.push(encode({ type: 'data', request, offset, sentAt: 0, payload }));
      pump();
    };
    const hello = { minVersion: 1, maxVersion: 1, flags: 0, maxRequests: 64, peer: this.id, swarm: swarmId };
    if (malice !== 'no-hello') say({ type: 'hello', ...hello });
    this.announce(say);
    if (malice === 'garbage') this.garbage(link);
    if (malice === 'deaf' || malice === 'no-hello')
      for (let n = 1; n < 300; n++) network.world.setTimer(() => this.announce(say), n * 200);
    if (malice === 'flood')
      for (let n = 0; n < 100; n++)
        network.world.setTimer(() => data(9_000_000 + n, 0, new Uint8Array(16_000)), n * 20);
    const owed = new Set<number>();
    const drip: { id: number; offset: number; part: Uint8Array }[] = [];
    if (malice === 'drip')
      for (let n = 0; n < 1_200; n++)
        network.world.setTimer(() => {
          const next = drip.shift();
          if (next) data(next.id, next.offset, next.part);
        }, n * 100);
    let paid = true;
    const burst = () => {
      const next = paid && drip.shift();
      if (!next) return;
      data(next.id, next.offset, next.part);
      paid = false;
      network.world.setTimer(() => {
        paid = true;
        burst();
      }, next.part.length);
    };
    let sent = 0;
    link.onControl = (bytes) => {
      const m = decode('control', bytes);
      if (m?.type === 'ping' && malice !== 'deaf') say({ ...m, type: 'pong' });
      if (m?.type === 'certificate-request' && malice !== 'silent') this.certify(m.segments, say);
      const now = network.world.now();
      const debt = this.asked.get(link.peer) ?? { since: now, longest: 0 };
      if (m?.type === 'cancel') {
        for (const id of m.ids) owed.delete(id);
        for (let n = drip.length; n--; ) if (m.ids.includes(drip[n]!.id)) drip.splice(n, 1);
        if (malice === 'late') for (const id of m.ids) data(id, 0, new Uint8Array(10));
        if (!owed.size) debt.longest = Math.max(debt.longest, now - debt.since);
      }
      if (m?.type !== 'request') return;
      this.requests += m.requests.length;
      if (!owed.size) debt.since = now;
      this.asked.set(link.peer, debt);
      for (const { id } of m.requests) owed.add(id);
      const reason = rejects[malice];
      if (reason !== undefined) {
        if (malice === 'fickle') say({ type: 'have', entries: [{ segment: m.segment, state: 0, pieces: 0 }] });
        say({ type: 'reject', reason, ids: m.requests.map((r) => r.id) });
        if (malice === 'fickle') this.announce(say);
      }
      if (reason !== undefined || malice === 'silent' || malice === 'deaf') return;
      for (const { id, piece } of m.requests) {
        const name = this.names.get(m.segment)!;
        const body = this.film.content(name).slice(piece * 16384, (piece + 1) * 16384);
        if (malice === 'late') return;
        if (malice === 'drip' || malice === 'burst') {
          const part = malice === 'drip' ? 560 : 8192;
          for (let offset = 0; offset < body.length; offset += part)
            drip.push({ id, offset, part: body.subarray(offset, offset + part) });
          if (malice === 'burst') burst();
          continue;
        }
        if (malice === 'trickle') {
          for (let n = 1; n < 100; n++)
            network.world.setTimer(() => data(id, n * 10, body.subarray(n * 10, n * 10 + 10)), n * 500);
          return;
        }
        if (sent > 0 && (malice === 'flip-then-stall' || malice === 'silent-mid-piece')) return;
        if (malice.startsWith('flip')) body[sent % body.length]! ^= 1;
        sent++;
        if (malice === 'silent-mid-piece') return data(id, 0, body.subarray(0, body.length / 2));
        for (let offset = 0; offset < body.length; offset += 8192) {
          data(id, offset, body.subarray(offset, offset + 8192));
        }
      }
    };
  }

  private announce(say: (m: Message) => void): void {
    say({
      type: 'have',
      entries: [...this.names.keys()].map((segment) => ({ segment, state: 2, pieces: this.pieces })),
    });
  }

  private certify(segments: string[], say: (m: Message) => void): void {
    for (const segment of segments) {
      const name = this.names.get(segment)!;
      const shown = this.malice === 'replayer' ? [...this.names.values()].find((other) => other !== name)! : name;
      const certificate = this.signer.certify(shown, this.film.content(shown), 1_000);
      if (this.malice === 'forger') certificate[certificate.length - 1]! ^= 1;
      say({ type: 'certificate', segment, certificate });
    }
  }

  private garbage(link: PeerLink): void {
    let x = 1;
    for (let n = 0; n < 200; n++) {
      const bytes = new Uint8Array(40);
      for (const i of bytes.keys()) {
        x = (x * 48271) % 0x7fffffff;
        bytes[i] = x >> 8;
      }
      if (n % 2) link.sendControl(bytes);
      else link.sendData(bytes);
    }
  }
}
