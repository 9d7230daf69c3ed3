/** What is fetched before the player asks for it: spec/schedule.md, "Prefetch". */
import { complete } from '../cache/cache.ts';
import type { SegmentRequest } from '../ports.ts';
import { type Ahead, mostAhead, possible, prefetch } from '../schedule/prefetch.ts';
import { pieceCount, pieceLength } from '../segment/index.ts';
import { type Segment, wanted } from './segments.ts';
import type { Shared } from './shared.ts';

/** What the site and the viewer's device say of it, how much the site lets a viewer send, kbit/s (0: any), and what it may keep. */
export type AheadRules = Pick<Ahead, 'allowed' | 'waste_bytes' | 'role' | 'battery'> & {
  upload_kbps?: number | undefined;
  /** Bytes that the site lets it keep on its disk; 0, or false for the page's sake: none. */
  disk_bytes?: number | false | undefined;
};

export interface LookAheadHost {
  /** Left out: nothing is fetched ahead. */
  rules?(): AheadRules;
  /** Whether the controller allows another request; otherwise after how many ms to ask again. */
  mayRequest(): true | number;
  /** Whether the estimate of the line is too old to choose renditions by. */
  dated(bitrate: number): boolean;
}

export interface LookAhead {
  /** Whether others are served in the background: whatever this viewer plays, or before it plays anything. */
  serves(): boolean;
  /** How many of the segments behind the asked one are of interest. */
  reach(): number;
  /** The player asked for a segment, and these follow. */
  asked(request: SegmentRequest, next: Segment[]): void;
  /** Whether a segment, or one that it is a part of, follows what was asked for. */
  follows(s: Segment): boolean;
  /** Whether the schedule hears of a segment that no load waits for. */
  listed(s: Segment): boolean;
  /** Decides how far ahead is fetched, and takes back and counts what is not to be fetched or played any more. */
  look(): boolean;
  /** Whether another piece may be asked for in the background now. */
  mayAsk(): boolean;
  /** When, in ms, what could not be asked for since the last look may be. */
  againMs(): number;
  /** A piece came that was asked for in the background. */
  came(s: Segment, n: number, size: number): void;
  /** What came ahead of a segment is the player's. */
  played(s: Segment): void;
  /** It belongs to no load. */
  lost(s: Segment): void;
  /** The viewer leaves. */
  loseAll(): void;
}

/** Segments behind the asked one whose certificates are asked for in any case. */
const nearest = 4;
/** Requests of the background at a time. */
const mostBehind = 64;
/** A peer that sends nothing in the background for so long is not waited for. */
const quietUs = 30_000_000;

export const createLookAhead = (shared: Shared, host: LookAheadHost): LookAhead => {
  const { stats, cache, nowUs } = shared;
  const segments = shared.segments.byId;
  const peers = shared.peers.byId;
  /** What follows, by track. */
  const coming = new Map<string | undefined, Segment[]>();
  /** With pieces that came ahead. */
  const kept = new Set<Segment>();
  let list: Segment[] = [];
  let last: SegmentRequest | undefined;
  let running = false;
  let was = false;
  let outstanding = 0;
  let againMs = 0;

  const rules = (live = last?.live !== false) => ({ off: !!shared.off, live, ...host.rules!() });
  /** Whether anything may be asked for before the player does. */
  const may = (live?: boolean) => !!host.rules && possible(rules(live));
  const among = (s: Segment, most: number) =>
    [...coming.values()].some((all) => all.slice(0, most).some((x) => x === s || x.parts?.includes(s)));

  /** What the player has ahead of the playhead, ms: up to what it waits for, or to the end of what it asked for last. */
  const buffered = (): number => {
    let least = last ? last.deadlineMs() + last.durationMs : 0;
    for (const s of segments.values()) for (const l of s.loads) least = Math.min(least, l.request.deadlineMs());
    return least;
  };

  /** What would be lost of a segment that is fetched ahead, bytes. */
  const costs = ({ id, certificate, bitrate, ref, ahead }: Segment): number => {
    if (!certificate) return Math.floor((bitrate * ref.durationMs) / 8000);
    let left = certificate.length;
    for (let n = pieceCount(left); n--; )
      if (cache.has(id, n) && !ahead?.[n]) left -= pieceLength(certificate.length, n);
    return left;
  };

  const announced = ({ id }: Segment) =>
    [...peers.values()].some((p) => p.ready && !p.noUpload && p.link.role === 'viewer' && p.holdings.holds[id]);

  const takeBack = (next: Segment[]) => {
    const now = nowUs();
    for (const { supply } of peers.values())
      supply.cancel((d) => {
        const s = segments.get(d.segment);
        const quiet = d.lane && Math.max(d.sentUs, supply.cameBehindUs) < now - quietUs;
        // Another holder is asked, if there is one.
        if (quiet) supply.behindUs = Math.max(supply.behindUs, now + quietUs);
        return quiet || (d.lane && (!s || (!wanted(s) && !next.includes(s))));
      });
  };

  const played = (s: Segment) => {
    kept.delete(s);
    s.ahead = undefined;
  };
  const lost = (s: Segment) => {
    for (const size of s.ahead ?? []) if (size) stats.wasted(size, 1);
    played(s);
  };

  return {
    serves: () => may(false),
    reach: () => (may() ? mostAhead : nearest),
    asked(request, next) {
      // An init segment says nothing of what follows.
      if (!request.durationMs) return;
      last = request;
      coming.set(request.track, next);
    },
    follows: (s) => among(s, mostAhead),
    listed: (s) => list.includes(s) || (among(s, nearest) && (!running || s.state !== 'held')),
    look() {
      const is = may();
      againMs = Number.POSITIVE_INFINITY;
      if (!is && !was && !kept.size) return false; // where it is off, and every decision
      was = is;
      const next = [...coming.values()].flat().filter((s) => !wanted(s));
      next.sort((a, b) => a.ref.startMs - b.ref.startMs);
      const { bytes, prefetch_wasted_bytes: wasted } = stats.total;
      const n = prefetch({
        ...rules(),
        buffered_us: Math.floor(buffered() * 1000),
        received: Object.values(bytes).reduce((a, b) => a + b),
        wasted,
        segments: next.map((s) => ({ duration_us: Math.round(s.ref.durationMs * 1000), bytes: costs(s) })),
      });
      running = n > 0;
      list = [];
      let lacking = 0;
      let left = last?.adaptive && host.dated(last.bitrate);
      for (const s of next.slice(0, n)) {
        const held = cache.get(s.id);
        // For the player to ask for, and to measure the line by.
        if (left && !held?.count) {
          left = false;
          continue;
        }
        if (lacking >= mostBehind || !(held?.count || among(s, nearest) || announced(s))) continue;
        list.push(s);
        if (s.certificate && !complete(held)) lacking += pieceCount(s.certificate.length) - (held?.count ?? 0);
      }
      takeBack(is ? next : []);
      const positionMs = last ? last.startMs - last.deadlineMs() : 0;
      for (const s of kept) if (!wanted(s) && s.ref.startMs + s.ref.durationMs <= positionMs) lost(s);
      outstanding = 0;
      for (const p of peers.values())
        for (const d of p.supply.downloads.all.values()) if (d.lane && !d.checking) outstanding++;
      return running;
    },
    mayAsk() {
      if (outstanding >= mostBehind) return false;
      const now = host.mayRequest();
      if (now !== true) againMs = Math.min(againMs, now);
      else outstanding++;
      return now === true;
    },
    againMs: () => againMs,
    came(s, n, size) {
      stats.add('prefetched_bytes', size);
      if (wanted(s)) return;
      s.ahead ??= [];
      s.ahead[n] = size;
      kept.add(s);
    },
    played,
    lost,
    loseAll() {
      for (const s of kept) lost(s);
      takeBack([]);
    },
  };
};
