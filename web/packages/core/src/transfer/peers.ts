/** The linked peers of an engine, and those that are not to be linked again. */

import type { LinkCloseReason, PeerLink } from '../ports.ts';
import { byePolicy, byeReplaced, laneForeground } from '../protocol/peer.ts';
import type { createPeerStats } from '../stats/peers.ts';
import type { createGreeting } from './greeting.ts';
import { createPeer, type Peer, type PeerHost } from './peer.ts';
import type { Segment, Stretch } from './segments.ts';
import type { Shared } from './shared.ts';
import type { Silence } from './silence.ts';
import type { Verification } from './verification.ts';

export interface PeersHost extends Pick<PeerHost, 'self' | 'swarm' | 'background'> {
  said: ReturnType<typeof createPeerStats>;
  greeting: Pick<ReturnType<typeof createGreeting>, 'announcement' | 'flags'>;
  verification: Verification;
  silence: Silence;
  /** Whether this viewer sends to others, and what they ask for in the background. */
  uploads(): boolean;
  serves(): boolean;
}

export interface Peers {
  readonly byId: Map<string, Peer>;
  all(): Peer[];
  /** Takes over a link that has opened. */
  add(link: PeerLink): void;
  /** Tells what is held of a segment. */
  announce(id: string): void;
  /** Takes back what is asked for of a segment. */
  cancel(s: Segment): void;
  /** Likewise the pieces from one to another, since another source is quicker. */
  outdone(s: Segment, part?: Stretch): void;
}

export const createPeers = (shared: Shared, host: PeersHost): Peers => {
  const { clock, cache, stats, emit, settled, changed } = shared;
  const { said, greeting, verification, silence } = host;
  const byId = new Map<string, Peer>();
  const banned = new Set<string>();
  const all = () => [...byId.values()];

  const closed = (link: PeerLink, p: Peer, reason: LinkCloseReason, ban: boolean) => {
    const { peer, role } = link;
    if (ban) {
      banned.add(peer);
      said.blamed(peer);
    }
    byId.delete(peer);
    verification.gone(p);
    emit('unlink', { peer, role, reason, banned: ban });
    silence.gone(p, reason);
    changed();
  };

  const add = (link: PeerLink) => {
    const other = link.peer;
    if (shared.stopped || banned.has(other)) return link.close('policy', byePolicy);
    byId.get(other)?.drop('closed', byeReplaced);
    const peer = createPeer(link, greeting.flags(), {
      self: host.self,
      swarm: host.swarm,
      background: host.background,
      uploads: {
        piece: cache.piece,
        pieces: (id) => cache.get(id)?.pieces ?? 0,
        queued: () => all().reduce((n, p) => n + p.uploads.size(), 0),
        allowed: (lane) => host.uploads() && (lane === laneForeground || host.serves()),
        idle: () => !all().some((p) => p.uploads.urgent()),
        drained: () => queueMicrotask(() => byId.forEach((p) => void p.uploads.pump())),
      },
      clock,
      sent(p, bytes, segment) {
        p.uploaded += bytes;
        stats.uploaded(link.path(), bytes);
        said.moved(other, 'out', link.path(), bytes);
        emit('piece', { peer: other, role: link.role, direction: 'out', bytes, segment });
      },
      announcement: greeting.announcement,
      held: cache.ids,
      ready() {
        emit('link', { peer: other, role: link.role, path: link.path() });
        changed();
      },
      closed: (p, reason, ban) => closed(link, p, reason, ban),
      drifted: silence.drifted,
      piece: (p, d) => settled(verification.piece(p, d)),
      certificateRequest: verification.asked,
      certificate: (p, id, raw) => settled(verification.certificate(p, id, raw)),
      certificateNone: verification.none,
      changed,
      count: stats.count,
      wasted: stats.wasted,
    });
    byId.set(other, peer);
    link.onNamed = (again) => silence.named(peer, again);
  };

  return {
    byId,
    all,
    add,
    announce(id) {
      if (host.uploads()) for (const p of all()) p.announce(id);
    },
    cancel(s) {
      for (const p of all()) p.cancel((d) => d.segment === s.id);
    },
    outdone(s, [from, until] = [0, Number.POSITIVE_INFINITY]) {
      const length = s.certificate?.length ?? 0;
      for (const p of all())
        p.outdone((d) => d.segment === s.id && d.piece >= from && d.piece < until, length, s.ref.durationMs);
    },
  };
};
