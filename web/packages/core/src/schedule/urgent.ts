import type { ScheduleInput, WantedSegment } from './input.ts';
import { after, type Peer, type Peers, quickest } from './peers.ts';
import type { Requests } from './requests.ts';
import { open, urgentWindow } from './segment.ts';
import type { Timer } from './timer.ts';

/** Peers of which pieces are outstanding while none has been verified and the origin serves. */
const mostProving = 4;

/** What peers are asked for of a segment whose turn has come (rule 3). */
export interface Urgent {
  /** Of the segment's urgent window no more than a third is left. */
  deep(s: WantedSegment): boolean;
  /** A piece each of a few holders, beside the origin: with one verified, what comes next may wait for peers. */
  prove(s: WantedSegment): void;
  /** A seed for all that is not in hand, if the origin can wait for it; says whether. */
  rescue(s: WantedSegment): boolean;
  /**
   * What is not on its way is asked of the quickest holder where the origin may be late, and peers had no time or it is deep in the
   * urgent window. As long as the origin is within its time no peer is asked: what peers send then comes over the same line.
   */
  race(s: WantedSegment, turn: number): void;
}

export const createUrgent = (
  { now_us: now, policy }: ScheduleInput,
  { waits }: Timer,
  { all, usable }: Peers,
  requests: Requests,
): Urgent => {
  const window = (s: WantedSegment) => urgentWindow(s, policy.urgent_permille);
  const slack = (s: WantedSegment) => s.deadline_us - now;
  const deep = (s: WantedSegment) => slack(s) < Math.floor(window(s) / 3);
  /** One holder for each piece that is not on its way; ends as `done`. */
  const ask = (s: WantedSegment, pieces: number[], done: () => boolean, ok: (p: Peer) => boolean) => {
    for (const n of pieces) {
      if (requests.room() <= 0 || done()) return;
      const p = requests.of(s, n)[0] ? undefined : quickest(all.filter((p) => p.has(s.id, n) && ok(p)));
      if (p) requests.send(s, n, p, 'race');
    }
  };
  return {
    deep,
    prove: (s) =>
      ask(
        s,
        open(s).reverse(),
        () => all.filter((p) => p.queued).length >= mostProving,
        (p) => !p.queued && usable(p, s),
      ),
    rescue(s) {
      const half = Math.floor(window(s) / 2);
      if (slack(s) < half) return false;
      const rest = open(s);
      const others = (p: Peer) => rest.filter((n) => !requests.of(s, n).some((r) => r.peer === p.id));
      const rescuer = (most: number) =>
        quickest(
          all.filter((p) => {
            const more = others(p).length;
            return (
              p.role === 'seed' &&
              p.rate &&
              !p.stalled &&
              more <= Math.min(most, p.slots, requests.room()) &&
              after(p, more) <= Math.floor(slack(s) / 4) &&
              rest.every((n) => p.has(s.id, n))
            );
          }),
        );
      // The seed that was asked already, lest two seeds take turns.
      const best = rescuer(0) ?? rescuer(rest.length);
      if (!best) return false;
      for (const n of others(best)) {
        for (const r of requests.of(s, n)) requests.cancel(r, 'late');
        requests.send(s, n, best, 'race');
      }
      return waits(s.deadline_us - half + 1);
    },
    race(s, turn) {
      const due = Math.max(s.asked_us, turn) + Math.min(Math.floor((s.origin_us * 3) / 2), s.duration_us);
      if (s.origin_us >= 0 && waits(due + 1)) return;
      const third = Math.floor(window(s) / 3);
      const late = !waits(s.deadline_us - third + 1);
      if (!late && (s.have.length || s.deadline_us - s.asked_us >= window(s))) return;
      ask(
        s,
        open(s),
        () => false,
        (p) => !p.stalled && p.slots > 0,
      );
    },
  };
};
