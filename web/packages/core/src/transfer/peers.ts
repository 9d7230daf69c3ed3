/** The linked peers of an engine, and those that are not to be linked again. */

import type { PeerLink } from '../ports.ts';
import { byePolicy, byeReplaced, laneForeground } from '../protocol/peer.ts';
import type { createPeerStats } from '../stats/peers.ts';
import type { LowLatency } from './nodescript.ts';
import { createPeer, type PeerHost } from './peer.ts';
import type { Peer, Peers } from './ports.ts';
import type { Shared } from './shared.ts';
import type { Silence } from './silence.ts';
import type { UploadHost } from './uploads.ts';
import type { Verification } from './verification.ts';

export interface PeersHost extends Pick<PeerHost, 'self' | 'swarm' | 'background' | 'greeting'> {
  said: ReturnType<typeof createPeerStats>;
  verification: PeerHost['verification'] & Pick<Verification, 'gone'>;
  silence: Silence;
  lowLatency?: LowLatency;
  /** Whether this viewer sends to others, and what they ask for in the background. */
  uploads(): boolean;
  serves(): boolean;
  /** What the site lets it send, kbit/s; 0 or left out: any. */
  capped?(): number | undefined;
}

export interface LinkedPeers extends Peers {
  /** Takes over a link that has opened. */
  add(link: PeerLink): void;
}

export const createPeers = (shared: Shared, host: PeersHost): LinkedPeers => {
  const { clock, cache, stats, emit, changed } = shared;
  const { said, verification, silence, lowLatency } = host;
  const byId = new Map<string, Peer>();
  const banned = new Set<string>();
  const all = () => [...byId.values()];

  const uploads: Omit<UploadHost, 'reject' | 'nowUs' | 'sent'> = {
    piece: cache.piece,
    pieces: (id) => cache.get(id)?.pieces ?? 0,
    queued: () => all().reduce((n, p) => n + p.uploads.size(), 0),
    allowed: (lane, paced) =>
      host.uploads() && (paced || !host.capped?.()) && (lane === laneForeground || host.serves()),
    idle: () => !all().some((p) => p.uploads.urgent()),
    drained: () => queueMicrotask(() => byId.forEach((p) => void p.uploads.pump())),
  };

  const add = (link: PeerLink) => {
    const { peer: other, role } = link;
    if (shared.stopped || banned.has(other)) return link.close('policy', byePolicy);
    byId.get(other)?.drop('closed', byeReplaced);
    const added = createPeer(
      link,
      { ...host, clock, stats, uploads },
      {
        ready() {
          emit('link', { peer: other, role, path: link.path() });
          lowLatency?.linked(added);
          changed();
        },
        sent(bytes, segment, lane) {
          stats.uploaded(link.path(), lane, bytes);
          said.moved(other, 'out', link.path(), bytes);
          emit('piece', { peer: other, role, direction: 'out', bytes, segment });
        },
        closed(peer, reason, ban) {
          if (ban) {
            banned.add(other);
            said.blamed(other);
          }
          byId.delete(other);
          uploads.drained(); // what it waited for may have held up others
          verification.gone(peer);
          lowLatency?.gone(peer);
          emit('unlink', { peer: other, role, reason, banned: ban });
          silence.gone(peer, reason);
          changed();
        },
        changed,
      },
    );
    byId.set(other, added);
    link.onNamed = (again) => silence.named(added, again);
  };

  return {
    byId,
    all,
    add,
    received({ link, supply }, bytes, segment) {
      const { peer, role } = link;
      const path = link.path();
      supply.downloaded += bytes;
      stats.received(role, path, bytes);
      if (role === 'viewer') said.moved(peer, 'in', path, bytes);
      emit('piece', { peer, role, direction: 'in', bytes, segment });
    },
    announce(id, whole) {
      if (host.uploads()) for (const p of all()) p.announce(id, whole);
    },
    cancel(s) {
      for (const p of all()) p.supply.cancel((d) => d.segment === s.id);
    },
    outdone(s, [from, until] = [0, Number.POSITIVE_INFINITY]) {
      const length = s.certificate?.length ?? 0;
      for (const p of all())
        p.supply.outdone((d) => d.segment === s.id && d.piece >= from && d.piece < until, length, s.ref.durationMs);
    },
  };
};
