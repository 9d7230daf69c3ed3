import type { Plan, RequestReason } from './action.ts';
import type { ScheduleInput, ScheduleRequest, WantedSegment } from './input.ts';
import { type Peer, type Peers, pieceSize, stallTime } from './peers.ts';
import type { Timer } from './timer.ts';

/** Those on their way, and what is asked for in addition. */
export interface Requests {
  /** How many more may be sent. */
  room(): number;
  cancel(r: ScheduleRequest, reason: 'stalled' | 'late'): void;
  send(s: WantedSegment, n: number, p: Peer, reason: RequestReason): void;
  /** Rule 8. */
  promote(s: WantedSegment): void;
  /** For a piece. */
  of(s: WantedSegment, n: number): ScheduleRequest[];
  /** Whether any piece of the segment is in flight. */
  any(s: WantedSegment): boolean;
}

/** Rule 1: the stalled requests are canceled. */
export const createRequests = (
  { requests, policy }: ScheduleInput,
  peers: Peers,
  { waits }: Timer,
  { actions }: Plan,
): Requests => {
  const cancel = ({ segment, piece, peer }: ScheduleRequest, reason: 'stalled' | 'late') =>
    actions.push({ type: 'cancel', segment, piece, peer, reason });
  const flying = requests.filter((r) => {
    const p = peers.byId.get(r.peer);
    if (!p || waits(r.progress_us + stallTime(p) + 1)) return true;
    cancel(r, 'stalled');
    p.stalled = true;
    return false;
  });
  for (const p of peers.all) waits(p.stalled_until_us);
  let room = policy.piece_cap - flying.length;
  const bySegment = new Map<string, ScheduleRequest[][]>();
  for (const r of flying) {
    const pieces = bySegment.get(r.segment) ?? [];
    bySegment.set(r.segment, pieces);
    pieces[r.piece] ??= [];
    pieces[r.piece]!.push(r);
  }
  return {
    room: () => room,
    cancel,
    send(s, piece, p, reason) {
      p.slots--;
      p.queued += pieceSize;
      room--;
      const lane = reason === 'background' ? 1 : 0;
      actions.push({ type: 'request', segment: s.id, piece, peer: p.id, lane, reason });
    },
    promote(s) {
      for (const { segment, piece, peer, lane } of flying)
        if (segment === s.id && lane === 1) actions.push({ type: 'promote', segment, piece, peer });
    },
    of: (s, n) => bySegment.get(s.id)?.[n] ?? [],
    any: (s) => bySegment.has(s.id),
  };
};
