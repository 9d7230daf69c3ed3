/** The schedule of spec/schedule.md: a pure function, the same in both languages, to the bit. */
import { type Action, createPlan } from './action.ts';
import { createAssignment } from './assignment.ts';
import { createCertificates } from './certificates.ts';
import type { ScheduleInput, WantedSegment } from './input.ts';
import { createPeers, offers } from './peers.ts';
import { createRequests } from './requests.ts';
import { complete, turnUs } from './segment.ts';
import { createTimer } from './timer.ts';
import { createUrgent } from './urgent.ts';
import { createWaiting } from './waiting.ts';

export const decide = (input: ScheduleInput): Action[] => {
  const { now_us: now, policy, off } = input;
  const plan = createPlan();
  const { actions, origin } = plan;
  const timer = createTimer(now);
  const { waits } = timer;
  const peers = createPeers(input);
  const requests = createRequests(input, peers, timer, plan);
  const waiting = createWaiting(input, timer, peers);
  const certificates = createCertificates(plan, timer, peers, policy);
  const { assign } = createAssignment(input, timer, peers, requests);
  const urgent = createUrgent(input, timer, peers, requests);

  /** Rule 3, for a segment that is not held any longer. */
  const late = (s: WantedSegment, turn: number) => {
    const certified = s.certificate === 'held';
    if (certified && waiting.proven && s.origin === 'idle' && urgent.rescue(s)) return;
    const offered = peers.all.some((p) => offers(p, s));
    origin(s, !offered ? 'no-holder' : !certified && s.cert_asked_us >= 0 ? 'no-cert' : 'urgent');
    // Too late for this load, in time for the others: what the origin sends can be shared once it is certified.
    if (s.certificate === 'none') certificates.ask(s);
    if (certified && (waiting.proven || urgent.deep(s))) urgent.race(s, turn);
    else if (certified) urgent.prove(s);
  };

  /** Rules 4 and 5, for a segment whose origin does not run. */
  const near = (s: WantedSegment, until: number) => {
    if (s.origin === 'idle') waits(until + 1);
    if (s.certificate === 'held') {
      if (!assign(s, 'near')) return;
      const hopeless = !peers.interested(s).length && s.origin !== 'failed';
      if (hopeless || !waits(s.asked_us + policy.patience_us)) origin(s, 'no-holder');
    } else if (s.certificate === 'refused') origin(s, 'no-cert');
    else if (certificates.asked(s)) certificates.await(s);
    else if (!certificates.ask(s)) {
      if (peers.all.length && s.cert_peers.length) origin(s, 'no-cert');
      else if (!waiting.holder(s)) origin(s, 'no-holder');
    }
  };

  /** Rules 0 and 2 to 5. */
  const segment = (s: WantedSegment) => {
    const asked = s.asked_us >= 0;
    if (complete(s)) {
      if (s.origin === 'running') actions.push({ type: 'stop-origin', segment: s.id });
    } else if (off) {
      if (asked) origin(s, off);
    } else if (!asked) {
      if (s.certificate === 'none') certificates.ask(s);
      else if (s.certificate === 'held' && policy.background) assign(s, 'background');
    } else {
      requests.promote(s);
      const turn = turnUs(s, policy.urgent_permille);
      const until = waiting.until(s, turn);
      if (now > until && s.origin !== 'failed') late(s, turn);
      else if (s.origin !== 'running') near(s, until);
    }
  };

  for (const s of input.segments) {
    const before = actions.length;
    timer.waiting = false;
    segment(s);
    const idle = !timer.waiting && actions.length === before && !requests.any(s);
    if (idle && s.asked_us >= 0 && s.origin === 'failed' && !complete(s)) actions.push({ type: 'fail', segment: s.id });
  }
  if (timer.wake < Number.POSITIVE_INFINITY) actions.push({ type: 'wake', at_us: timer.wake });
  return actions;
};
