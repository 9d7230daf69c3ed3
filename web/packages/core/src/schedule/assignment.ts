import type { ScheduleInput, WantedSegment } from './input.ts';
import { eta, type Peer, type Peers, quickest } from './peers.ts';
import { owner, rank } from './rank.ts';
import type { Requests } from './requests.ts';
import { open, turnUs } from './segment.ts';
import type { Timer } from './timer.ts';

/** Gives pieces of a segment that is not urgent to peers: to viewers, and what no viewer has to seeds (rules 6 and 7). */
export interface Assignment {
  /** Rule 6. Returns whether a piece stayed without any source. */
  assign(s: WantedSegment, reason: 'near' | 'background'): boolean;
}

export const createAssignment = (
  { policy, self }: ScheduleInput,
  { now, waits }: Timer,
  { all, viewers, byId, usable, interested }: Peers,
  requests: Requests,
): Assignment => {
  /** The last piece is the shortest: as long as no viewer has sent anything it comes first, since it fits into the first flight of a path. */
  const order = (s: WantedSegment): number[] => {
    const rest = open(s);
    const last = s.pieces - 1;
    if (rest.at(-1) === last && !viewers.some((p) => p.rate) && viewers.some((p) => p.has(s.id, last)))
      rest.unshift(rest.pop()!);
    return rest;
  };

  /** A piece is left to another viewer to fetch from a seed: to quicker lines, since others wait for what a slow one passes on; then to its owner. */
  const leaves = (s: WantedSegment, n: number, interested: Peer[]): boolean => {
    const from =
      Math.max(s.asked_us, s.cert_held_us ?? 0) + Math.min(Math.max(0, s.origin_us), Math.floor(s.duration_us / 4));
    if (viewers.length && waits(from)) return true;
    const waiting = interested.filter((p) => !p.has(s.id, n));
    const first = owner(s.id, n, [self, ...waiting.map((p) => p.id)]);
    const heard = byId.get(first)?.heard[s.id] ?? 0;
    const until = Math.min(Math.max(from, heard) + policy.patience_us, from + policy.max_wait_us);
    return first !== self && waits(until);
  };

  /** In an order of one's own, so that two viewers that start together take different pieces from the seed. */
  const toSeeds = (s: WantedSegment, pieces: number[], reason: 'near' | 'background') => {
    // Ranks are hashes. While no seed takes a piece there is nothing to put in order.
    if (requests.room() <= 0 || !all.some((p) => p.role === 'seed' && usable(p, s))) return;
    const place = new Map(viewers.length ? pieces.map((n) => [n, rank(s.id, n, self)]) : []);
    if (viewers.length) pieces.sort((a, b) => place.get(a)! - place.get(b)! || a - b);
    for (const n of pieces) {
      if (requests.room() <= 0) break;
      const seed = quickest(all.filter((p) => p.role === 'seed' && p.has(s.id, n) && usable(p, s)));
      if (seed) requests.send(s, n, seed, reason);
    }
  };

  return {
    assign(s, reason) {
      const partly = interested(s);
      const fromSeeds: number[] = [];
      let stranded = false;
      // What a viewer would send too late is not asked of it, nor what would take longer than the segment plays: the player asks
      // for one after the other. Without an origin to fall back on, late is better than never.
      const bounded = s.asked_us >= 0 && s.origin !== 'failed';
      const left = Math.min(turnUs(s, policy.urgent_permille), s.asked_us + s.duration_us) - now;
      for (const n of order(s)) {
        if (requests.of(s, n)[0]) continue;
        const holders = viewers.filter((p) => p.has(s.id, n) && (s.asked_us >= 0 || !(p.behind_until_us! > now)));
        const best = quickest(holders.filter((p) => usable(p, s) && (!bounded || eta(p) <= left)));
        if (best) {
          if (requests.room() > 0) requests.send(s, n, best, reason);
          continue;
        }
        if (s.asked_us < 0) continue; // what a seed sends is no offload, and a later viewer may hold it
        const every = all.filter((p) => p.has(s.id, n));
        const seeded = every.some((p) => p.role === 'seed' && !p.stalled);
        // A viewer that holds it is only busy: its next free slot is worth waiting for. A seed may have a quicker line than that
        // viewer, for which others wait as well.
        const most = seeded ? Math.min(policy.max_wait_us, Math.floor(s.duration_us / 2)) : policy.max_wait_us;
        if (holders.some((p) => !p.stalled) && waits(s.asked_us + most)) continue;
        if (!seeded) {
          // A holder may be asked again before that is over.
          const until = s.asked_us + policy.max_wait_us;
          if (!every.some((p) => p.stalled_until_us < until) || !waits(until)) stranded = true;
        } else if (!leaves(s, n, partly)) fromSeeds.push(n);
      }
      toSeeds(s, fromSeeds, reason);
      return stranded;
    },
  };
};
