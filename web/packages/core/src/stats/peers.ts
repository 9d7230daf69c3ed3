import { add, type Figures } from '../playback.ts';
import type { LinkPath, PeerFigures } from '../ports.ts';
import { hexToId } from '../session/base64.ts';

/** Peers that one report speaks of. */
const most = 64;

/** What is to be said of single peers, who say the same or do not (spec/tracker-protocol.md, "Of single peers"). */
export const createPeerStats = () => {
  let peers: Record<string, Figures> = {};
  const say = (peer: string, figures: PeerFigures) => add(peers, { [hexToId(peer)]: figures as Figures });
  return {
    received: (peer: string, path: LinkPath, bytes: number) =>
      say(peer, path === 'relay' ? { relay_in: bytes } : { in: bytes }),
    sent: (peer: string, path: LinkPath, bytes: number) =>
      say(peer, path === 'relay' ? { relay_out: bytes } : { out: bytes }),
    /** It was banned for what it did. */
    blamed: (peer: string) => say(peer, { blame: 1 }),
    /** Since the last time. */
    take(): Record<string, PeerFigures> {
      const taken = Object.entries(peers).slice(0, most);
      peers = {};
      return Object.fromEntries(taken);
    },
  };
};
