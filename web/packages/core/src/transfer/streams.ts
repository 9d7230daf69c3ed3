/**
 * A viewer's part in low-latency streams: what parts/ says is done here, to links, to the origin and to the player. It is in a script
 * of its own, which `nodescript.ts` has come.
 */

import { sameBytes } from '../certificate/index.ts';
import { maxChildren } from '../mesh/place.ts';
import type { Act, Check, Verify } from '../parts/act.ts';
import { judged } from '../parts/arrive.ts';
import { Node } from '../parts/parts.ts';
import type { Loading } from '../playback.ts';
import type { SegmentRequest } from '../ports.ts';
import { decodeParts, encodeParts, stripes } from '../protocol/parts.ts';
import { byeBadPiece, byeProtocolError, type DataMessage } from '../protocol/peer.ts';
import { createChunkLoads } from './chunkload.ts';
import type { Beside, PartCertificates } from './partcerts.ts';
import { createPartLoads, type Followed, type PartLoadsHost } from './partload.ts';
import type { Peer } from './ports.ts';
import type { Shared } from './shared.ts';
import type { Verification } from './verification.ts';

export interface StreamsHost {
  /** Own peer ID, hex. */
  self(): string;
  /** Whether this viewer sends to others. */
  uploads(): boolean;
  /** What the site lets it send, kbit/s; 0 or undefined: any. */
  capped(): number | undefined;
  verification: Pick<Verification, 'judge' | 'agrees' | 'serverOffsetMs'>;
  certificates: PartCertificates;
  freshness: PartLoadsHost['freshness'];
  hand: PartLoadsHost['hand'];
  streamUrl: PartLoadsHost['streamUrl'];
}

export interface Streams {
  /** Loads a part, or a segment that may still be made: that as any other, where peers can have no share in it yet. */
  load(request: SegmentRequest, instead: () => Loading): Loading;
  /** A peer that speaks of parts is ready, */
  linked(peer: Peer): void;
  /** or gone. */
  gone(peer: Peer): void;
  heard(peer: Peer, message: Uint8Array): void;
  /** Data of a pushed piece came. */
  pushed(peer: Peer, m: DataMessage): void;
  /** Leaves the stream of a track. What the player waits for comes from the origin. */
  leave(track: string | undefined): void;
  leaveAll(): void;
}

export type CreateStreams = (shared: Shared, host: StreamsHost) => Streams;

/** Turns of which the origin sent something else that are remembered. */
const mostKnown = 64;

export const createStreams: CreateStreams = (shared, host) => {
  const { clock, crypto, stats, line, segments, nowUs, settled } = shared;
  const { verification, certificates } = host;
  const node = new Node(host.self());
  const tracks = new Map<string | undefined, Followed>();
  let acting = false;
  let timer = 0;
  let had = { ...node.counts };

  const of = (id: string) => [...tracks.values()].find((f) => f.id === id);
  const peerOf = (id: string) => shared.peers.byId.get(id);

  /** Calls the node, and does what it asks for then. */
  const during = (what: (nowUs: number) => void) => {
    what(nowUs());
    if (acting) return;
    acting = true;
    try {
      for (let acts = node.take(); acts.length; acts = node.take()) for (const a of acts) act(a);
    } finally {
      acting = false;
    }
    count();
    wake();
  };

  /** What the node has thrown away. */
  const count = () => {
    const { shed, dropped } = node.counts;
    stats.add('wasted_bytes', dropped - had.dropped);
    if (shed > had.shed) stats.count('parts_shed_bytes', shed - had.shed);
    had = { shed, dropped };
  };

  /** Has the node look again when something is due. */
  const wake = () => {
    const now = nowUs();
    // The player is paused, plays what is long past, or has no newer playlist.
    for (const f of tracks.values()) if (now >= f.stream.idle) leave(f.track);
    clock.clearTimer(timer);
    if (!tracks.size || shared.stopped) return;
    timer = clock.setTimer(() => during((at) => node.tick(at)), Math.max((node.next(now) - now) / 1000, 1));
  };

  const act = (a: Act): void => {
    if (a.do === 'say') peerOf(a.to)?.say(encodeParts(a.message));
    else if (a.do === 'push')
      peerOf(a.to)?.uploads.push(a.request, a.segment, a.data, () => during((at) => node.sent(at, a.to)));
    else if (a.do === 'verify') settled(judge(a));
    else if (a.do === 'check') check(a);
    else if (a.do === 'blame') blame(a);
    else if (a.do === 'give-up') certificates.late(of(a.stream));
    else serve(a);
  };

  /** The part that the player waits for is here, or is to be fetched, or its certificate is. */
  const serve = (a: Act & { do: 'fetch' | 'ready' | 'certificate' }) => {
    const f = of(a.stream);
    const l = f?.load?.turn === a.turn ? f.load : undefined;
    if (a.do === 'fetch') l?.fetch(a.runs);
    else if (a.do === 'ready') l && settled(l.ready());
    else {
      const of = (a.of as Beside | undefined) ?? l;
      if (f && of) certificates.load(f, of, (content) => during((now) => node.loaded(now, a.stream, a.turn, content)));
    }
  };

  const blame = ({ from, why, bytes }: Act & { do: 'blame' }): void => {
    const peer = peerOf(from);
    if (why === 'bad-piece') {
      stats.add('rejected_bytes', bytes);
      peer?.drop(why, byeBadPiece, true);
    } else if (why === 'malformed') peer?.drop('protocol-error', byeProtocolError, true);
    else if (why === 'unsolicited') peer?.unasked(bytes);
    else peer?.overrun(why === 'crumbs' ? 'data' : 'messages');
  };

  /** Verifies a certificate that a peer told. */
  const judge = async (a: Verify) => {
    // Others may have told the same as one that is gone.
    const c = await verification.judge(peerOf(a.from), a.raw);
    const content = c && { ...c, segment: await segments.idOf(c.name) };
    during((now) => judged(node, now, a, content));
  };

  /** Compares the digest of a piece. */
  const check = (a: Check) => {
    const f = of(a.stream);
    const compared = async () => {
      const ok = sameBytes(await crypto.digest(a.data), a.digest);
      if (a.from === undefined) contradicts(a, ok);
      else brought(a, a.from, ok);
      during((now) => node.checked(now, a, ok));
    };
    const checking = compared();
    // To no value: that of all of them would have that of the one before in it, and so on.
    if (f && a.from === undefined) f.checking = f.checking.then(() => checking).catch(() => {});
    settled(checking);
  };

  /** The origin sent what was signed, or something else: once for each part. */
  const contradicts = ({ stream, turn, piece, of: { content } }: Check, ok: boolean) => {
    const f = of(stream);
    if (!f || (ok ? piece : f.differs.has(turn))) return;
    if (!ok) {
      if (f.differs.size > mostKnown) f.differs.clear();
      f.differs.add(turn);
    }
    verification.agrees(ok, f.load?.turn === turn ? f.load.request.url : f.url, content!.segment);
  };

  /** A piece of a peer came. */
  const brought = ({ piece, data, of: { content, pieces } }: Check, from: string, ok: boolean) => {
    const size = data.length;
    if (!ok) return stats.add('rejected_bytes', size);
    const peer = peerOf(from);
    if (!peer) return;
    line.others(size);
    shared.peers.received(peer, size, content!.segment);
    pieces[piece]!.source = peer.link.role === 'seed' ? 'seed' : 'peer';
  };

  /** The site may bound what a viewer sends; a child takes a stripe. */
  const slotsFor = ({ bitrate }: SegmentRequest) => {
    const kbps = host.capped();
    if (!host.uploads()) return 0;
    return kbps ? Math.min(maxChildren, Math.floor((kbps * 1000 * stripes) / (bitrate || 1))) : maxChildren;
  };

  const leave = (track: string | undefined) => {
    const f = tracks.get(track);
    if (!f) return;
    tracks.delete(track);
    certificates.giveUp(f);
    f.load?.fetch();
    during((now) => node.unfollow(now, f.id));
  };

  const loading: PartLoadsHost = {
    ...host,
    packaged: certificates.wanted,
    serverMs: () => clock.now() + verification.serverOffsetMs,
    async idOf(ref) {
      try {
        return await segments.idOf(segments.nameOf(ref));
      } catch {
        return undefined;
      }
    },
    follow(request, url, id, part) {
      const { track } = request;
      const slots = slotsFor(request);
      // Another track may play the same: an audio variant whose playlist is that of the sound of others.
      const was = of(id);
      if (tracks.get(track) !== was) leave(track);
      if (was?.slots === slots) return was;
      if (was) leave(was.track);
      let f!: Followed;
      during((now) => {
        const stream = node.follow(now, id, { slots, part, whole: !!request.growing });
        f = {
          track,
          url,
          id,
          slots,
          stream,
          lost: 0,
          differs: new Set(),
          checking: Promise.resolve(),
        };
        tracks.set(track, f);
      });
      return f;
    },
    within(f, what) {
      if (tracks.get(f.track) === f) during((now) => what(f.stream, now));
    },
  };
  const parts = createPartLoads(shared, loading);
  const chunks = createChunkLoads(shared, loading);

  return {
    load: (request, instead) => (request.growing ? chunks.load(request, instead) : parts.load(request)),
    linked: ({ link }) => during(() => node.linked(link.peer, link.role === 'seed')),
    gone: ({ link }) => during((now) => node.gone(now, link.peer)),
    heard(peer, message) {
      const m = decodeParts(message);
      if (typeof m === 'string') {
        stats.count(`malformed_${m}`);
        return peer.drop('protocol-error', byeProtocolError, true);
      }
      if (m?.type === 'part') m.certificate = m.certificate.slice();
      if (m) during((now) => node.heard(now, peer.link.peer, m));
    },
    pushed: ({ link }, m) => during((now) => node.data(now, link.peer, m)),
    leave,
    leaveAll() {
      for (const track of tracks.keys()) leave(track);
    },
  };
};
