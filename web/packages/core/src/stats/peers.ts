import type { LinkPath, PeerFigures } from '../ports.ts';

/** Peers that one report speaks of. */
const most = 64;

/**
 * What the statistics say of single peers (spec/tracker-protocol.md, "Of single peers"). The tracker compares it with what the peer
 * says itself.
 */
export const createPeerStats = () => {
  let peers: Record<string, PeerFigures> = {};
  const say = (peer: string, what: keyof PeerFigures, n: number) => {
    peers[peer] = { ...peers[peer], [what]: (peers[peer]?.[what] ?? 0) + n };
  };
  return {
    /** So many bytes came from it, or went to it. */
    moved: (peer: string, way: 'in' | 'out', path: LinkPath, bytes: number) =>
      say(peer, path === 'relay' ? `relay_${way}` : way, bytes),
    /** It was banned for what it did. */
    blamed: (peer: string) => say(peer, 'blame', 1),
    /** Since the last time. */
    take(): Record<string, PeerFigures> {
      const taken = Object.entries(peers).slice(0, most);
      peers = {};
      return Object.fromEntries(taken);
    },
  };
};
