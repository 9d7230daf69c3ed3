import type { ScheduleInput, SchedulePeer, WantedSegment } from './input.ts';
import { listed } from './segment.ts';

export const pieceSize = 16_384;
const leastRate = 65_536;
const leastPace = 16_384;
const leastStall = 1_000_000;
/** Bytes outstanding to a peer whose rate is unknown; more would only be waited for if it never answers. */
const probation = 65_536;
/**
 * Most bytes outstanding to a near seed of a live stream, while viewers are linked. Viewers ask for a segment at about the same time. With
 * so little on its way, a viewer hears of the others before it has asked the seed for the whole segment.
 */
const liveCap = 32_768;

/** A working copy: slots and queues are counted down as pieces are assigned. */
export type Peer = SchedulePeer & {
  stalled: boolean;
  /** Whether it holds a piece of the segment. */
  has(segment: string, n: number): boolean;
};

const workingPeer = (p: SchedulePeer, now: number): Peer => {
  const sets = new Map<string, Set<number>>();
  return {
    ...p,
    stalled: p.stalled_until_us > now,
    has(segment, n) {
      const held = p.holds[segment];
      if (held === 'complete') return true;
      if (!held) return p.on_demand;
      const set = sets.get(segment) ?? new Set(held);
      sets.set(segment, set);
      return set.has(n);
    },
  };
};

/** Whether it has said that it holds the segment, at least in part, or gets what it is asked for, and may be asked. */
export const offers = (p: SchedulePeer, s: WantedSegment): boolean =>
  !!p.holds[s.id] || (p.on_demand && (s.certificate !== 'none' || !listed(s)));

/** The time after which so many more pieces would be here. */
export const after = (p: SchedulePeer, pieces: number): number =>
  p.rtt_us +
  Math.floor(((p.queued + pieces * pieceSize) * 1_000_000) / (p.rate ? Math.max(p.rate, leastPace) : leastRate));

export const eta = (p: SchedulePeer): number => after(p, 1);

/** How long a request to the peer may go without progress. */
export const stallTime = (p: SchedulePeer): number =>
  Math.max(
    leastStall,
    4 * p.rtt_us + Math.floor((3_000_000 * Math.min(p.queued, probation)) / Math.max(p.rate, leastRate)),
  );

/** The peer with the least eta; of equals the first. */
export const quickest = (peers: Peer[]): Peer | undefined => {
  let best: Peer | undefined;
  for (const p of peers) if (!best || eta(p) < eta(best)) best = p;
  return best;
};

/** Those that are linked. */
export interface Peers {
  all: Peer[];
  viewers: Peer[];
  byId: Map<string, Peer>;
  /** Whether a peer may be given one more piece of a segment (rule 6). */
  usable(p: Peer, s: WantedSegment): boolean;
  /** What the holders of a segment send together, bytes/s. */
  rates(s: WantedSegment): number;
  /** The viewers that hold a part of the segment. */
  interested(s: WantedSegment): Peer[];
}

export const createPeers = ({ now_us, peers, policy, live }: ScheduleInput): Peers => {
  const all = peers.map((p) => workingPeer(p, now_us));
  const viewers = all.filter((p) => p.role === 'viewer');
  return {
    all,
    viewers,
    byId: new Map(all.map((p) => [p.id, p])),
    usable(p, s) {
      let most = policy.peer_cap;
      if (p.role === 'seed' && viewers.length) {
        most = policy.seed_cap;
        if (live) {
          // A seed that is far is asked for what a round trip takes at twice the rate of the segment.
          const far = Math.floor((2 * s.pieces * pieceSize * p.rtt_us) / Math.max(1, s.duration_us));
          most = Math.min(most, Math.max(liveCap, far));
        }
      }
      const known = p.rate ? Math.max(pieceSize, 4 * p.rate) : probation;
      return !p.stalled && p.slots > 0 && p.queued < Math.min(most, known);
    },
    rates: (s) => all.reduce((sum, p) => sum + (offers(p, s) ? p.rate : 0), 0),
    interested: (s) => viewers.filter((p) => Array.isArray(p.holds[s.id])),
  };
};
