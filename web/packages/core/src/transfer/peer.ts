import { type Background, type BackgroundLink, backgroundType } from '../background/index.ts';
import type { LinkCloseReason, PeerLink } from '../ports.ts';
import { entriesOf, type Limit, unsolicitedCost } from '../protocol/limits.ts';
import {
  byeOverLimit,
  byePolicy,
  byeProtocolError,
  decode,
  encode,
  flagBackground,
  flagNoUpload,
  flagOnDemand,
  laneBackground,
  laneForeground,
  Malformed,
  type Message,
  maxUnknown,
  maxUnsolicited,
  negotiate,
  noneBudget,
  rejectLaneOff,
} from '../protocol/peer.ts';
import { createAllowance } from './allowance.ts';
import { createAnnouncer } from './announcer.ts';
import { createCertificateQueue } from './certqueue.ts';
import { createDownloads, type Download } from './downloads.ts';
import { createHoldings } from './holdings.ts';
import { createMeter } from './meter.ts';
import { createPatience, saysGone } from './patience.ts';
import type { Peer, PeerHost } from './ports.ts';
import { createUploads } from './uploads.ts';

export type { Peer, PeerHost } from './ports.ts';

export const ownMaxRequests = 256;
const pingMs = 5_000;
/** Ticks of pingMs without a message that end a link; without the hello. */
const silentTicks = 4;
const helloTicks = 2;
/** A byte is worth so many µs of waiting for the next: a peer that sends less than 5 kB/s stalls, however often it sends. */
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
  const may = createAllowance(() => clock.now());
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
    may.said(m.type, entriesOf(m));
    link.sendControl(encode(m));
  };

  const announcer = createAnnouncer(clock, host.announcement, (entries) => send({ type: 'have', entries }));

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
    announcer.stop();
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
      sent(bytes, segment) {
        may.served();
        host.sent(peer, bytes, segment);
      },
      nowUs,
      reject(reason, ids) {
        // What is no longer held is said first: a reject of what is still announced is taken for a lie.
        announcer.flush();
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
      return list;
    },
    outdone(match, length, durationMs) {
      const pause = patience.late(peer.cancel(match), length, durationMs * 1000, host.drifted());
      if (typeof pause === 'number') peer.stalledUntilUs = Math.max(peer.stalledUntilUs, pause && nowUs() + pause);
      // Not amid what the schedule has decided.
      else queueMicrotask(() => peer.drop(pause, byePolicy));
    },
    brought: () => patience.brought(),
    announce(segment) {
      // Seeds ask no viewer.
      if (!peer.ready || !open || link.role === 'seed') return;
      announcer.tell(segment);
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

  /** The other side says more than it may. */
  const overrun = (limit: Limit) => {
    host.count(`over_limit_${limit}`);
    peer.drop('over-limit', byeOverLimit, true);
  };

  const patience = createPatience(clock, link.role === 'seed', peer.ping);

  const onTick = () => {
    tick = clock.setTimer(onTick, pingMs);
    if (++quiet >= (peer.ready ? silentTicks : helloTicks)) return peer.drop('timeout', byeOverLimit);
    if (peer.ready && (quiet > 1 || !spoke)) peer.ping();
    spoke = false;
  };
  let tick = clock.setTimer(onTick, pingMs);

  /** From here on the controller of the host says when what the peer asks for goes out. */
  const pace = (background: () => Background) => {
    const ours = (id: number) => peer.downloads.all.get(id)?.lane === laneBackground;
    const { source } = peer.uploads;
    const next = (n: number) => {
      const part = source.next(n);
      if (part) may.sentBehind();
      return part;
    };
    const lane = background().add(link as BackgroundLink, { ...source, next, ours }, link.peer);
    peer.lane = lane;
    link.onAck = (message) => {
      heard();
      if (!open) return;
      const over = may.acked();
      if (over) return overrun(over);
      if (!lane.ack(message)) host.count('malformed_acks');
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
    for (const segment of host.held()) announcer.add(segment);
    if (link.role !== 'seed') announcer.flush();
    host.ready(peer);
  };

  const rejected = (reason: number, ids: number[]) => {
    let lie = false;
    const lanes = new Set(ids.map((id) => peer.downloads.all.get(id)?.lane));
    const urgent = !lanes.has(laneBackground) || lanes.has(laneForeground);
    const until = nowUs() + patience.rejected(reason, urgent);
    // A peer that gives way is not at fault.
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
    const over = may.heard(m.type, entriesOf(m));
    if (over) return overrun(over);
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
        return asked.ask(m.segments);
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

  const asked = createCertificateQueue(
    () => open && (link.controlRoom?.() ?? true),
    (segment) => host.certificateRequest(peer, [segment]),
    (segment) => send({ type: 'certificate-none', segment, reason: noneBudget, objectLength: 0 }),
  );

  const unasked = (bytes: number) => {
    unsolicited += unsolicitedCost(bytes);
    if (unsolicited > maxUnsolicited) overrun('data');
  };

  const idle = () => {
    if (!peer.downloads.queued()) peer.meter.idle();
  };

  const data = (m: Message & { type: 'data' }, size: number) => {
    if (size > link.maxMessage) throw new Malformed('long');
    const d = peer.downloads.data(m, clock.now());
    if (d === 'malformed') throw new Malformed('limit');
    if (d === 'crumbs') return overrun('data');
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
      return unasked(m.payload.length);
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
        // What came before comes again by no fault of the transport.
        else unasked(bytes.length);
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
  link.onDrain = () => {
    peer.uploads.pump();
    asked.pump();
  };
  link.onMoved = () => peer.lane?.reset();
  link.onClose = (reason) => end(reason, reason === 'protocol-error');
  if (link.greeted) {
    for (const segment of link.greeted) announcer.said(segment);
  } else send(hello(paced ? flags | flagBackground : flags, host.self(), host.swarm));
  return peer;
};
