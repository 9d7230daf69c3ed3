/** What the player waits for, and when the origin is asked for it. Times are µs. */

import { dueAt } from '../mesh/mesh.ts';
import { pieceLength } from '../segment/segment.ts';
import type { Run } from './act.ts';
import { wantCertificate } from './packager.ts';
import { lacks, type Part } from './shelf.ts';
import { all, type State, stripeIn } from './state.ts';

/** Gives the part to the player that it waits for, if it is there, and asks the origin for what it is to send. */
export const look = (s: State, now: number): void => {
  if (!s.asked) return;
  const p = s.shelf.part(s.asked.turn);
  if (ready(s, p)) return;
  if (now >= due(s)) {
    isDue(s, now, p);
  } else if (p.length === 0) {
    if (s.short || !all.some((stripe) => s.mesh.parent(stripe))) fetchWhole(s, now, p);
    // It says how long the part is, so what this node is the source of need not wait until it is due.
    else wantCertificate(s, now, p);
  } else {
    fetch(s, now, p, (i) => s.short || !s.mesh.parent(stripeIn(p, i)));
  }
};

/** Whether all of the part has come that the player waits for. */
const ready = (s: State, p: Part): boolean => {
  if (p.length === 0 || !p.pieces.every((pc) => pc.data)) return false;
  s.asked = undefined;
  s.owner.do({ do: 'ready', stream: s.id, turn: p.turn });
  if (p.whole || p.pieces.some((pc) => pc.origin)) enough(s, p);
  return true;
};

/** When the origin is asked for what peers have not sent of the part that the player waits for; Infinity: never. */
export const due = (s: State): number => {
  const a = s.asked;
  if (!a) return Number.POSITIVE_INFINITY;
  const p = s.shelf.part(a.turn);
  let missing = 0;
  for (const [i, pc] of p.pieces.entries()) if (lacks(pc)) missing += pieceLength(p.length, i);
  if (p.whole || (p.length > 0 && missing === 0)) return Number.POSITIVE_INFINITY;
  if (p.length === 0) missing = s.shelf.usual();
  const origin = a.rtt + (a.rate > 0 ? Math.floor((missing * 1_000_000) / a.rate) : 0);
  // What no peer has told, and no playlist lists, need not be there: the packager may be late by half a part, too.
  const late = p.content || !p.fits ? 0 : Math.floor(s.set.part / 2);
  return dueAt(Math.max(a.at + late, p.progress), a.deadline, origin, s.set.part);
};

/** Whether pieces of a stripe have not come; of a part of unknown length, all. */
const waits = (p: Part, stripe: number): boolean =>
  p.length === 0 || p.pieces.some((pc, i) => stripeIn(p, i) === stripe && lacks(pc));

/**
 * A verified piece came from a peer. What a parent has missed is forgiven with the last piece of its stripe of a part that it has not
 * missed: one that begins each part and leaves the rest to the origin is waited for in vain each time.
 */
export const came = ({ mesh }: State, from: string, p: Part, piece: number): void => {
  const stripe = stripeIn(p, piece);
  if (mesh.parent(stripe) !== from || !(p.missed[stripe] || waits(p, stripe))) mesh.arrived(from, stripe);
};

/** Asks the origin for what has not come, and takes it back from the parents. Those that had time have missed the part. */
const isDue = (s: State, now: number, p: Part): void => {
  const had = now - Math.max(s.asked!.at, p.progress) >= Math.floor(s.set.part / 4) && (p.content || !p.fits);
  for (const stripe of all) {
    if (!had || p.missed[stripe] || !waits(p, stripe)) continue;
    p.missed[stripe] = true;
    s.mesh.missed(now, stripe);
  }
  if (p.length === 0) fetchWhole(s, now, p);
  else fetch(s, now, p, () => true);
  enough(s, p);
};

const fetchWhole = (s: State, now: number, p: Part): void => {
  if (p.whole) return;
  p.whole = true;
  begin(s, now, p, []);
};

const begin = (s: State, now: number, p: Part, runs: Run[]): void => {
  s.owner.do({ do: 'fetch', stream: s.id, turn: p.turn, runs });
  wantCertificate(s, now, p, runs);
};

/** Asks the origin for the runs of pieces that have not come and are wanted of it. */
const fetch = (s: State, now: number, p: Part, want: (i: number) => boolean): void => {
  if (p.whole) return;
  const runs: Run[] = [];
  for (const [i, pc] of p.pieces.entries()) {
    if (!lacks(pc) || !want(i)) continue;
    pc.asked = true;
    const run = runs.at(-1);
    if (run?.last === i - 1) run.last = i;
    else runs.push({ first: i, last: i });
  }
  if (runs.length) begin(s, now, p, runs);
};

/** Tells the parents, once, that nothing more of a part is wanted. */
const enough = (s: State, p: Part): void => {
  const segment = p.content?.segment ?? p.named;
  if (p.enough || segment === undefined) return;
  p.enough = true;
  // Of a peer on trial a piece is awaited.
  for (const to of s.mesh.kept()) s.owner.say(to, { type: 'enough', stream: s.id, segment });
};

/** Tells the peers that push whether they are to. */
export const hold = ({ short: on, holds, mesh, owner, id: stream }: State): void => {
  for (const id of on ? mesh.kept() : owner.links.keys()) {
    if (holds.has(id) === on) continue;
    holds[on ? 'add' : 'delete'](id);
    owner.say(id, { type: 'hold', stream, on });
  }
};
