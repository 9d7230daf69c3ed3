/**
 * What the schedule sees and says, in the terms of spec/schedule.md and its vectors: times in µs, sizes in bytes,
 * integers only, names in snake case so that recorded inputs read the same in both languages.
 */
import type { Reason } from '../ports.ts';

export interface Policy {
  urgent_permille: number;
  patience_us: number;
  cert_patience_us: number;
  link_patience_us: number;
  /** Pieces in flight in all. */
  piece_cap: number;
  /** Bytes outstanding to one viewer. */
  peer_cap: number;
  /** Bytes outstanding to one seed while viewers are linked. */
  seed_cap: number;
  background: boolean;
  max_wait_us: number;
}

export const defaultPolicy: Policy = {
  urgent_permille: 1500,
  patience_us: 1_000_000,
  cert_patience_us: 2_000_000,
  link_patience_us: 1_500_000,
  piece_cap: 128,
  peer_cap: 524_288,
  seed_cap: 131_072,
  background: false,
  max_wait_us: 2_000_000,
};

export interface WantedSegment {
  id: string;
  /** When the playhead gets there. */
  deadline_us: number;
  duration_us: number;
  /** When the player asked; -1: it has not. */
  asked_us: number;
  certificate: 'none' | 'asked' | 'held' | 'refused';
  /** When it was first asked for; -1: never. */
  cert_asked_us: number;
  /** When it was verified; left out or 0: not, or not known. */
  cert_held_us?: number;
  /** Peers that were asked, in order, or that refused. */
  cert_peers: string[];
  /** 0 while unknown. */
  pieces: number;
  /** Verified pieces, sorted. */
  have: number[];
  /** A list has its short certificate: the viewer completes it with what the origin sends. */
  packaged?: boolean;
  origin: 'idle' | 'running' | 'failed';
  /** What the origin would take for the segment at the estimated capacity; -1 unknown. */
  origin_us: number;
}

export interface SchedulePeer {
  id: string;
  role: 'viewer' | 'seed';
  /** Bytes per second, 0 unknown. */
  rate: number;
  rtt_us: number;
  /** Free request slots. */
  slots: number;
  /** Bytes outstanding to it. */
  queued: number;
  on_demand: boolean;
  stalled_until_us: number;
  /** Until when nothing is asked of it in the background; left out or 0: it may be asked. */
  behind_until_us?: number;
  holds: Record<string, 'complete' | number[]>;
  /** When it last announced a segment that it holds in part. */
  heard: Record<string, number>;
}

export interface ScheduleRequest {
  segment: string;
  piece: number;
  peer: string;
  lane: 0 | 1;
  sent_us: number;
  /** Last data of this peer, or sent_us if later. */
  progress_us: number;
}

export interface ScheduleInput {
  now_us: number;
  self: string;
  policy: Policy;
  /** How long requests of the player may still wait, in all, until a piece is verified; -1: one was. */
  credit_us: number;
  /** How long they may then still wait for holders that are not known to send enough. */
  slow_credit_us: number;
  /** A first link may still come up. */
  linking: boolean;
  /** A seed that was introduced in this session may still be linked. */
  seed_linking: boolean;
  off: Reason | null;
  /** What the player asked for last is of a stream that goes on. */
  live?: boolean;
  segments: WantedSegment[];
  /** Sorted by ID. */
  peers: SchedulePeer[];
  requests: ScheduleRequest[];
}
