/**
 * An engine's use of the disk. What the player asked for of a film is kept in idle moments. What it asks for, and what follows, is read back
 * into memory before peers are asked; it is announced from there, so a peer's request never reads the disk.
 */

import { complete } from '../cache/cache.ts';
import { type Certificate, checkPiece, completeCertificate, sameContent, withdraws } from '../certificate/index.ts';
import type { SegmentRequest } from '../ports.ts';
import { piecesOf } from '../segment/index.ts';
import type { AheadRules } from '../transfer/ahead.ts';
import type { Lists } from '../transfer/lists.ts';
import { createLimiter, type Segment, wanted } from '../transfer/segments.ts';
import { type Shared, sharing } from '../transfer/shared.ts';
import type { Verification } from '../transfer/verification.ts';
import { type KeptSegment, parseRecord, recordHead } from './record.ts';
import type { Store } from './store.ts';

export interface Disk {
  /** The player asks for a segment. Resolves when what is kept of it is in memory, or it is not to be waited for. */
  asked(s: Segment, request: SegmentRequest): Promise<unknown> | undefined;
  stop(): void;
}

export interface DiskHost {
  verification: Pick<Verification, 'judge' | 'revocations' | 'serverOffsetMs'>;
  lists: Pick<Lists, 'entry'>;
  /** What the site lets a page keep. */
  ahead?(): Pick<AheadRules, 'disk_bytes'>;
}

/** Nothing comes of it for an engine that has stopped. */
export type OpenDisk = (shared: Shared, host: DiskHost) => Disk | undefined;

/** So long a read is waited for; after one that took longer none is for a while, ms. */
const patienceMs = 100;
const restMs = 30_000;
/** Between two looks at what is to be written or deleted, ms. */
const lookMs = 2_000;
/** Segments behind the asked one that are read ahead of the player, and their bytes: half of the smallest cache. */
const mostNext = 8;
const mostNextBytes = 8 << 20;
/** Segments that wait to be written, and those that are written at one look. */
const mostWaiting = 64;
const mostWritten = 4;

export const createDisk = (store: Store, shared: Shared, { verification, lists, ahead }: DiskHost): Disk => {
  const { clock, crypto, stats, segments, cache, settled, changed } = shared;
  const { count } = stats;
  const most = () => ahead?.().disk_bytes || 0;
  const limited = createLimiter(8);
  const reads = new Map<string, Promise<void>>();
  /** What the player asked for, to be kept once it is complete. */
  const waiting = new Set<Segment>();
  let restUntil = 0;
  /** The last revocation that what is kept was held against; undefined while nothing is there, since the disk may come later. */
  let revoked: unknown;
  /** Counts what the player asked for: what follows an older request is not read any more. */
  let asks = 0;

  const refuse = (id: string) => {
    count('disk_bad');
    store.remove(id);
  };

  /** The certificate that what is kept is held against: the engine's own, a list's, or the one beside it, if it is valid still. */
  const certificateOf = async (s: Segment, { certificate }: KeptSegment): Promise<Certificate | undefined> => {
    if (s.certificate) return s.certificate;
    const short = lists.entry(s);
    const c = short ? await completeCertificate(short, certificate.length, certificate.digests, crypto) : certificate;
    if (!c) store.remove(s.id);
    // A certificate that no honest peer shows is a damaged file here.
    const valid = c && (await verification.judge({ drop: () => refuse(s.id) }, c.raw));
    return valid?.name === s.name ? valid : undefined;
  };

  const fill = async (s: Segment) => {
    const raw = await store.read(s.id);
    if (!raw) return;
    const kept = parseRecord(raw);
    if (!kept) return refuse(s.id);
    const c = await certificateOf(s, kept);
    if (!c) return;
    // Another version of the segment has taken its place.
    if (!sameContent(c, kept.certificate)) return store.remove(s.id);
    const pieces = piecesOf(kept.data);
    const right = await Promise.all(pieces.map((p, n) => limited(() => checkPiece(c, n, p, crypto))));
    if (!right.every(Boolean)) return refuse(s.id);
    // Much may have happened meanwhile. What a load waits for comes as it was decided.
    if (segments.byId.get(s.id) !== s || wanted(s) || !usable(s)) return;
    if ((s.certificate ?? c) !== c || withdraws(verification.revocations, c)) return;
    if (!s.certificate) Object.assign(s, { certificate: c, state: 'held', certHeldUs: shared.nowUs() });
    cache.open(s.id, c.length);
    for (const [n, piece] of pieces.entries()) if (cache.put(s.id, n, piece)) s.sources[n] = kept.sources[n]!;
    stats.add('disk_bytes', c.length);
    store.used(s.id);
    shared.peers.cancel(s);
    shared.peers.announce(s.id);
    changed();
  };

  /** Whether it may come from the disk. */
  const usable = (s: Segment) => {
    if (s.disputed || s.unshared) store.remove(s.id);
    const kept = store.find(s.id);
    if (!kept || s.state === 'refused' || !sharing(shared) || complete(cache.get(s.id))) return false;
    if (s.certificate || lists.entry(s)) return true;
    // One that has ended says nothing by itself. A newer one of a peer or a list may be for the same bytes.
    return kept.notAfter >= clock.now() + verification.serverOffsetMs;
  };

  const read = (s: Segment): Promise<void> | undefined => {
    const running = reads.get(s.id);
    if (running || wanted(s) || !usable(s)) return running;
    const reading = fill(s).finally(() => reads.delete(s.id));
    reads.set(s.id, reading);
    settled(reading);
    return reading;
  };

  /** Not for longer than it is worth. */
  const soon = (reading: Promise<void>) => {
    if (clock.now() < restUntil) return undefined;
    let late = 0;
    return Promise.race([
      reading.catch(() => {}),
      new Promise<void>((resolve) => {
        late = clock.setTimer(() => {
          count('disk_late');
          restUntil = clock.now() + restMs;
          resolve();
        }, patienceMs);
      }),
    ]).finally(() => clock.clearTimer(late));
  };

  /** What follows, one after the other: what is needed first is there first. */
  const readAhead = async ({ upcoming, rendition, bitrate }: SegmentRequest) => {
    const mine = ++asks;
    let left = mostNextBytes;
    for (const ref of upcoming.slice(0, mostNext)) {
      const s = await segments.resolve(ref, rendition, bitrate).catch(() => undefined);
      left -= store.find(s?.id ?? '')?.bytes ?? 0;
      if (mine !== asks || shared.stopped || left < 0) return;
      if (s) await read(s);
    }
  };

  const look = () => {
    timer = clock.setTimer(look, lookMs);
    const { revocations } = verification;
    const kept = store.entries();
    const last = kept.length ? revocations.at(-1) : undefined;
    if (last !== revoked) {
      revoked = last;
      for (const entry of kept) if (withdraws(revocations, entry)) store.remove(entry.id);
    }
    store.trim(most());
    settled(write());
  };

  /** Keeps some segments, while the player waits for none. */
  const write = async () => {
    let left = mostWritten;
    for (const s of waiting) {
      if (!left || !sharing(shared) || [...segments.byId.values()].some(wanted)) return;
      const { id, name, certificate: c, sources } = s;
      const held = cache.get(id);
      if (store.find(id) || s.unshared || s.disputed) waiting.delete(s);
      if (!waiting.has(s) || !c || !complete(held)) continue;
      waiting.delete(s);
      left--;
      const { site, keyId, issuedAt } = c;
      // One of a packager lives for a month. It counts with the list as that is by then.
      const notAfter = c.alg === 1 ? c.notAfter : 0;
      await store.write({ id, site, name, keyId, issuedAt, notAfter }, [recordHead(c, sources), held!.data], most());
      // It may have been withdrawn while it was being written.
      if (withdraws(verification.revocations, c)) store.remove(id);
    }
  };

  const release = store.use(count);
  let timer = clock.setTimer(look, lookMs);
  return {
    asked(s, request) {
      // Of a live stream nothing is played twice.
      if (!s.id || request.live !== false) return undefined;
      waiting.delete(s);
      waiting.add(s);
      const [oldest] = waiting;
      if (waiting.size > mostWaiting) waiting.delete(oldest!);
      const reading = read(s);
      settled(Promise.resolve(reading).then(() => readAhead(request)));
      return reading && soon(reading);
    },
    stop() {
      asks++;
      clock.clearTimer(timer);
      release();
    },
  };
};
