import { defaultPolicy, type ScheduleInput, type ScheduleRequest } from '../schedule/input.ts';

const id = (digit: string) => digit.repeat(32);

/** A segment of 8 MiB and 500 pieces that are left for a seed, of which so many bytes are outstanding, beside a viewer without it. */
export const long = (queued: number): ScheduleInput => {
  const segment = id('5');
  const [self, viewer, seed] = [id('1'), id('2'), id('3')];
  const peer = { rate: 1_000_000, rtt_us: 20_000, slots: 200, stalled_until_us: 0, heard: {} };
  const requests = Array.from(
    { length: queued / 16384 },
    (_, piece): ScheduleRequest => ({ segment, piece, peer: seed, lane: 0, sent_us: 0, progress_us: 3_000_000 }),
  );
  return {
    now_us: 3_000_000,
    self,
    policy: defaultPolicy,
    credit_us: -1,
    slow_credit_us: 2_000_000,
    linking: false,
    seed_linking: false,
    off: null,
    segments: [
      {
        id: segment,
        deadline_us: 60_000_000,
        duration_us: 10_000_000,
        asked_us: 0,
        certificate: 'held',
        cert_asked_us: 0,
        cert_peers: [seed],
        pieces: 512,
        have: Array.from({ length: 12 }, (_, n) => 500 + n),
        origin: 'idle',
        origin_us: 1_000_000,
      },
    ],
    peers: [
      { ...peer, id: viewer, role: 'viewer', queued: 0, on_demand: false, holds: {} },
      { ...peer, id: seed, role: 'seed', queued, on_demand: true, holds: {} },
    ],
    requests,
  };
};
