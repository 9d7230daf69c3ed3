/** The library's own links, for ends that ask and serve as they are told: what they have of an engine, and no more. */

import type { Background } from '../../../packages/core/src/background/index.ts';
import { browserEnvironment } from '../../../packages/core/src/browser/environment.ts';
import { inspection } from '../../../packages/core/src/link/inspect.ts';
import { createLink, type Link } from '../../../packages/core/src/link/link.ts';
import { flagBackground } from '../../../packages/core/src/protocol/peer.ts';
import type { SignalBody } from '../../../packages/core/src/session/messages.ts';
import type { Download } from '../../../packages/core/src/transfer/downloads.ts';
import { createPeer, type PeerEvents, type PeerHost } from '../../../packages/core/src/transfer/peer.ts';
import type { Peer } from '../../../packages/core/src/transfer/ports.ts';

/** Both ends have the same name: there is no other peer. */
const nobody = '0'.repeat(32);

export interface LinkEvents {
  signal(link: number, body: SignalBody): void;
  /** Its channels are open. */
  opened?(link: number): void;
  /** The other side has said hello: it may be asked. */
  ready(link: number): void;
  closed(link: number, why: string): void;
  failed(why: string): void;
  /** What is served. */
  piece(segment: string, piece: number): Uint8Array | undefined;
  pieces(segment: string): number;
  /** All bytes of a piece are in; it is still to be checked and removed. */
  arrived(link: number, peer: Peer, download: Download): void;
}

export interface LibraryLinks {
  offer(link: number): void;
  signal(link: number, body: SignalBody): void;
  /** The other side of an open link. */
  peer(link: number): Peer;
  numbers(): Iterable<number>;
  drop(link: number): void;
}

export function libraryLinks(events: LinkEvents, background?: Background): LibraryLinks {
  const { clock } = browserEnvironment();
  const links = new Map<number, { link: Link; peer?: Peer }>();

  const host = (number: number): PeerHost => ({
    clock,
    self: () => nobody,
    swarm: nobody,
    background: background && (() => background),
    uploads: {
      piece: (segment, piece) => events.piece(segment, piece),
      pieces: (segment) => events.pieces(segment),
      allowed: () => true,
      queued: () => 0,
      idle: () => true,
      drained: () => {},
    },
    greeting: { announcement: () => undefined, held: () => [], flags: () => (background ? flagBackground : 0) },
    silence: { drifted: () => false },
    stats: {
      count(name) {
        if (/^rejected|^malformed/.test(name)) events.failed(`link ${number}: ${name}`);
      },
      wasted: () => {},
    },
    verification: {
      piece: (peer, download) => events.arrived(number, peer, download),
      asked: () => {},
      certificate: () => {},
      none: () => {},
    },
  });
  const fate = (number: number): PeerEvents => ({
    ready: () => events.ready(number),
    sent: () => {},
    closed: (_peer, reason) => events.closed(number, reason),
    changed: () => {},
  });

  const create = (number: number): Link => {
    const link = createLink({
      id: String(number),
      peer: nobody,
      role: 'viewer',
      connection: new RTCPeerConnection(),
      clock,
      gated: Promise.resolve(false),
      asks: false,
      udpServers: false,
      relayOnly: false,
      inspection: () => inspection,
      greeting: () => undefined,
      signal: (body) => events.signal(number, body),
      opened(open) {
        events.opened?.(number);
        links.get(number)!.peer = createPeer(open, host(number), fate(number));
      },
      failed: ({ fail }) => events.failed(`link ${number}: ${fail}`),
      closed: (reason) => events.closed(number, reason),
    });
    links.set(number, { link });
    return link;
  };

  return {
    offer: (number) => create(number).offer(),
    signal(number, body) {
      if (body.kind === 'offer') create(number).answer(body.sdp, body.plan);
      else links.get(number)?.link.receive(body);
    },
    peer: (number) => links.get(number)!.peer!,
    numbers: () => links.keys(),
    drop(number) {
      links.get(number)?.link.close('closed');
      links.delete(number);
    },
  };
}
