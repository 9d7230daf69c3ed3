/** One link's side of the peer protocol. */
import type { Background } from '../background/index.ts';
import type { Clock, LinkCloseReason, PeerLink } from '../ports.ts';
import { entriesOf, inMessages } from '../protocol/limits.ts';
import { flagParts } from '../protocol/parts.ts';
import {
  byeOverLimit,
  byeProtocolError,
  encode,
  flagBackground,
  flagNoUpload,
  flagOnDemand,
  laneBackground,
  type Message,
  negotiate,
} from '../protocol/peer.ts';
import type { Stats } from '../stats/stats.ts';
import { createAllowance } from './allowance.ts';
import { createAnnouncer } from './announcer.ts';
import { type Greeting, hello, ownMaxRequests } from './greeting.ts';
import { createHoldings } from './holdings.ts';
import { createInbox } from './inbox.ts';
import { createKeepalive } from './keepalive.ts';
import type { LowLatency } from './nodescript.ts';
import type { Peer } from './ports.ts';
import type { Silence } from './silence.ts';
import { createSupply } from './supply.ts';
import { createUploads, type UploadHost } from './uploads.ts';
import type { Verification } from './verification.ts';

/** What becomes of a peer. */
export interface PeerEvents {
  /** Its hello has come, and is one that this side can speak with. */
  ready(): void;
  sent(bytes: number, segment: string, lane: number): void;
  closed(peer: Peer, reason: LinkCloseReason, ban: boolean): void;
  /** Something happened that the schedule may act on. */
  changed(): void;
}

/** The parts of an engine that its peers use. */
export interface PeerHost {
  clock: Clock;
  self(): string;
  swarm: string;
  /** What paces the uploads of this host, if anything does. */
  background?(): Background;
  greeting: Pick<Greeting, 'announcement' | 'flags' | 'held'>;
  verification: Pick<Verification, 'piece' | 'asked' | 'certificate' | 'none'>;
  silence: Pick<Silence, 'drifted'>;
  stats: Pick<Stats, 'count' | 'wasted'>;
  uploads: Omit<UploadHost, 'reject' | 'nowUs' | 'sent'>;
  /** Parts of low-latency streams; left out: this side does not speak of them. */
  lowLatency?: Pick<LowLatency, 'heard' | 'pushed'>;
}

/** Sends hello at once, unless an answer has said it; `events.ready` when the other's has come. */
export const createPeer = (link: PeerLink, host: PeerHost, events: PeerEvents): Peer => {
  const { clock, greeting } = host;
  const nowUs = () => Math.floor(clock.now() * 1000);
  const allowance = createAllowance(() => clock.now());
  let open = true;

  const say = (bytes: Uint8Array) => {
    if (!open) return;
    keepalive.said();
    allowance.saidType(bytes[0]!);
    link.sendControl(bytes);
  };

  const send = (m: Message) => {
    if (!open) return;
    allowance.said(m.type, entriesOf(m));
    say(encode(m));
  };

  const end = (reason: LinkCloseReason, ban: boolean) => {
    if (!open) return;
    open = false;
    supply.end();
    announcer.stop();
    keepalive.stop();
    peer.lane?.close();
    events.closed(peer, reason, ban);
  };

  const own: Omit<Peer, 'supply' | 'overrun' | 'unasked'> = {
    link,
    ready: false,
    onDemand: false,
    noUpload: false,
    speaksParts: false,
    maxRequests: 0,
    holdings: createHoldings(),
    uploads: createUploads((m) => open && link.sendData(m), link.maxMessage, ownMaxRequests, {
      ...host.uploads,
      sent(bytes, segment, lane, pushed) {
        if (!pushed) allowance.served();
        peer.uploaded += bytes;
        events.sent(bytes, segment, lane);
      },
      nowUs,
      reject(reason, ids) {
        // What is no longer held is said first: a reject of what is still announced is taken for a lie.
        announcer.flush();
        peer.sendIds('reject', ids, reason);
      },
    }),
    uploaded: 0,
    watched: {
      came: false,
      owed: false,
      viewer: link.role === 'viewer',
      unheard: 0,
      since: clock.now(),
      namedUntil: 0,
    },
    send,
    say,
    ping: (n = 0) => send({ type: 'ping', nonce: n, sentAt: nowUs() % 2 ** 32 }),
    sendIds(type, ids, reason) {
      inMessages(ids, (part) => send({ type, reason, ids: part } as Message));
    },
    announce(segment, whole) {
      if (!peer.ready || !open) return;
      if (link.role !== 'seed') announcer.tell(segment);
      // Seeds ask no viewer. They count how long after its publication viewers have a segment.
      else if (whole) send({ type: 'have', entries: [greeting.announcement(segment)!] });
    },
    drop(reason, bye, ban = false) {
      if (!open) return;
      link.close(reason, bye);
      end(reason, ban);
    },
  };
  /** The same, with the parts that are made of it. */
  const peer = own as Peer;
  const announcer = createAnnouncer(clock, greeting.announcement, (entries) => send({ type: 'have', entries }));
  const keepalive = createKeepalive(clock, peer.ping, () => peer.drop('timeout', byeOverLimit));
  const supply = createSupply(peer, { ...host, changed: events.changed });

  const meet = (m: Message & { type: 'hello' }) => {
    if (peer.ready || m.peer !== link.peer || m.swarm !== host.swarm)
      return peer.drop('protocol-error', byeProtocolError);
    if (!negotiate({ minVersion: 1, maxVersion: 1 }, m)) return peer.drop('version', byeProtocolError);
    peer.ready = true;
    keepalive.meet();
    peer.onDemand = link.role === 'seed' && (m.flags & flagOnDemand) !== 0;
    peer.noUpload = (m.flags & flagNoUpload) !== 0;
    peer.maxRequests = m.maxRequests;
    peer.speaksParts = !!host.lowLatency && (m.flags & flagParts) !== 0;
    if (host.background && m.flags & flagBackground) pace(host.background);
    peer.ping();
    for (const segment of greeting.held()) announcer.add(segment);
    if (link.role !== 'seed') announcer.flush();
    events.ready();
  };

  const inbox = createInbox(peer, link, {
    ...host,
    allowance,
    supply,
    open: () => open,
    nowUs,
    heard() {
      peer.watched.came = true;
      supply.heard();
    },
    hello: meet,
    bye() {
      link.close('closed');
      end('closed', false);
    },
    changed: events.changed,
  });
  const { overrun, unasked } = inbox;
  Object.assign(peer, { supply, overrun, unasked });

  /** From here on the controller of the host says when what the peer asks for goes out. */
  const pace = (background: () => Background) => {
    const ours = (id: number) => supply.downloads.all.get(id)?.lane === laneBackground;
    const { source } = peer.uploads;
    const next = (n: number) => {
      const part = source.next(n);
      if (part) allowance.sentBehind();
      return part;
    };
    const lane = background().add(link, { ...source, next, ours }, link.peer);
    peer.lane = lane;
    link.onAck = (message) => inbox.acked(() => lane.ack(message));
    peer.uploads.pace(lane.wake);
  };

  const receive = (channel: 'control' | 'data') => (message: Uint8Array) => {
    keepalive.heard();
    inbox.receive(channel, message);
  };
  link.onControl = receive('control');
  link.onData = receive('data');
  link.onDrain = () => {
    peer.uploads.pump();
    inbox.drain();
  };
  link.onMoved = () => peer.lane?.reset();
  link.onClose = (reason) => end(reason, reason === 'protocol-error');
  if (link.greeted) {
    for (const segment of link.greeted) announcer.said(segment);
  } else send(hello(greeting.flags(), host.self(), host.swarm));
  return peer;
};
