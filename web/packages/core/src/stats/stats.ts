import { add, type Figures } from '../playback.ts';
import type { LinkPath, PeerRole, Reason, Source, StatsDelta } from '../ports.ts';

export interface Stats {
  /** Since the last take, and since the beginning. */
  take(): StatsDelta;
  totals(): StatsDelta;
  /** The same, as it grows. */
  readonly total: StatsDelta;
  /** What was refused, skipped or unusual, by a closed set of names. */
  counters: Record<string, number>;
  count(name: string, n?: number): void;
  /** Verified bytes from a peer. */
  received(role: PeerRole, path: LinkPath, bytes: number): void;
  played(bytes: number): void;
  uploaded(path: LinkPath, lane: number, bytes: number): void;
  /** A seed does not know a segment, by the query parameters in its name. */
  unlisted(parameters: string[]): void;
  segment(source: Source, reason: Reason | undefined): void;
  add<
    K extends
      | { [F in keyof StatsDelta]-?: StatsDelta[F] extends number | undefined ? F : never }[keyof StatsDelta]
      | 'parts',
  >(field: K, n: StatsDelta[K] & {}): void;
  /** Bytes that came and are of no use, in that lane. */
  wasted(bytes: number, lane: number): void;
}

const empty = (): StatsDelta => ({
  bytes: { origin: 0, seed: 0, peer: 0, peer_relay: 0, seed_relay: 0 },
  uploaded: { direct: 0, relay: 0 },
  lanes: { foreground: 0, background: 0 },
  segments: { origin: 0, seed: 0, peer: 0 },
  reasons: {},
  duplicate_bytes: 0,
  wasted_bytes: 0,
  rejected_bytes: 0,
  contradictions: 0,
  disputes: 0,
  prefetched_bytes: 0,
  prefetch_wasted_bytes: 0,
  promotions: 0,
});

export const createStats = (): Stats => {
  let delta = empty();
  const total = empty();
  const tally = (figures: Figures) => {
    for (const s of [delta, total]) add(s as unknown as Figures, figures);
  };
  const counters: Record<string, number> = {};
  return {
    take() {
      const taken = delta;
      delta = empty();
      return taken;
    },
    total,
    totals: () => JSON.parse(JSON.stringify(total)),
    counters,
    count(name, n = 1) {
      counters[name] = (counters[name] ?? 0) + n;
    },
    received(role, path, bytes) {
      const source = role === 'seed' ? 'seed' : 'peer';
      tally({ bytes: { [path === 'relay' ? `${source}_relay` : source]: bytes } });
    },
    played: (origin) => tally({ bytes: { origin } }),
    uploaded: (path, lane, bytes) =>
      tally({ uploaded: { [path]: bytes }, lanes: { [lane ? 'background' : 'foreground']: bytes } }),
    segment: (source, reason) => tally({ segments: { [source]: 1 }, reasons: reason && { [reason]: 1 } }),
    unlisted(parameters) {
      for (const p of parameters) tally({ unlisted_query: { [p]: 1 } });
    },
    add: (field, n) => tally({ [field]: n } as Figures),
    wasted: (wasted_bytes, lane) => tally({ wasted_bytes, prefetch_wasted_bytes: lane ? wasted_bytes : 0 }),
  };
};
