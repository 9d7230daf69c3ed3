/** What peers tell of parts, until it is judged, and what is refused of it. Times are µs. */

import { sameBytes } from '../certificate/certificate.ts';
import { unsolicitedCost } from '../protocol/limits.ts';
import type { DataMessage } from '../protocol/peer.ts';
import type { Link, Push } from './link.ts';
import { backlog } from './shelf.ts';
import type { Owner, State } from './state.ts';

export const unsolicited = (n: Owner, l: Link, bytes: number): void =>
  n.do({ do: 'blame', from: l.id, why: 'unsolicited', bytes });

/** Has the certificate of a push verified, once for all peers that tell it. */
export const verify = ({ id, owner, shelf }: State, l: Link, { turn, raw }: Push): void => {
  const { judged } = shelf.part(turn);
  if (judged.some((other) => sameBytes(other, raw!))) return;
  judged.push(raw!);
  owner.do({ do: 'verify', from: l.id, stream: id, turn, raw: raw! });
};

/** Does something with the pushes of a stream that are not judged yet. */
export const judging = (n: Owner, stream: string, what: (l: Link, u: Push) => void): void => {
  for (const l of n.links.values()) {
    for (const u of l.pushes.values()) if (u.stream === stream && u.state === 'judging') what(l, u);
  }
};

/**
 * Has what viewers told at a turn be judged, since the own playlist lists it. What it has passed, it has not listed: that was no part,
 * unless the playlist went on by so much that parts of it were never seen.
 */
export const claims = (s: State, turn: number, passed: boolean): void =>
  judging(s.owner, s.id, (l, u) => {
    if (u.turn === turn) verify(s, l, u);
    else if (!s.shelf.near(u.turn)) refuse(s.owner, l, u, passed);
  });

/** Refuses a push. A viewer's at a turn which the own playlist does not have, or has for another part, is a lie: all of it is charged. */
export const refuse = (n: Owner, l: Link, u: Push, lie?: boolean): void => {
  if (lie && !l.seed) {
    unsolicited(n, l, u.raw!.length);
    u.spare = backlog;
  }
  u.state = 'refused';
  for (const m of waited(l, u.id)) drop(n, l, u, m.payload.length);
};

/** Takes out what waits of a push. */
export const waited = (l: Link, push: number): DataMessage[] => {
  const found = l.early.find((e) => e.push === push);
  l.early = l.early.filter((e) => e !== found);
  return found?.data ?? [];
};

/** Counts data of a push that was refused: a certificate of another seed, or a seed's turn that was wrong, is not the peer's fault. */
export const drop = (n: Owner, l: Link, u: Push, bytes: number): void => {
  n.counts.dropped += bytes;
  u.spare += unsolicitedCost(bytes);
  if (u.spare > backlog) unsolicited(n, l, bytes);
};
