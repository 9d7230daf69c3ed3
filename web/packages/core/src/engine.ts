/** Peer delivery of one joined title: the schedule decides, this does. */

import { complete, createCache } from './cache/cache.ts';
import type { Disk } from './disk/disk.ts';
import type { EngineDeps } from './enginedeps.ts';
import type { Loading } from './playback.ts';
import type { Engine, ProgressFunction, Reason, SegmentRequest, SegmentResult } from './ports.ts';
import { byeLeaving } from './protocol/peer.ts';
import { decide } from './schedule/decide.ts';
import { defaultPolicy } from './schedule/input.ts';
import { pieceSize } from './segment/index.ts';
import { createPeerStats } from './stats/peers.ts';
import { createAgreement } from './transfer/agreement.ts';
import { createLookAhead } from './transfer/ahead.ts';
import type { Download } from './transfer/downloads.ts';
import { execute } from './transfer/execute.ts';
import { createFreshness } from './transfer/freshness.ts';
import { createGreeting } from './transfer/greeting.ts';
import { createLists, streamUrl } from './transfer/lists.ts';
import { createLoads } from './transfer/loads.ts';
import { createLowLatency } from './transfer/nodescript.ts';
import { createPartCertificates } from './transfer/partcerts.ts';
import { createParts } from './transfer/parts.ts';
import { createPeers } from './transfer/peers.ts';
import type { Peer } from './transfer/ports.ts';
import { createSegments, type Load, newSegment, type Segment, wanted } from './transfer/segments.ts';
import { createSeldom } from './transfer/seldom.ts';
import { type Shared, sharing } from './transfer/shared.ts';
import { createSilence } from './transfer/silence.ts';
import { createSlowCredit } from './transfer/slowcredit.ts';
import { snapshotCache, snapshotPeer } from './transfer/snapshot.ts';
import { createTurn } from './transfer/turn.ts';
import type { Unlisted } from './transfer/unlisted.ts';
import { createVerification } from './transfer/verification.ts';
import { createView } from './transfer/view.ts';

const defaultCacheBytes = 64 << 20;
const mostUncertifiedBytes = 32 << 20;

export const createEngine = (deps: EngineDeps): Engine => {
  const { clock, crypto, rules, line, stats, credit, emit, title = '', cacheBytes = defaultCacheBytes } = deps;
  const slowCredit = createSlowCredit(clock, credit);
  const policy = { ...defaultPolicy, ...deps.policy };
  const segments = createSegments(rules, crypto);
  const said = createPeerStats();
  /** Segments that are none of the site's. */
  const plain = new Set<Segment>();
  /** The engine's own judgment, which holds for as long as it lives. */
  let broken: Reason | null = null;
  let linking = false;
  let seedLinking = false;

  const nowUs = () => Math.floor(clock.now() * 1000);
  const cache = createCache(
    cacheBytes,
    (id) => wanted(segments.byId.get(id)!),
    (id) => {
      ahead.lost(segments.byId.get(id)!);
      announce(id);
    },
  );

  const turn = createTurn(clock, () => decideNow());
  const { changed } = turn;
  const linked = () => peers.all();
  const announce = (id: string) => peers.announce(id);

  const shared: Shared = {
    clock,
    crypto,
    stats,
    line,
    credit,
    segments,
    cache,
    peers: undefined!,
    off: null,
    stopped: false,
    nowUs,
    emit,
    settled(p) {
      p.catch(() => stats.count('errors'));
    },
    changed,
  };
  const { settled } = shared;

  /** Ends what goes on beside the player's requests: streams are left, and no list is loaded. */
  const rest = () => {
    lists.stop();
    lowLatency?.leave();
  };

  const turnOff = (reason: Reason) => {
    if (shared.off) return;
    shared.off = broken = reason;
    rest();
    emit('off', { reason });
    changed();
  };

  /** A piece passed: it is kept, told to peers, and with the last one the player has the segment. */
  const accepted = (s: Segment, n: number, data: Uint8Array, from: Peer | undefined, d?: Download) => {
    const c = s.certificate!;
    // It may have been forgotten while this was compared, and what is held is of what is known.
    if (segments.byId.get(s.id) !== s) return changed();
    if (from) {
      line.others(data.length);
      credit.prove();
    }
    cache.open(s.id, c.length);
    if (!cache.put(s.id, n, data)) {
      stats.add('duplicate_bytes', data.length);
      return changed();
    }
    if (d?.lane) ahead.came(s, n, data.length);
    s.sources[n] = from ? (from.link.role === 'seed' ? 'seed' : 'peer') : 'origin';
    if (from) {
      from.supply.brought();
      peers.received(from, data.length, s.id);
      if (from.link.role === 'seed')
        s.pieceReason ??= d?.reason === 'near' || d?.reason === 'background' ? 'no-holder' : 'urgent';
      peers.outdone(s, [n, n + 1]);
      for (const l of s.loads) l.onProgress(Math.min(cache.get(s.id)!.count * pieceSize, c.length), c.length);
    }
    const whole = complete(cache.get(s.id));
    peers.announce(s.id, whole && view.live());
    if (whole) loads.finish(s);
    changed();
  };

  const need = deps.loadSeldom && createSeldom(shared, deps.loadSeldom);
  let names: Unlisted | undefined;
  /** A seed does not know a segment: its name says why, perhaps. So does the title's. */
  const unlisted = (s?: Segment) =>
    need?.(({ createUnlisted }) => {
      names ??= createUnlisted(shared, deps);
      if (s) names.heard(s);
    });
  if (title.includes('?')) unlisted();

  const lists = createLists(shared, {
    counts: (c) => verification.counts(c),
    useful: () => deps.uploads() && verification.keys.some((k) => k.alg === 2),
    came: () => verification.listed(),
  });
  const verification = createVerification(shared, {
    lists,
    site: rules.config.name,
    agreement: deps.agreement ?? createAgreement(),
    accepted,
    large: (s, length) => parts.large(s, length),
    withdrawn(s) {
      ahead.lost(s);
      cache.drop(s.id);
      s.pieceReason = undefined;
      peers.cancel(s);
      announce(s.id);
    },
    turnOff,
    unlisted,
  });

  const loads = createLoads(shared, {
    fromOrigin: (s, data, part) => (part ? verification.origin(s, data, part) : parts.share(s, data)),
    played: (s) => ahead.played(s),
    lost: (s) => ahead.lost(s),
  });
  const parts = createParts(shared, {
    most: cacheBytes,
    loads,
    fromOrigin: verification.origin,
  });

  let disk: Disk | undefined;
  if (deps.ahead?.().disk_bytes) {
    const needDisk = createSeldom(shared, deps.loadDisk!);
    needDisk((open) => {
      disk = open(shared, { ...deps, verification, lists });
    });
  }

  const greeting = createGreeting({
    ...deps,
    cache,
    wanted: (id) => wanted(segments.byId.get(id)!),
    certificate: (id) => segments.byId.get(id)?.certificate?.raw,
  });

  const silence = createSilence({
    ...deps,
    linked,
    hurry(woke) {
      deps.hurry(woke);
      if (woke) return;
      // What the origin was asked from the network that is gone does not come; where it still is needed it is asked anew.
      for (const s of segments.byId.values()) loads.stopOrigin(s);
      changed();
    },
  });

  const capped = () => deps.ahead?.().upload_kbps;
  let cap = 0;
  const freshness = createFreshness(shared);
  const lowLatency =
    need &&
    createLowLatency(shared, {
      ...deps,
      need,
      capped,
      verification,
      certificates: createPartCertificates(shared, { verification }),
      freshness,
      hand: loads.hand,
      streamUrl,
    });
  const peers = createPeers(shared, {
    ...deps,
    said,
    greeting,
    verification,
    silence,
    lowLatency,
    serves: () => ahead.serves(),
    capped,
  });
  shared.peers = peers;

  const ahead = createLookAhead(shared, {
    rules: deps.background && deps.ahead,
    mayRequest: () => deps.background!().mayRequest(),
    dated: freshness.dated,
  });
  const view = createView(shared, {
    policy,
    ahead: deps.ahead,
    listed: ahead.listed,
    packaged: lists.packaged,
  });

  const decideNow = () => {
    const kbps = capped() ?? 0;
    if (kbps !== cap) {
      cap = kbps;
      deps.background?.().cap(kbps); // not without need: it starts a worker
    }
    const opening = linked().filter((p) => !p.ready);
    const leftMs = credit.leftMs();
    const input = view.input(ahead.look(), {
      self: deps.self(),
      credit_us: leftMs === undefined ? -1 : Math.floor(leftMs * 1000),
      slow_credit_us: Math.floor(slowCredit.leftMs() * 1000),
      linking: linking || opening.length > 0,
      seed_linking: seedLinking || opening.some((p) => p.link.role === 'seed'),
      off: shared.off,
    });
    const actions = decide(input);
    deps.record?.(input, actions);
    execute(shared, actions, input.now_us, { loads, ahead, wake: turn.wake });
    const asked = [...segments.byId.values()].filter(wanted);
    const waits = asked.some((s) => s.origin === 'idle');
    credit.waits(deps, waits);
    slowCredit.settle(waits, !asked.length);
    turn.ahead(ahead.againMs());
  };

  const begin = async (load: Load, isOver: () => boolean) => {
    const { request } = load;
    const { part, rendition, bitrate } = request;
    view.asked(request);
    let s = part ? undefined : await segments.resolve(request, rendition, bitrate).catch(() => undefined);
    if (!s) {
      // Not one of the site's segments, or a part that no peer has a share in: plain HTTP.
      s = newSegment('', '', request, rendition, bitrate);
      plain.add(s);
    }
    await disk?.asked(s, request);
    if (isOver()) return;
    for (const x of plain) if (x !== s && !wanted(x)) plain.delete(x);
    loads.ask(s, load);
    if (!s.id || shared.stopped) return loads.startOrigin(s, part ? (shared.off ?? 'no-holder') : 'policy');
    if (wanted(s) && request.adaptive && !shared.off && freshness.stale(request.bitrate, () => view.relaxed(s)))
      loads.startOrigin(s, 'policy', true);
    lists.asked(s, request);
    const long = s.object ? undefined : lists.long(s);
    if (long) await parts.large(s, long);
    parts.split(s);
    changed();
    const next = request.upcoming
      .slice(0, ahead.reach())
      .map((ref) => segments.resolve(ref, request.rendition, request.bitrate).catch(() => []));
    ahead.asked(request, (await Promise.all(next)).flat());
    segments.shed(mostUncertifiedBytes);
    segments.prune((x) => wanted(x) || ahead.follows(x) || !!cache.get(x.id) || !!x.disputed);
    changed();
  };

  const loadWhole = (request: SegmentRequest, onProgress: ProgressFunction): Loading => {
    let over = false;
    let entry!: Load;
    const result = new Promise<SegmentResult>((resolve, reject) => {
      const end =
        <T>(f: (v: T) => void) =>
        (v: T) => {
          over = true;
          f(v);
        };
      entry = { request, onProgress, resolve: end(resolve), reject: end(reject), startedMs: clock.now() };
      begin(entry, () => over).catch(end(reject));
    });
    return {
      result,
      abort() {
        if (over) return;
        entry.reject(new Error('aborted'));
        entry.stop?.();
        for (const s of [...segments.byId.values(), ...plain]) loads.release(s, entry);
        changed();
      },
    };
  };

  return {
    load(request, onProgress) {
      const plainly = () => loadWhole(request, onProgress);
      return lowLatency?.load(request, plainly) ?? plainly();
    },
    adopt(request, data) {
      if (request.part) return; // it is not a segment
      const take = async (s: Segment) => {
        lists.asked(s, request);
        if (sharing(shared) && !s.disputed && !complete(cache.get(s.id))) await parts.share(s, data);
        changed();
      };
      // What has no name on the site belongs to no segment.
      settled(segments.resolve(request, request.rendition, request.bitrate).then(take, () => {}));
    },
    addLink: peers.add,
    greeting: greeting.greeting,
    setLinking(any, seed) {
      linking = any;
      seedLinking = seed;
      changed();
    },
    setOff(reason) {
      shared.off = reason ?? broken;
      if (shared.off) rest();
      changed();
    },
    setKeys(keys) {
      verification.keys = keys;
      changed();
    },
    revoke: verification.revoke,
    setServerTime(offsetMs) {
      verification.serverOffsetMs = offsetMs;
    },
    capacity: line.estimate,
    takeStats(last) {
      if (last) ahead.loseAll();
      // Not without need: the background starts a worker.
      const pacing = linked().some((p) => p.lane) && deps.background?.().take();
      return { ...stats.take(), peers: said.take(), ...(pacing && { pacing }) };
    },
    snapshot: () => ({
      peers: linked().map(snapshotPeer),
      totals: stats.totals(),
      capacity: line.estimate(),
      linking,
      off: shared.off,
      counters: { ...stats.counters },
      ...snapshotCache(cache, (id) => segments.byId.get(id)!.ref),
    }),
    stop() {
      if (shared.stopped) return;
      shared.stopped = true;
      credit.waits(deps, false);
      turn.stop();
      silence.stop();
      rest();
      disk?.stop();
      // What the player waits for still comes, from the origin.
      for (const s of segments.byId.values()) if (wanted(s)) loads.startOrigin(s, 'policy');
      for (const p of linked()) p.drop('shutdown', byeLeaving);
      for (const id of [...cache.ids()]) cache.drop(id);
      deps.ended?.();
    },
  };
};
