import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { dueAt, Mesh, stripeOf } from './mesh.ts';
import { type Message, none, type Place } from './place.ts';
import { sourceRank } from './trees.ts';

interface MessageVector {
  peer: string;
  kind: Message['type'];
  stripe: number;
  slots?: number;
  place?: Omit<Place, 'rank'> & { rank: number | null };
}

/** One thing that happens, and what decide then sends. */
interface StepVector {
  at_us: number;
  linked?: string;
  gone?: string;
  can_source?: boolean;
  /** A seed sends certificates. */
  seeded?: boolean;
  /** Of a node that can be no source. */
  hold?: boolean;
  heard?: MessageVector;
  arrived?: { peer: string; stripe: number };
  missed?: number;
  waited?: { peer: string; stripe: number; waited_us: number; part_us: number };
  leave?: boolean;
  sends: MessageVector[];
  awaited: number[];
  children: string[][];
}

interface Vectors {
  stripes: { turn: number; pieces: number; stripes: number; of: number[] }[];
  ranks: { peer: string; stripe: number; slots: number; rank: number }[];
  due: { since_us: number; deadline_us: number; origin_us: number; part_us: number; due_us: number }[];
  cases: {
    name: string;
    why: string;
    config: { self: string; stripes: number; slots: number; per_stripe?: number; seed?: boolean; whole?: boolean };
    steps: StepVector[];
  }[];
}

const file = new URL('../../../../../spec/vectors/parts.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;

const readMessage = ({ kind, stripe, slots = 0, place }: MessageVector): Message => {
  if (kind === 'place') return { type: kind, stripe, ...place!, rank: place!.rank ?? none };
  return kind === 'subscribe' ? { type: kind, stripe, slots } : { type: kind, stripe };
};

/** As the vectors have it: no rank is null, and no slots are left out. */
const written = ({ to: peer, ...m }: Message & { to: string }): MessageVector => {
  const { type: kind, stripe } = m;
  if (m.type === 'place') {
    const { rank, path, room, least } = m;
    return { peer, kind, stripe, place: { rank: rank === none ? null : rank, path, room, least } };
  }
  return { peer, kind, stripe, ...(m.type === 'subscribe' && m.slots > 0 && { slots: m.slots }) };
};

const happen = (m: Mesh, s: StepVector): void => {
  if (s.linked) m.linked(s.linked);
  else if (s.gone) m.gone(s.gone);
  else if (s.can_source !== undefined) m.canSource(s.can_source, false, s.seeded);
  else if (s.hold !== undefined) m.canSource(false, s.hold);
  else if (s.heard) m.heard(s.at_us, s.heard.peer, readMessage(s.heard));
  else if (s.arrived) m.arrived(s.arrived.peer, s.arrived.stripe);
  else if (s.missed !== undefined) m.missed(s.at_us, s.missed);
  else if (s.waited) m.waited(s.at_us, s.waited.peer, s.waited.stripe, s.waited.waited_us, s.waited.part_us);
};

describe('vectors of parts', () => {
  it('gives pieces their stripes', () => {
    for (const { turn, pieces, stripes, of } of vectors.stripes)
      expect(of.map((_, piece) => stripeOf(turn, piece, pieces, stripes))).toEqual(of);
  });

  it('ranks sources', () => {
    for (const { peer, stripe, slots, rank } of vectors.ranks) expect(sourceRank(peer, stripe, slots)).toBe(rank);
  });

  it('says when a part is due', () => {
    for (const v of vectors.due) expect(dueAt(v.since_us, v.deadline_us, v.origin_us, v.part_us)).toBe(v.due_us);
  });

  it.each(vectors.cases)('$name', ({ config: { per_stripe, ...config }, steps }) => {
    const m = new Mesh({ ...config, ...(per_stripe && { perStripe: per_stripe }) });
    const stripes = Array.from({ length: config.stripes }, (_, i) => i);
    for (const [i, step] of steps.entries()) {
      happen(m, step);
      const sends = step.leave ? m.leave() : m.decide(step.at_us);
      const { awaited, children } = step;
      expect(
        {
          sends: sends.map(written),
          awaited: stripes.filter((s) => m.parent(s)),
          children: stripes.map((s) => m.children(s)),
        },
        `step ${i}`,
      ).toEqual({ sends: step.sends, awaited, children });
    }
  });
});
