/** A tracker in virtual time that a page reaches by its socket, and what may be wrong with it. */

import { fromHex } from '../segment/segment.ts';
import { hexToId, idToHex, toBase64url } from '../session/base64.ts';
import type { OpenSocket, SocketHandlers } from '../session/session.ts';
import { welcome } from '../testing/socket.ts';
import { swarmId } from './actors.ts';
import { describe, type Reachable } from './connection.ts';
import type { Signer } from './film.ts';
import type { Network } from './world.ts';

/** What becomes of the page's sockets. */
export type Door =
  | 'open'
  | 'refuses' // nothing listens
  | 'blackholes' // packets vanish
  | 'silent' // takes connections, and says nothing
  | 'late' // answers, after 5 s
  | 'closes' // each connection, behind its welcome
  | 'forbids' // 403
  | 'dies'; // until it is told to: then as refuses

const lateMs = 5_000;
const swarm = hexToId(swarmId);

export class Tracker {
  private readonly sockets = new Set<SocketHandlers>();
  private dead = false;

  constructor(
    private readonly network: Network,
    private readonly home: string,
    private readonly door: Door,
    private readonly peers: Reachable[],
    private readonly signer: Signer,
  ) {}

  /** Every socket is lost, and none is taken any more. */
  die(): void {
    this.dead = true;
    for (const { close } of this.sockets) close();
    this.sockets.clear();
  }

  readonly openSocket: OpenSocket = (_url, _protocol, handlers) => {
    const { door, sockets } = this;
    const { world, delayMs } = this.network;
    const after = (ms: number, f: () => void) => world.setTimer(f, ms);
    let closed = false;
    if (door === 'refuses' || this.dead) after(2 * delayMs, () => handlers.close());
    else if (door === 'forbids') after(4 * delayMs, () => handlers.close());
    else if (door !== 'blackholes') {
      // TCP, and the handshake behind it.
      after(4 * delayMs + (door === 'late' ? lateMs : 0), () => {
        if (closed) return;
        if (this.dead) return handlers.close();
        sockets.add(handlers);
        handlers.open();
        if (door !== 'silent') this.tickets(handlers);
      });
    }
    return {
      send: (text) => {
        after(delayMs, () => {
          if (sockets.has(handlers) && door !== 'silent') this.hear(JSON.parse(text), handlers);
        });
      },
      close: () => {
        closed = true;
        sockets.delete(handlers);
      },
    };
  };

  private say(to: SocketHandlers, message: object): void {
    const text = JSON.stringify(message);
    this.network.send(
      'tracker',
      this.home,
      text.length + 80,
      () => {},
      () => {
        if (this.sockets.has(to)) to.message(text);
      },
    );
  }

  /** A ticket each minute. */
  private tickets(to: SocketHandlers): void {
    this.network.world.setTimer(() => {
      if (!this.sockets.has(to)) return;
      this.say(to, { type: 'ticket', ticket: 'ticket-2' });
      this.tickets(to);
    }, 60_000);
  }

  private hear(message: Record<string, unknown>, from: SocketHandlers): void {
    const { world, delayMs } = this.network;
    const { keyId, alg, key } = this.signer.verifyKey;
    if (message.type === 'hello') {
      this.say(
        from,
        welcome({
          session: hexToId(this.home),
          server_time_ms: Math.floor(world.now()),
          verify_keys: [{ key_id: toBase64url(fromHex(keyId)), alg, key: toBase64url(key) }],
        }),
      );
      if (this.door === 'closes')
        world.setTimer(() => {
          if (this.sockets.delete(from)) from.close();
        }, delayMs + 1);
    } else if (message.type === 'join') {
      const seeds = this.peers.filter(({ role }) => role === 'seed').length;
      this.say(from, { type: 'joined', id: message.id, swarm, viewers: 1 + this.peers.length - seeds, seeds });
      const peers = this.peers.map(({ id, role }) => ({ peer: hexToId(id), role }));
      if (peers.length) this.say(from, { type: 'introduce', swarm, peers });
    } else if (message.type === 'signal' && message.kind === 'offer') {
      const peer = this.peers.find(({ id }) => id === idToHex(message.to as string));
      if (!peer) return;
      const { link, plan } = message;
      const head = { type: 'signal', swarm, from: message.to, role: peer.role, link };
      // A viewer is as far as the page, a seed beside the tracker.
      world.setTimer(
        () => this.say(from, { ...head, kind: 'answer', sdp: describe(peer.id), plan }),
        peer.role === 'seed' ? 5 : 2 * delayMs,
      );
    }
  }
}
