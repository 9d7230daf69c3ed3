import type { PeerLink } from '../ports.ts';
import { decode, encode } from '../protocol/peer.ts';
import { swarmId } from './actors.ts';
import { type Film, idOf, type Signer } from './film.ts';
import type { Network } from './world.ts';

/** What a hostile viewer does. */
export type Malice =
  | 'flip' // one bit of every piece is wrong
  | 'flip-then-stall' // the first piece is wrong, then nothing more comes
  | 'false-have' // announces everything, rejects every request
  | 'silent' // announces everything, answers nothing
  | 'silent-mid-piece' // sends half of a piece, then nothing
  | 'garbage' // random bytes on every channel
  | 'forger' // certificates that nobody signed
  | 'flood'; // unsolicited data

/** Announces the whole film as complete, whatever it holds, and misbehaves. */
export class Hostile {
  requests = 0;
  constructor(
    readonly id: string,
    private readonly network: Network,
    private readonly film: Film,
    private readonly signer: Signer,
    private readonly malice: Malice,
  ) {}

  addLink(link: PeerLink): void {
    const { malice, film, network } = this;
    const names = new Map(film.segments.map((s) => [idOf(s.name), s.name]));
    const hello = { minVersion: 1, maxVersion: 1, flags: 0, maxRequests: 64, peer: this.id, swarm: swarmId };
    link.sendControl(encode({ type: 'hello', ...hello }));
    const pieces = Math.ceil(film.bytes / 16384);
    const entries = [...names.keys()].map((segment) => ({ segment, state: 2, pieces }));
    link.sendControl(encode({ type: 'have', entries }));
    if (malice === 'garbage') {
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
    if (malice === 'flood') {
      for (let n = 0; n < 100; n++)
        network.world.setTimer(() => {
          const payload = new Uint8Array(16_000);
          link.sendData(encode({ type: 'data', request: 9_000_000 + n, offset: 0, sentAt: 0, payload }));
        }, n * 20);
    }
    let sent = 0;
    link.onControl = (bytes) => {
      const m = decode('control', bytes);
      if (m?.type === 'ping') link.sendControl(encode({ ...m, type: 'pong' }));
      if (m?.type === 'certificate-request' && malice !== 'silent') {
        for (const segment of m.segments) {
          const name = names.get(segment)!;
          const certificate = this.signer.certify(name, film.content(name), 1_000);
          if (malice === 'forger') certificate[certificate.length - 1]! ^= 1;
          link.sendControl(encode({ type: 'certificate', segment, certificate }));
        }
      }
      if (m?.type !== 'request') return;
      this.requests += m.requests.length;
      if (malice === 'false-have')
        link.sendControl(encode({ type: 'reject', reason: 0, ids: m.requests.map((r) => r.id) }));
      if (malice === 'silent') return;
      for (const { id, piece } of m.requests) {
        if (sent > 0 && (malice === 'flip-then-stall' || malice === 'silent-mid-piece')) return;
        const data = film.content(names.get(m.segment)!).slice(piece * 16384, (piece + 1) * 16384);
        if (malice.startsWith('flip')) data[sent % data.length]! ^= 1;
        if (malice === 'false-have') return;
        sent++;
        for (let offset = 0; offset < data.length; offset += 8192) {
          if (malice === 'silent-mid-piece' && offset > 0) return;
          const payload = data.subarray(offset, offset + 8192);
          link.sendData(encode({ type: 'data', request: id, offset, sentAt: 0, payload }));
        }
      }
    };
  }
}
