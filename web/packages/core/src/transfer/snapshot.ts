import { type Cache, complete } from '../cache/cache.ts';
import type { PeerSnapshot, SegmentRef } from '../ports.ts';
import type { Peer } from './ports.ts';

export const snapshotPeer = (p: Peer): PeerSnapshot => ({
  peer: p.link.peer,
  role: p.link.role,
  path: p.link.path(),
  rate: p.supply.meter.rate,
  rttMs: p.supply.meter.rttUs / 1000,
  downloads: p.supply.downloads.all.size,
  uploads: p.uploads.size(),
  downloaded: p.supply.downloaded,
  uploaded: p.uploaded,
  segments: p.holdings.size(),
});

/** The spans of the timeline that the segments cover; sorted, merged. */
const mergeRanges = (refs: SegmentRef[]): { fromMs: number; toMs: number }[] => {
  const out: { fromMs: number; toMs: number }[] = [];
  for (const { startMs, durationMs } of refs.sort((a, b) => a.startMs - b.startMs)) {
    const last = out.at(-1);
    // Start times are rounded by playlists.
    if (last && startMs <= last.toMs + 100) last.toMs = Math.max(last.toMs, startMs + durationMs);
    else out.push({ fromMs: startMs, toMs: startMs + durationMs });
  }
  return out;
};

export const snapshotCache = (cache: Cache, ref: (id: string) => SegmentRef) => {
  const ids = [...cache.ids()];
  return {
    segments: ids.length,
    cacheBytes: cache.bytes(),
    ranges: mergeRanges(ids.filter((id) => complete(cache.get(id))).map(ref)),
  };
};
