/** A seed of low-latency streams: it fetches each part when it is published, signs it, and pushes it. */

import { Mesh, stripeOf } from '../mesh/mesh.ts';
import { maxPart } from '../parts/shelf.ts';
import type { PeerLink } from '../ports.ts';
import { decodeParts, encodeParts, flagParts, type PartsMessage, pushedId, stripes } from '../protocol/parts.ts';
import { pieceSize } from '../protocol/peer.ts';
import { maxLength } from '../segment/segment.ts';
import { createPeer, type PeerHost } from '../transfer/peer.ts';
import type { Peer } from '../transfer/ports.ts';
import { swarmId } from './actors.ts';
import type { Broadcast, BroadcastPart } from './broadcast.ts';
import { idOf, type Signer } from './film.ts';
import type { Network } from './world.ts';

const nothing = () => {};
const decideMs = 100;
/** Children of a stripe. */
const perStripe = 2;

type Publication = Pick<BroadcastPart, 'name' | 'sequence' | 'index'> & { stream: string; data: Uint8Array };

export class PartSeed {
  sent = 0;
  /** Certificates are forged from now on. */
  forges = false;
  /** Of a segment of chunks it reads so much, bytes. */
  reads = maxLength;
  private readonly peers = new Map<string, Peer>();
  private readonly streams = new Map<string, { broadcast: Broadcast; mesh: Mesh; followers: Set<string> }>();
  private readonly held = new Set<string>();
  private push = 0;
  private stopped = false;

  constructor(
    readonly id: string,
    private readonly network: Network,
    private readonly signer: Signer,
    broadcasts: Broadcast[],
  ) {
    for (const broadcast of broadcasts) {
      const mesh = new Mesh({ self: id, stripes, slots: perStripe * stripes, perStripe, seed: true });
      mesh.canSource(true);
      this.streams.set(broadcast.stream, { broadcast, mesh, followers: new Set() });
      this.follow(broadcast, broadcast.latest() + 1);
    }
    this.decide();
  }

  stop(): void {
    this.stopped = true;
    for (const p of [...this.peers.values()]) p.drop('shutdown', 0);
  }

  addLink(link: PeerLink): void {
    const host: PeerHost = {
      clock: this.network.world,
      self: () => this.id,
      swarm: swarmId,
      uploads: {
        piece: nothing as () => undefined,
        pieces: () => 0,
        allowed: () => true,
        queued: () => 0,
        idle: () => true,
        drained: nothing,
      },
      greeting: { announcement: nothing as () => undefined, held: () => [], flags: () => flagParts },
      silence: { drifted: () => false },
      stats: { count: nothing, wasted: nothing },
      verification: { piece: nothing, certificate: nothing, none: nothing, asked: nothing },
      lowLatency: { heard: (peer, message) => this.heard(peer, message), pushed: () => false },
    };
    const peer = createPeer(link, host, {
      ready: () => {
        if (!peer.speaksParts) return;
        this.peers.set(link.peer, peer);
        for (const stream of this.streams.keys()) this.say(link.peer, { type: 'follow', stream, on: true });
      },
      sent: (bytes) => {
        this.sent += bytes;
      },
      closed: () => {
        this.peers.delete(link.peer);
        for (const s of this.streams.values()) this.lost(s, link.peer);
      },
      changed: nothing,
    });
  }

  private lost({ mesh, followers }: { mesh: Mesh; followers: Set<string> }, peer: string): void {
    followers.delete(peer);
    mesh.gone(peer);
  }

  private say(to: string, m: PartsMessage): void {
    this.peers.get(to)?.say(encodeParts(m));
  }

  private heard({ link }: Peer, message: Uint8Array): void {
    const m = decodeParts(message) as PartsMessage;
    const s = this.streams.get(m.stream);
    if (!s) return;
    const { peer } = link;
    if (m.type === 'follow') {
      if (!m.on) {
        this.lost(s, peer);
        return;
      }
      s.followers.add(peer);
      s.mesh.linked(peer);
    } else if (m.type === 'hold') {
      if (m.on) this.held.add(peer);
      else this.held.delete(peer);
    } else if (m.type !== 'part' && m.type !== 'enough') {
      s.mesh.heard(this.network.world.now() * 1000, peer, m);
      this.tell(m.stream);
    }
  }

  private tell(stream: string): void {
    const { mesh } = this.streams.get(stream)!;
    for (const { to, ...m } of mesh.decide(this.network.world.now() * 1000)) this.say(to, { ...m, stream });
  }

  private decide(): void {
    if (this.stopped) return;
    for (const stream of this.streams.keys()) this.tell(stream);
    this.network.world.setTimer(() => this.decide(), decideMs);
  }

  /** Waits for a part, and sends it. */
  private follow(broadcast: Broadcast, n: number): void {
    this.network.world.setTimer(() => {
      if (this.stopped) return;
      this.follow(broadcast, n + 1);
      const part = broadcast.part(n);
      broadcast
        .fetcher(this.id, part.name)(new AbortController().signal, nothing)
        .then(({ data }) => {
          if (!this.stopped) this.publish({ ...part, stream: broadcast.stream, data: new Uint8Array(data) });
        }, nothing);
    }, broadcast.dueMs(n));
  }

  /** Tells a certificate to those that follow the stream. */
  private certify({ stream, name, sequence, index, data }: Publication): void {
    // Of a range of an object that grows.
    const last = /#\d+-(\d+)$/.exec(name)?.[1];
    const certificate = this.signer.certify(
      name,
      data,
      Math.floor(this.network.world.now()),
      last ? +last + 1 : undefined,
    );
    if (this.forges) certificate[certificate.length - 1]! ^= 1;
    this.push = (this.push + 1) % 1_000;
    const { broadcast, followers } = this.streams.get(stream)!;
    const turn = ((broadcast.epoch + sequence) % 2 ** 24) * 256 + index;
    for (const to of followers) this.say(to, { type: 'part', stream, push: this.push, turn, certificate });
  }

  private publish(publication: Publication): void {
    const { stream, name, sequence, index, data } = publication;
    const { mesh, broadcast } = this.streams.get(stream)!;
    if (data.length > maxPart || +(/#\d+-(\d+)$/.exec(name)?.[1] ?? 0) >= this.reads) return;
    this.certify(publication);
    const pieces = Math.ceil(data.length / pieceSize);
    for (let i = 0; i < pieces; i++)
      for (const to of mesh.children(stripeOf(sequence + index, i, pieces, stripes))) {
        if (this.held.has(to)) continue;
        const piece = data.subarray(i * pieceSize, (i + 1) * pieceSize);
        this.peers.get(to)?.uploads.push(pushedId(this.push, i), idOf(name), piece, nothing);
      }
    const whole = broadcast.endsWith(publication);
    if (whole && whole.data.length <= this.reads) this.certify({ ...publication, ...whole, index: 255 });
  }
}
