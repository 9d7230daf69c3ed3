/** Loads of the packager's certificates of a stream's parts (spec/packaging.md, "Parts"). Times are µs. */

import type { Run } from './act.ts';
import type { Link } from './link.ts';
import type { Part } from './shelf.ts';
import { all, type Packager, type State, stripeIn } from './state.ts';

/** Parts without a certificate after which a seed, or a packager, is not counted on. */
const silence = 4;
/** In a row; with the last of them a pause begins, doubled with each further one. */
const mostMisses = 4;
const minPause = 4_000_000;
const maxPause = 600_000_000;
/** How often the certificate of a chunk is asked for. */
const mostTries = 3;

/** Whether the node can be a source by the packager's word. */
export const vouches = ({ signed, set }: State, now: number): boolean =>
  now - signed.heard < silence * set.part && now >= signed.again;

/** Whether a linked seed sends certificates. */
export const seeded = (s: State, now: number): boolean =>
  now - s.heard < silence * s.set.part && linked(s, (l) => l.seed);

const linked = ({ owner }: State, what: (l: Link) => boolean) => [...owner.links.values()].some(what);

const missed = (k: Packager, now: number): void => {
  k.loading = undefined;
  if (++k.misses >= mostMisses) k.again = now + Math.min(minPause * 2 ** (k.misses - mostMisses), maxPause);
};

/** Whether the node is to be the source of one of the pieces of runs or, without runs, of a part. */
const isSource = (s: State, now: number, p: Part, runs: Run[] = []): boolean =>
  !seeded(s, now) && linked(s, (l) => !l.seed && l.follows.has(s.id)) && leads(s, now, p, runs);

/** Whether certificates of chunks are to be loaded: the node is to be the source, and the packager has not missed too many. */
export const signs = (s: State, now: number, p: Part): boolean => now >= s.signed.again && isSource(s, now, p);

/**
 * Asks for the packager's certificate of a part, if this node is to be the source of one of the pieces that the origin is asked for: those
 * of runs or, without runs, all. It is also called for a part of unknown length, which the origin is not asked for yet. A chunk is known
 * when the origin has sent it.
 */
export const wantCertificate = (s: State, now: number, p: Part, runs?: Run[]): void => {
  const { signed: k, owner } = s;
  const known = p.fits ? p.beside : s.asked?.packaged;
  if (!known || p.content || p.sought === (p.beside ? mostTries : 1) || !isSource(s, now, p, runs)) return;
  late(s, now);
  if (k.loading !== undefined || now < k.again) return;
  p.sought++;
  k.loading = p.turn;
  k.since = now;
  owner.do({ do: 'certificate', stream: s.id, turn: p.turn, of: p.beside });
};

/** Asks for the certificate that comes next of chunks that the origin has sent: one load runs at a time. */
export const goOn = (s: State, now: number): void => {
  for (const p of [...s.shelf.parts.values()].sort((a, b) => (a.turn - b.turn) | 0))
    if (p.beside) wantCertificate(s, now, p);
};

/** Gives up a load that has taken as long as a part plays: the part is of no use to children by then. */
export const late = ({ signed: k, set, owner, id }: State, now: number): void => {
  if (k.loading === undefined || now - k.since < set.part) return;
  missed(k, now);
  owner.do({ do: 'give-up', stream: id });
};

const leads = (s: State, now: number, p: Part, runs: Run[]): boolean => {
  for (const { first, last } of runs)
    for (let i = first; i <= last; i++) if (s.mesh.leads(now, stripeIn(p, i))) return true;
  return !runs.length && all.some((stripe) => s.mesh.leads(now, stripe));
};

/** Whether what came of a load counts. A chunk may be here before its certificate is there: that is asked for again. */
export const loaded = (s: State, now: number, p: Part | undefined, good: boolean): void => {
  if (good) {
    s.signed.misses = 0;
    goOn(s, now);
  } else if (!p?.beside || p.sought === mostTries) missed(s.signed, now);
};
