import { type Cache, complete } from '../cache/cache.ts';
import type { SegmentRequest } from '../ports.ts';
import { bitmapPieces } from '../protocol/peer.ts';
import type { Policy, ScheduleInput, SchedulePeer, ScheduleRequest, WantedSegment } from '../schedule/input.ts';
import { urgentWindow } from '../schedule/segment.ts';
import { pieceCount, pieceSize } from '../segment/index.ts';
import type { Line } from './line.ts';
import type { Peer } from './ports.ts';
import type { Segment } from './segments.ts';
import type { Shared } from './shared.ts';

/** Bytes that the origin would have to send, as far as they are known; for a part of an object, those of the object. */
const left = (s: Segment, held: number, line: Line): number =>
  s.object ??
  (s.certificate
    ? Math.max(1, s.certificate.length - (line.wholes ? 0 : held * pieceSize))
    : (s.bitrate * s.ref.durationMs) / 8000);

/** A segment as the schedule sees it. */
const viewSegment = (s: Segment, cache: Cache, deadlineUs: number, line: Line): WantedSegment => {
  const pieces = s.certificate ? pieceCount(s.certificate.length) : 0;
  const held = cache.get(s.id);
  const have = held ? bitmapPieces(held.bitmap, pieces) : [];
  return {
    id: s.id,
    deadline_us: deadlineUs,
    duration_us: Math.round(s.ref.durationMs * 1000),
    asked_us: s.loads.size ? s.askedUs : -1,
    certificate: s.state,
    cert_asked_us: s.certAskedUs,
    cert_held_us: s.certHeldUs,
    cert_peers: [...s.certPeers],
    pieces,
    have,
    origin: s.origin,
    origin_us: line.timeUs(left(s, have.length, line)),
  };
};

/** The peers and what was asked of them, as the schedule sees them. `relays`: those behind a relay are asked for something. */
const viewPeers = (
  peers: Iterable<Peer>,
  relays: boolean,
): { peers: SchedulePeer[]; requests: ScheduleRequest[]; behind: number } => {
  let behind = 0;
  const requests: ScheduleRequest[] = [];
  const asks = (p: Peer) => relays || p.link.path() !== 'relay';
  const view = [...peers]
    .filter((p) => p.ready && !p.noUpload && (asks(p) || p.supply.downloads.all.size))
    .sort((a, b) => (a.link.peer < b.link.peer ? -1 : 1))
    .map((p) => {
      for (const d of p.supply.downloads.all.values()) {
        behind += d.lane;
        requests.push({
          segment: d.segment,
          piece: d.piece,
          peer: p.link.peer,
          lane: d.lane,
          sent_us: d.sentUs,
          // What is being checked cannot stall, and a peer that gives way does not.
          progress_us: d.checking || d.lane ? 2 ** 52 : Math.max(d.sentUs, p.supply.dataUs),
        });
      }
      return {
        id: p.link.peer,
        role: p.link.role,
        rate: p.supply.meter.rate,
        rtt_us: p.supply.meter.rttUs,
        slots: p.maxRequests - p.supply.downloads.all.size,
        queued: p.supply.downloads.queued(),
        on_demand: p.onDemand,
        stalled_until_us: p.supply.stalledUntilUs,
        behind_until_us: p.lane ? p.supply.behindUs : 2 ** 52,
        holds: p.holdings.holds,
        heard: p.holdings.heard,
        // What is on its way is waited for, and no more.
        ...(!asks(p) && { slots: 0, on_demand: false, holds: {}, heard: {} }),
      };
    });
  return { peers: view, requests, behind };
};

export interface ViewHost {
  policy: Policy;
  /** What the site says: `relay-only` viewers meet by relays alone. */
  ahead?(): { role: string };
  /** Whether the schedule hears of a segment that no load waits for. */
  listed(s: Segment): boolean;
  /** Whether a list has its certificate. */
  packaged(s: Segment): boolean;
}

/** The engine as the schedule sees it. */
export const createView = (shared: Shared, { policy, ahead, listed, packaged }: ViewHost) => {
  const { nowUs, line, cache } = shared;
  const segments = shared.segments.byId;
  const peers = shared.peers.byId;
  /** Absolute playback time zero, µs: what a start time is added to for a deadline. */
  let playheadUs = 0;
  let live: boolean | undefined;

  const deadlineUs = (s: Segment): number => {
    let least = Number.POSITIVE_INFINITY;
    for (const l of s.loads) least = Math.min(least, l.request.deadlineMs() * 1000);
    return Math.floor(least < Number.POSITIVE_INFINITY ? nowUs() + least : playheadUs + s.ref.startMs * 1000);
  };
  /** Whether peers behind a relay are asked, each of whose bytes is paid for twice: where no other peer can serve. */
  const asksRelays = () =>
    ahead?.().role === 'relay-only' ||
    (line.fails() && ![...peers.values()].some((p) => p.ready && p.link.role === 'seed' && p.link.path() === 'direct'));
  const view = (s: Segment): WantedSegment => ({
    ...viewSegment(s, cache, deadlineUs(s), line),
    ...(!s.certificate && packaged(s) && { packaged: true }),
  });

  return {
    /** Whether what it asked for last is of a stream that goes on. */
    live: () => live,
    /** The player asks for a segment: it says where the playhead is. */
    asked(request: SegmentRequest): void {
      ({ live } = request);
      playheadUs = nowUs() + (request.deadlineMs() - request.startMs) * 1000;
    },
    /** Whether the playhead leaves the time to measure the line by a segment. */
    relaxed(s: Segment): boolean {
      const v = view(s);
      return !complete(cache.get(s.id)) && v.deadline_us - nowUs() >= urgentWindow(v, policy.urgent_permille);
    },
    /** `background`: something is fetched ahead. */
    input(
      background: boolean,
      rest: Omit<ScheduleInput, 'now_us' | 'live' | 'policy' | 'segments' | 'peers' | 'requests'>,
    ): ScheduleInput {
      const list = [...segments.values()].filter((s) => s.loads.size || listed(s) || s.uncertified);
      list.sort((a, b) => a.ref.startMs - b.ref.startMs || (a.id < b.id ? -1 : 1));
      const { behind, ...seen } = viewPeers(peers.values(), asksRelays());
      return {
        now_us: nowUs(),
        ...rest,
        live,
        policy: { ...policy, background, piece_cap: policy.piece_cap + behind },
        segments: list.map(view),
        ...seen,
      };
    },
  };
};
