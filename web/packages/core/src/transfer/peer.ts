import { type Background, type BackgroundLane, type BackgroundLink, backgroundType } from '../background/index.ts';
import type { Clock, LinkCloseReason, PeerLink } from '../ports.ts';
import {
  byeOverLimit,
  byePolicy,
  byeProtocolError,
  decode,
  encode,
  flagBackground,
  flagNoUpload,
  flagOnDemand,
  type HaveEntry,
  laneBackground,
  laneForeground,
  Malformed,
  type Message,
  maxUnknown,
  maxUnsolicited,
  negotiate,
  rejectLaneOff,
} from '../protocol/peer.ts';
import { createHoldings, type Holdings } from '../swarm/holdings.ts';
import { createDownloads, type Download, type Downloads } from './downloads.ts';
import { createMeter, type Meter } from './meter.ts';
import { createNews } from './news.ts';
import { createPatience, saysGone } from './patience.ts';
import type { Watched } from './silence.ts';
import { createUploads, type UploadHost, type Uploads } from './uploads.ts';

/** What a peer tells its engine. */
export interface PeerHost {
  clock: Clock;
  self(): string;
  swarm: string;
  uploads: Omit<UploadHost, 'reject' | 'nowUs' | 'sent'>;
  /** What paces the uploads of this host, if anything does. */
  background?(): Background;
  sent(peer: Peer, bytes: number, segment: string): void;
  /** What to announce of a segment; undefined: nothing is held, and it was not announced. */
  announcement(segment: string): HaveEntry | undefined;
  held(): Iterable<string>;
  ready(peer: Peer): void;
  closed(peer: Peer, reason: LinkCloseReason, ban: boolean): void;
  /** Nobody is to blame for silence. */
  drifted(): boolean;
  /** All bytes of a piece are in. */
  piece(peer: Peer, download: Download): void;
  certificateRequest(peer: Peer, segments: string[]): void;
  certificate(peer: Peer, segment: string, raw: Uint8Array): void;
  certificateNone(peer: Peer, segment: string, reason: number, objectLength: number): void;
  count(name: string, n?: number): void;
  wasted(bytes: number, lane: number): void;
  /** Something happened that the schedule may act on. */
  changed(): void;
}

export interface Peer {
  link: PeerLink;
  ready: boolean;
  onDemand: boolean;
  noUpload: boolean;
  /** Requests that it queues for us. */
  maxRequests: number;
  holdings: Holdings;
  downloads: Downloads;
  uploads: Uploads;
  /** The background of this link, both ways, where both sides have one. */
  lane?: BackgroundLane;
  meter: Meter;
  /** Up to when its data pay for its silence, µs. */
  dataUs: number;
  stalledUntilUs: number;
  /** Nothing is asked of it in the background before, and when data of that last came, µs. */
  behindUs: number;
  cameBehindUs: number;
  /** Verified bytes. */
  downloaded: number;
  uploaded: number;
  readonly watched: Watched;
  /** When its link opened, ms. */
  readonly since: number;
  /** Until when it counts that the tracker has named it, ms; and what offers another link to it. */
  namedUntil: number;
  again?: () => void;
  send(m: Message): void;
  ping(nonce?: number): void;
  /** A list of IDs in as many messages as it takes. */
  sendIds(type: 'cancel' | 'promote' | 'reject', ids: number[], reason?: number): void;
  /** Cancels those downloads that match and are not being checked. */
  cancel(match: (d: Download) => unknown): void;
  /** Announces what changed, at most every 50 ms. */
  announce(segment: string): void;
  /** Requests to it ran out of time: a pause, and later a ping whose answer shows that it could have sent. */
  stalled(nowUs: number): void;
  drop(reason: LinkCloseReason, bye: number, ban?: boolean): void;
}

export const ownMaxRequests = 256;
const pingMs = 5_000;
/** Ticks of pingMs without a message that end a link; without the hello. */
const silentTicks = 4;
const helloTicks = 2;
/** A byte is worth so many µs of waiting for the next: who sends less than 5 kB/s stalls, however often it sends. */
const byteUs = 183;

/** What this side says first on a link. */
export const hello = (flags: number, self: string, swarm: string): Message => ({
  type: 'hello',
  minVersion: 1,
  maxVersion: 1,
  flags,
  maxRequests: ownMaxRequests,
  peer: self,
  swarm,
});

/** One link's side of the peer protocol. Sends hello at once, unless an answer has said it; `host.ready` when the other's has come. */
export const createPeer = (link: PeerLink, flags: number, host: PeerHost): Peer => {
  const { clock } = host;
  const nowUs = () => Math.floor(clock.now() * 1000);
  const paced = link.waiting && host.background;
  let open = true;
  let unknown = 0;
  let unsolicited = 0;
  /** Ticks since the last message. Not time: what a sleeping or throttled page did not hear is no silence. */
  let quiet = 0;
  /** Something was sent since the last tick. */
  let spoke = false;

  const send = (m: Message) => {
    if (!open) return;
    spoke = true;
    link.sendControl(encode(m));
  };

  const news = createNews(clock, host.announcement, (entries) => send({ type: 'have', entries }));

  /** What came of it is for nothing, and the rest does not come. */
  const lose = (d: Download) => {
    host.wasted(d.received, d.lane);
    if (d.lane) peer.lane?.gone(d.length - d.received);
  };

  const end = (reason: LinkCloseReason, ban: boolean) => {
    if (!open) return;
    open = false;
    for (const d of [...peer.downloads.all.values()]) {
      if (!d.checking) lose(d);
      peer.downloads.remove(d);
    }
    news.stop();
    clock.clearTimer(tick);
    patience.stop();
    peer.lane?.close();
    host.closed(peer, reason, ban);
  };

  const peer: Peer = {
    link,
    ready: false,
    onDemand: false,
    noUpload: false,
    maxRequests: 0,
    holdings: createHoldings(),
    downloads: createDownloads(),
    uploads: createUploads((m) => open && link.sendData(m), link.maxMessage, ownMaxRequests, {
      ...host.uploads,
      sent: (bytes, segment) => host.sent(peer, bytes, segment),
      nowUs,
      reject(reason, ids) {
        // What is no longer held is said first: a reject of what is still announced is taken for a lie.
        news.flush();
        peer.sendIds('reject', ids, reason);
      },
    }),
    meter: createMeter(clock),
    dataUs: 0,
    stalledUntilUs: 0,
    behindUs: 0,
    cameBehindUs: 0,
    downloaded: 0,
    uploaded: 0,
    watched: { came: false, owed: false, viewer: link.role === 'viewer', unheard: 0 },
    since: clock.now(),
    namedUntil: 0,
    send,
    ping: (n = 0) => send({ type: 'ping', nonce: n, sentAt: nowUs() % 2 ** 32 }),
    sendIds(type, ids, reason) {
      for (let i = 0; i < ids.length; i += 255) send({ type, reason, ids: ids.slice(i, i + 255) } as Message);
    },
    cancel(match) {
      const list = [...peer.downloads.all.values()].filter((d) => !d.checking && match(d));
      for (const d of list) {
        peer.downloads.cancel(d, clock.now());
        lose(d);
      }
      idle();
      peer.sendIds(
        'cancel',
        list.map((d) => d.id),
      );
    },
    announce(segment) {
      // Seeds ask nobody.
      if (!peer.ready || !open || link.role === 'seed') return;
      news.tell(segment);
    },
    stalled(now) {
      const pause = patience.stalled(host.drifted());
      if (typeof pause === 'number') peer.stalledUntilUs = now + pause;
      else peer.drop(pause, byePolicy);
    },
    drop(reason, bye, ban = false) {
      if (!open) return;
      link.close(reason, bye);
      end(reason, ban);
    },
  };

  const patience = createPatience(clock, link.role === 'seed', peer.ping);

  const onTick = () => {
    tick = clock.setTimer(onTick, pingMs);
    if (++quiet >= (peer.ready ? silentTicks : helloTicks)) return peer.drop('timeout', byeOverLimit);
    if (peer.ready && (quiet > 1 || !spoke)) peer.ping();
    spoke = false;
  };
  let tick = clock.setTimer(onTick, pingMs);

  /** From here on the law of the host says when what the peer asks for goes out. */
  const pace = (background: () => Background) => {
    const ours = (id: number) => peer.downloads.all.get(id)?.lane === laneBackground;
    const lane = background().add(link as BackgroundLink, { ...peer.uploads.source, ours }, link.peer);
    peer.lane = lane;
    link.onAck = (message) => {
      heard();
      if (open && !lane.ack(message)) host.count('malformed_acks');
    };
    peer.uploads.pace(lane.wake.bind(lane));
  };

  const meet = (m: Message & { type: 'hello' }) => {
    if (m.peer !== link.peer || m.swarm !== host.swarm) return peer.drop('protocol-error', byeProtocolError);
    if (!negotiate({ minVersion: 1, maxVersion: 1 }, m)) return peer.drop('version', byeProtocolError);
    peer.ready = true;
    quiet = 0;
    peer.onDemand = link.role === 'seed' && (m.flags & flagOnDemand) !== 0;
    peer.noUpload = (m.flags & flagNoUpload) !== 0;
    peer.maxRequests = m.maxRequests;
    if (paced && m.flags & flagBackground) pace(paced);
    peer.ping();
    for (const segment of host.held()) news.add(segment);
    if (link.role !== 'seed') news.flush();
    host.ready(peer);
  };

  const rejected = (reason: number, ids: number[]) => {
    let lie = false;
    const lanes = new Set(ids.map((id) => peer.downloads.all.get(id)?.lane));
    const urgent = !lanes.has(laneBackground) || lanes.has(laneForeground);
    const until = nowUs() + patience.rejected(reason, urgent);
    // Who gives way is not at fault.
    if (lanes.has(laneBackground)) peer.behindUs = reason === rejectLaneOff ? Number.MAX_SAFE_INTEGER : until;
    if (urgent) peer.stalledUntilUs = Math.max(peer.stalledUntilUs, until);
    for (const id of ids) {
      const d = peer.downloads.all.get(id);
      if (!d || d.checking) continue;
      host.count(`rejected_${reason}`);
      lose(d);
      peer.downloads.remove(d);
      // It would have said first that the piece is gone. Anything else may pass.
      if (saysGone(reason) && peer.holdings.remove(d.segment, d.piece)) lie = true;
    }
    idle();
    if (lie) peer.drop('false-have', byePolicy, true);
    host.changed();
  };

  const control = (m: Message) => {
    // Data bring those with them, however many.
    if (m.type !== 'request' && m.type !== 'cancel' && patience.chatter())
      return peer.drop('over-limit', byeOverLimit, true);
    if (m.type === 'hello') {
      if (peer.ready) return peer.drop('protocol-error', byeProtocolError);
      return meet(m);
    }
    if (!peer.ready) return host.count('early');
    switch (m.type) {
      case 'have':
        if (link.role === 'viewer' && !peer.noUpload) peer.holdings.apply(m.entries, nowUs());
        return host.changed();
      case 'certificate-request':
        return host.certificateRequest(peer, m.segments);
      case 'certificate':
        return host.certificate(peer, m.segment, m.certificate.slice());
      case 'certificate-none':
        return host.certificateNone(peer, m.segment, m.reason, m.objectLength);
      case 'request':
        return peer.uploads.request(m.segment, m.lane, m.requests);
      case 'cancel':
        return peer.uploads.cancel(m.ids);
      case 'promote':
        return peer.uploads.promote(m.ids);
      case 'reject':
        return rejected(m.reason, m.ids);
      case 'ping':
        return send({ ...m, type: 'pong' });
      case 'pong': {
        const took = (nowUs() - m.sentAt) >>> 0;
        if (patience.pong(m.nonce, took)) return peer.drop('stalled', byePolicy);
        return peer.meter.roundTrip(took);
      }
      case 'bye':
        link.close('closed');
        return end('closed', false);
    }
  };

  const idle = () => {
    if (!peer.downloads.queued()) peer.meter.idle();
  };

  const data = (m: Message & { type: 'data' }, size: number) => {
    if (size > link.maxMessage) throw new Malformed('long');
    const d = peer.downloads.data(m, clock.now());
    if (d === 'malformed') throw new Malformed('limit');
    const late = d === 'canceled' || d === 'taken back';
    if (d !== 'unsolicited') {
      patience.data(m.payload.length);
      const from = Math.max(peer.dataUs, late ? 0 : d.sentUs);
      peer.dataUs = Math.min(nowUs(), from + m.payload.length * byteUs);
    }
    if (late) {
      host.count('canceled_messages');
      return host.wasted(m.payload.length, d === 'canceled' ? 0 : 1);
    }
    if (d === 'unsolicited') {
      host.count('unsolicited_messages');
      unsolicited += m.payload.length;
      return unsolicited > maxUnsolicited && peer.drop('over-limit', byeOverLimit, true);
    }
    if (d.lane) peer.cameBehindUs = nowUs();
    else {
      peer.meter.arrived(m.payload.length, nowUs() - d.sentUs);
      idle();
    }
    if (d.checking) host.piece(peer, d);
  };

  const heard = () => {
    peer.watched.came = true;
    patience.heard();
  };

  const receive = (channel: 'control' | 'data', bytes: Uint8Array) => {
    if (!open) return;
    heard();
    if (peer.ready) quiet = 0;
    try {
      if (channel === 'data') peer.lane?.took(bytes.length);
      if (peer.lane && channel === 'data' && bytes[0] === backgroundType) {
        const part = peer.lane.data(bytes);
        if (part) data(part, bytes.length);
        return;
      }
      const m = decode(channel, bytes);
      if (!m) {
        host.count('unknown_messages');
        if (++unknown > maxUnknown) peer.drop('over-limit', byeOverLimit, true);
      } else if (m.type === 'data') {
        if (peer.ready) data(m, bytes.length);
      } else {
        control(m);
      }
    } catch (e) {
      if (!(e instanceof Malformed)) throw e;
      host.count(`malformed_${e.reason}`);
      peer.drop('protocol-error', byeProtocolError, true);
    }
  };

  link.onControl = (m) => receive('control', m);
  link.onData = (m) => receive('data', m);
  link.onDrain = () => peer.uploads.pump();
  link.onMoved = () => peer.lane?.reset();
  link.onClose = (reason) => end(reason, reason === 'protocol-error');
  if (link.greeted) {
    for (const segment of link.greeted) news.said(segment);
  } else send(hello(paced ? flags | flagBackground : flags, host.self(), host.swarm));
  return peer;
};
