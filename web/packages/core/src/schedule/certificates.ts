import type { Plan } from './action.ts';
import type { Policy, WantedSegment } from './input.ts';
import { offers, type Peers } from './peers.ts';
import { listed } from './segment.ts';
import type { Timer } from './timer.ts';

/** Asks peers for the certificates of segments. */
export interface Certificates {
  /** Asks the next peer, no seed where a list has it; false: there is none left to ask. */
  ask(s: WantedSegment): boolean;
  /** Whether a peer that was asked may still answer. */
  asked(s: WantedSegment): boolean;
  /** Asks a further peer from time to time while the first ones may answer, and the origin for the segment after that (rule 4). */
  await(s: WantedSegment): void;
}

export const createCertificates = (plan: Plan, { waits }: Timer, { all }: Peers, policy: Policy): Certificates => {
  const ask = (s: WantedSegment): boolean => {
    const fresh = all.filter((p) => !s.cert_peers.includes(p.id) && !p.stalled);
    fresh.sort((a, b) => a.rtt_us - b.rtt_us || (a.id < b.id ? -1 : 1));
    const next = fresh.find((p) => p.holds[s.id]) ?? fresh.find((p) => p.on_demand && !listed(s));
    if (next) plan.actions.push({ type: 'certificate', segment: s.id, peer: next.id });
    return !!next;
  };
  return {
    ask,
    asked: (s) => s.certificate === 'asked' && all.some((p) => s.cert_peers.includes(p.id) && offers(p, s)),
    await(s) {
      if (!waits(Math.max(s.cert_asked_us, s.asked_us) + policy.cert_patience_us)) plan.origin(s, 'no-cert');
      else if (!waits(s.cert_asked_us + s.cert_peers.length * Math.floor(policy.cert_patience_us / 4))) ask(s);
    },
  };
};
