/** Peers whose piece did not match, until they are cleared or dropped. */
import { type Certificate, sameContent } from '../certificate/index.ts';
import type { Clock } from '../ports.ts';
import { byeBadPiece } from '../protocol/peer.ts';
import type { Download } from './downloads.ts';
import type { Peer } from './ports.ts';

/** How long a peer whose piece differs has to show a certificate under which it is right. */
const suspectMs = 1_000;

export interface Suspects {
  has(peer: Peer): boolean;
  /** Whether the peer's piece of this segment did not match. */
  of(peer: Peer, segment: string): boolean;
  /** Its piece did not match. It is asked for nothing else, and for its certificate. */
  suspect(peer: Peer, d: Download): void;
  /** It shows another certificate than the one that is held. Cleared if its piece is right under that; dropped otherwise. */
  answer(peer: Peer, shown: Certificate | undefined, held: Certificate | undefined): Promise<boolean>;
  acquit(peer: Peer): void;
  /** It has no certificate to show. */
  drop(peer: Peer): void;
}

export const createSuspects = (
  clock: Clock,
  check: (c: Certificate, n: number, data: Uint8Array) => Promise<boolean>,
): Suspects => {
  const all = new Map<Peer, { segment: string; piece: number; data: Uint8Array; timer: number }>();
  const acquit = (peer: Peer) => {
    clock.clearTimer(all.get(peer)?.timer ?? 0);
    all.delete(peer);
  };
  const drop = (peer: Peer) => {
    acquit(peer);
    peer.drop('bad-piece', byeBadPiece, true);
  };
  return {
    has: (peer) => all.has(peer),
    of: (peer, segment) => all.get(peer)?.segment === segment,
    suspect(peer, { segment, piece, data }) {
      peer.supply.stalledUntilUs = Number.MAX_SAFE_INTEGER;
      const timer = clock.setTimer(() => drop(peer), suspectMs);
      all.set(peer, { segment, piece, data, timer });
      peer.supply.cancel(() => true);
      peer.send({ type: 'certificate-request', segments: [segment] });
    },
    async answer(peer, shown, held) {
      const { piece, data } = all.get(peer)!;
      if (!shown || !held || sameContent(shown, held) || !(await check(shown, piece, data))) {
        drop(peer);
        return false;
      }
      acquit(peer);
      peer.supply.stalledUntilUs = 0;
      return true;
    },
    acquit,
    drop,
  };
};
