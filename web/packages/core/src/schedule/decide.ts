/** The schedule of spec/schedule.md: a pure function, the same in both languages, to the bit. */
import {
  type Action,
  type RequestReason,
  type ScheduleInput,
  type SchedulePeer,
  type ScheduleRequest,
  thin,
  urgentWindow,
  type WantedSegment,
} from './input.ts';
import { owner, rank } from './rank.ts';

const pieceSize = 16_384;
const leastRate = 65_536;
const leastPace = 16_384;
const leastStall = 1_000_000;
/** Bytes outstanding to a peer whose rate is unknown; more would only be waited for if it never answers. */
const probation = 65_536;
/** Peers of which pieces are outstanding while none has been verified and the origin serves. */
const mostProving = 4;
/** A segment is held until its turn for holders that together send this part of what it plays at. */
const worthShare = 32;

type Peer = SchedulePeer & {
  stalled: boolean;
  /** Whether it holds a piece of the segment. */
  has(segment: string, n: number): boolean;
};

/** When it becomes urgent: a player asks for one after the other, and what takes longer than it plays takes what the buffer has. */
const turnOf = ({ asked_us, deadline_us, duration_us, origin_us }: WantedSegment, urgent: number): number =>
  Math.min(
    deadline_us - urgent,
    Math.max(asked_us + duration_us - Math.max(0, origin_us), deadline_us - duration_us),
    asked_us + Math.floor((duration_us * 5) / 4),
  );

/** A list spares the question to a seed, unless the origin does not send what it would be completed with. */
const listed = (s: WantedSegment): boolean => !!s.packaged && s.origin !== 'failed';

const stallTime = (p: SchedulePeer): number =>
  Math.max(
    leastStall,
    4 * p.rtt_us + Math.floor((3_000_000 * Math.min(p.queued, probation)) / Math.max(p.rate, leastRate)),
  );

/** The time after which so many more pieces would be here. */
const after = (p: SchedulePeer, pieces: number): number =>
  p.rtt_us +
  Math.floor(((p.queued + pieces * pieceSize) * 1_000_000) / (p.rate ? Math.max(p.rate, leastPace) : leastRate));

const eta = (p: SchedulePeer): number => after(p, 1);

const quickest = (peers: Peer[]): Peer | undefined => {
  let best: Peer | undefined;
  for (const p of peers) if (!best || eta(p) < eta(best)) best = p;
  return best;
};

/** Working copies: slots and queues are counted down as pieces are assigned. */
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

export const decide = (input: ScheduleInput): Action[] => {
  const { now_us: now, policy, self, credit_us: credit, slow_credit_us: slowCredit } = input;
  const proven = credit < 0;
  const actions: Action[] = [];
  const peers = input.peers.map((p) => workingPeer(p, now));
  const viewers = peers.filter((p) => p.role === 'viewer');
  const byId = new Map(peers.map((p) => [p.id, p]));
  let wake = Number.POSITIVE_INFINITY;
  /** For something that the segment at hand needs. */
  let waiting = false;
  /** Remembers when a wait ends; says whether it still lasts. */
  const waits = (until: number): boolean => {
    if (now >= until) return false;
    wake = Math.min(wake, until);
    waiting = true;
    return true;
  };

  // Requests without the stalled ones (rule 1).
  const flying = input.requests.filter(({ segment, piece, peer, progress_us }) => {
    const p = byId.get(peer);
    if (!p || waits(progress_us + stallTime(p) + 1)) return true;
    actions.push({ type: 'cancel', segment, piece, peer, reason: 'stalled' });
    p.stalled = true;
    return false;
  });
  let inFlight = flying.length;
  for (const p of peers) waits(p.stalled_until_us);

  const free = (p: Peer): boolean => {
    const most = p.role === 'seed' && viewers.length > 0 ? policy.seed_cap : policy.peer_cap;
    return !p.stalled && p.slots > 0 && p.queued < Math.min(most, p.rate ? Math.max(pieceSize, 4 * p.rate) : probation);
  };
  const request = (s: WantedSegment, n: number, p: Peer, reason: RequestReason) => {
    p.slots--;
    p.queued += pieceSize;
    inFlight++;
    actions.push({
      type: 'request',
      segment: s.id,
      piece: n,
      peer: p.id,
      lane: reason === 'background' ? 1 : 0,
      reason,
    });
  };

  /** Asks the next peer for the certificate, no seed where a list has it; false: there is none left to ask. */
  const askCertificate = (s: WantedSegment): boolean => {
    const fresh = peers.filter((p) => !s.cert_peers.includes(p.id) && !p.stalled);
    fresh.sort((a, b) => a.rtt_us - b.rtt_us || (a.id < b.id ? -1 : 1));
    const next = fresh.find((p) => p.holds[s.id]) ?? fresh.find((p) => p.on_demand && !listed(s));
    if (next) actions.push({ type: 'certificate', segment: s.id, peer: next.id });
    return !!next;
  };

  /** It has said that it holds it, at least in part, or it gets what it is asked for, and may be asked. */
  const offers = (s: WantedSegment, p: Peer) =>
    !!p.holds[s.id] || (p.on_demand && (s.certificate !== 'none' || !listed(s)));

  /** What its holders send together, bytes/s. */
  const rates = (s: WantedSegment): number => peers.reduce((sum, p) => sum + (offers(s, p) ? p.rate : 0), 0);

  /** Its holders send enough together, by their rates, for it to be held until its turn. */
  const worth = (s: WantedSegment): boolean => {
    const sum = rates(s);
    const least = Math.floor((s.pieces * pieceSize * 1_000_000) / worthShare / Math.max(1, s.duration_us));
    return sum > 0 && sum >= least;
  };

  /** A buffer is filled over a thin line, and its holders are not known to bring it clearly sooner than the origin. */
  const filling = (s: WantedSegment): boolean => {
    if (!thin(s, s.deadline_us - s.asked_us)) return false;
    const enough = Math.floor((s.pieces * pieceSize * 1_250_000) / Math.max(1, s.origin_us));
    return !proven || (s.certificate === 'held' && rates(s) < enough);
  };

  const bySegment = new Map<string, ScheduleRequest[][]>();
  for (const r of flying) {
    const pieces = bySegment.get(r.segment) ?? [];
    bySegment.set(r.segment, pieces);
    pieces[r.piece] ??= [];
    pieces[r.piece]!.push(r);
  }
  const inFlightOf = (s: WantedSegment, n: number): ScheduleRequest[] => bySegment.get(s.id)?.[n] ?? [];
  /** Pieces that are not verified. */
  const open = (s: WantedSegment): number[] => {
    const have = new Set(s.have);
    return [...Array(s.pieces).keys()].filter((n) => !have.has(n));
  };

  /** Rule 6. Returns whether a piece stayed without any source. */
  const assign = (s: WantedSegment, reason: 'near' | 'background', turn: number): boolean => {
    const interested = viewers.filter((p) => Array.isArray(p.holds[s.id]));
    const fromSeeds: number[] = [];
    let stranded = false;
    const rest = open(s);
    const last = s.pieces - 1;
    // What a viewer would send too late is not asked of it, nor what would take longer than the segment plays: the player asks
    // for one after the other. Without an origin to fall back on, late is better than never.
    const bounded = s.asked_us >= 0 && s.origin !== 'failed';
    const left = Math.min(turn, s.asked_us + s.duration_us) - now;
    const from =
      Math.max(s.asked_us, s.cert_held_us ?? 0) + Math.min(Math.max(0, s.origin_us), Math.floor(s.duration_us / 4));
    // It is the shortest, and fits into the first flight of a path. Afterwards that is no matter.
    if (rest.at(-1) === last && !viewers.some((p) => p.rate) && viewers.some((p) => p.has(s.id, last)))
      rest.unshift(rest.pop()!);
    for (const n of rest) {
      if (inFlightOf(s, n)[0]) continue;
      const holders = viewers.filter((p) => p.has(s.id, n));
      const best = quickest(holders.filter((p) => free(p) && (!bounded || eta(p) <= left)));
      if (best) {
        if (inFlight < policy.piece_cap) request(s, n, best, reason);
        continue;
      }
      if (s.asked_us < 0) continue; // what a seed sends is no offload, and a later viewer may hold it
      const all = peers.filter((p) => p.has(s.id, n));
      const seeded = all.some((p) => p.role === 'seed' && !p.stalled);
      // A viewer that holds it is only busy: its next free slot is worth waiting for. A seed may have a quicker line than that viewer,
      // for which others wait as well.
      const most = seeded ? Math.min(policy.max_wait_us, Math.floor(s.duration_us / 2)) : policy.max_wait_us;
      if (holders.some((p) => !p.stalled) && waits(s.asked_us + most)) continue;
      if (!seeded) {
        // A holder may be asked again before that is over.
        const until = s.asked_us + policy.max_wait_us;
        if (!all.some((p) => p.stalled_until_us < until) || !waits(until)) stranded = true;
        continue;
      }
      // A seed is left to quicker lines first: others would wait for what a slow one passes on.
      if (viewers.length && waits(from)) continue;
      const waiting = interested.filter((p) => !p.has(s.id, n));
      const first = owner(s.id, n, [self, ...waiting.map((p) => p.id)]);
      const heard = byId.get(first)?.heard[s.id] ?? 0;
      const until = Math.min(Math.max(from, heard) + policy.patience_us, from + policy.max_wait_us);
      if (first === self || !waits(until)) fromSeeds.push(n);
    }
    // Ranks are hashes. While no seed takes a piece there is nothing to put in order.
    if (inFlight >= policy.piece_cap || !peers.some((p) => p.role === 'seed' && free(p))) return stranded;
    // In an order of one's own, so that two viewers that start together take different pieces from the seed.
    const place = new Map(viewers.length ? fromSeeds.map((n) => [n, rank(s.id, n, self)]) : []);
    if (viewers.length) fromSeeds.sort((a, b) => place.get(a)! - place.get(b)! || a - b);
    for (const n of fromSeeds) {
      if (inFlight >= policy.piece_cap) break;
      const seed = quickest(peers.filter((p) => p.role === 'seed' && p.has(s.id, n) && free(p)));
      if (seed) request(s, n, seed, reason);
    }
    return stranded;
  };

  /** Rule 3: a seed for all that is not in hand, if the origin can wait for it. */
  const rescue = (s: WantedSegment, slack: number, urgent: number): boolean => {
    const half = Math.floor(urgent / 2);
    if (slack < half) return false;
    const rest = open(s);
    const others = (p: Peer) => rest.filter((n) => !inFlightOf(s, n).some((r) => r.peer === p.id));
    const rescuer = (most: number) =>
      quickest(
        peers.filter((p) => {
          const more = others(p).length;
          return (
            p.role === 'seed' &&
            p.rate &&
            !p.stalled &&
            more <= Math.min(most, p.slots, policy.piece_cap - inFlight) &&
            after(p, more) <= Math.floor(slack / 4) &&
            rest.every((n) => p.has(s.id, n))
          );
        }),
      );
    // The seed that was asked already, lest two seeds take turns.
    const best = rescuer(0) ?? rescuer(rest.length);
    if (!best) return false;
    for (const n of others(best)) {
      for (const { segment, piece, peer } of inFlightOf(s, n))
        actions.push({ type: 'cancel', segment, piece, peer, reason: 'late' });
      request(s, n, best, 'race');
    }
    return waits(s.deadline_us - half + 1);
  };

  /**
   * Rule 3: what is not on its way is asked of the quickest holder where the origin may be late, and peers had no time or it is deep
   * in the urgent window. As long as the origin is within its time no peer is asked: what peers send then comes over the same line.
   */
  const race = (s: WantedSegment, turn: number, urgent: number) => {
    const due = Math.max(s.asked_us, turn) + Math.min(Math.floor((s.origin_us * 3) / 2), s.duration_us);
    if (s.origin_us >= 0 && waits(due + 1)) return;
    const deep = !waits(s.deadline_us - Math.floor(urgent / 3) + 1);
    if (deep || !(s.have.length || s.deadline_us - s.asked_us >= urgent))
      for (const n of open(s)) {
        if (inFlight >= policy.piece_cap) return;
        if (inFlightOf(s, n)[0]) continue;
        const p = quickest(peers.filter((p) => p.has(s.id, n) && !p.stalled && p.slots > 0));
        if (p) request(s, n, p, 'race');
      }
  };

  /** A piece each of a few holders, beside the origin: with one verified, what comes next may wait for peers. */
  const prove = (s: WantedSegment) => {
    for (const n of open(s).reverse()) {
      if (peers.filter((p) => p.queued).length >= mostProving || inFlight >= policy.piece_cap) return;
      if (inFlightOf(s, n)[0]) continue;
      const p = quickest(peers.filter((p) => !p.queued && p.has(s.id, n) && free(p)));
      if (p) request(s, n, p, 'race');
    }
  };

  /** Where the origin failed the request has left. Its error may wait for a first link, and for what linked viewers may say. */
  const mayYet = (s: WantedSegment): boolean => {
    if (s.origin !== 'failed') return false;
    if (peers.length) return viewers.length > 0 && waits(s.asked_us + policy.patience_us);
    return input.linking && waits(s.asked_us + policy.link_patience_us);
  };

  const origin = (s: WantedSegment, reason: (Action & { type: 'origin' })['reason']) => {
    if (s.origin === 'idle') actions.push({ type: 'origin', segment: s.id, reason });
  };

  const segment = (s: WantedSegment) => {
    const slack = s.deadline_us - now;
    const urgent = urgentWindow(s, policy.urgent_permille);
    const turn = turnOf(s, urgent);
    // From when on it is not held: earlier, where a buffer is filled over a thin line, where nothing has been verified, or where
    // its holders are not known to send enough, and the time for that runs out.
    let until = turn;
    if (filling(s)) until = Math.min(turn, s.asked_us - 1);
    else if (!proven || !worth(s)) until = Math.min(turn, now + (proven ? slowCredit : credit) - 1);
    const asked = s.asked_us >= 0;
    const certified = s.certificate === 'held';
    if (s.pieces > 0 && s.have.length >= s.pieces) {
      if (s.origin === 'running') actions.push({ type: 'stop-origin', segment: s.id });
      return;
    }
    if (input.off) {
      if (asked) origin(s, input.off);
      return;
    }
    const holders = peers.some((p) => offers(s, p));
    if (!asked) {
      if (s.certificate === 'none') askCertificate(s);
      else if (certified && policy.background) assign(s, 'background', turn);
      return;
    }
    for (const { segment, piece, peer, lane } of flying)
      if (segment === s.id && lane === 1) actions.push({ type: 'promote', segment, piece, peer });

    if (now > until && s.origin !== 'failed') {
      if (certified && proven && s.origin === 'idle' && rescue(s, slack, urgent)) return;
      origin(s, !holders ? 'no-holder' : !certified && s.cert_asked_us >= 0 ? 'no-cert' : 'urgent');
      // Too late for this load, in time for the others: what the origin sends can be shared once it is certified.
      if (s.certificate === 'none') askCertificate(s);
      if (certified && (proven || slack < Math.floor(urgent / 3))) race(s, turn, urgent);
      else if (certified) prove(s);
      return;
    }
    if (s.origin === 'running') return;
    if (s.origin === 'idle') waits(until + 1);
    if (certified) {
      if (!assign(s, 'near', turn)) return;
      const interested = viewers.some((p) => Array.isArray(p.holds[s.id]));
      if (!(interested || s.origin === 'failed') || !waits(s.asked_us + policy.patience_us)) origin(s, 'no-holder');
    } else if (s.certificate === 'refused') {
      origin(s, 'no-cert');
    } else if (s.certificate === 'asked' && peers.some((p) => s.cert_peers.includes(p.id) && offers(s, p))) {
      const first = Math.max(s.cert_asked_us, s.asked_us);
      if (!waits(first + policy.cert_patience_us)) origin(s, 'no-cert');
      else if (!waits(s.cert_asked_us + s.cert_peers.length * Math.floor(policy.cert_patience_us / 4)))
        askCertificate(s);
    } else if (!askCertificate(s)) {
      if (peers.length && s.cert_peers.length) origin(s, 'no-cert');
      else {
        const seed = input.seed_linking && waits(s.asked_us + policy.link_patience_us);
        if (!seed && !mayYet(s)) origin(s, 'no-holder');
      }
    }
  };

  for (const s of input.segments) {
    const before = actions.length;
    waiting = false;
    segment(s);
    const over = !waiting && actions.length === before && !flying.some((r) => r.segment === s.id);
    if (over && s.asked_us >= 0 && s.origin === 'failed' && !(s.pieces > 0 && s.have.length >= s.pieces))
      actions.push({ type: 'fail', segment: s.id });
  }
  if (wake < Number.POSITIVE_INFINITY) actions.push({ type: 'wake', at_us: wake });
  return actions;
};
