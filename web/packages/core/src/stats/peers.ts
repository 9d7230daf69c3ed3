import type { LinkPath, PeerFigures } from '../ports.ts';

/** Peers that one report speaks of. */
const most = 64;

/**
 * What is to be said of single peers, who say the same or do not (spec/tracker-protocol.md, "Of single peers"). `named` spells
 * an ID as the tracker does.
 */
export const createPeerStats = (named: (peer: string) => string) => {
  let peers: Record<string, PeerFigures> = {};
  const say = (peer: string, what: keyof PeerFigures, n: number) => {
    const id = named(peer);
    peers[id] = { ...peers[id], [what]: (peers[id]?.[what] ?? 0) + n };
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
