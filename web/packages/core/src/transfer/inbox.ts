/** What the other side of a link says: decoded, held against its limits, and given to the part that it is for. */
import { backgroundType } from '../background/index.ts';
import type { PeerLink } from '../ports.ts';
import { entriesOf, type Limit, unsolicitedCost } from '../protocol/limits.ts';
import { isParts, pushed } from '../protocol/parts.ts';
import {
  byeOverLimit,
  byeProtocolError,
  decode,
  Malformed,
  type Message,
  maxUnknown,
  maxUnsolicited,
  noneBudget,
} from '../protocol/peer.ts';
import type { Stats } from '../stats/stats.ts';
import type { Allowance } from './allowance.ts';
import { createCertificateQueue } from './certqueue.ts';
import type { LowLatency } from './nodescript.ts';
import type { Peer } from './ports.ts';
import type { OwnSupply } from './supply.ts';
import type { Verification } from './verification.ts';

export interface InboxHost {
  /** What it may say. */
  allowance: Allowance;
  supply: OwnSupply;
  verification: Pick<Verification, 'asked' | 'certificate' | 'none'>;
  stats: Pick<Stats, 'count'>;
  lowLatency?: Pick<LowLatency, 'heard' | 'pushed'>;
  open(): boolean;
  nowUs(): number;
  /** Anything came. */
  heard(): void;
  /** The first message that counts. */
  hello(m: Message & { type: 'hello' }): void;
  /** It closed the link. */
  bye(): void;
  changed(): void;
}

/** What the other side's messages need to know of their link. */
export type InboxLink = Pick<PeerLink, 'role' | 'maxMessage' | 'controlRoom'>;

export const createInbox = (peer: Peer, link: InboxLink, host: InboxHost) => {
  const { allowance, supply, verification, stats, lowLatency, open, changed } = host;
  let unknown = 0;
  let unsolicited = 0;

  /** The other side says more than it may. */
  const overrun = (limit: Limit) => {
    stats.count(`over_limit_${limit}`);
    peer.drop('over-limit', byeOverLimit, true);
  };

  const asked = createCertificateQueue(
    () => open() && link.controlRoom(),
    (segment) => verification.asked(peer, [segment]),
    (segment) => peer.send({ type: 'certificate-none', segment, reason: noneBudget, objectLength: 0 }),
  );

  const control = (m: Message) => {
    const over = allowance.heard(m.type, entriesOf(m));
    if (over) return overrun(over);
    if (m.type === 'hello') return host.hello(m);
    if (!peer.ready) return stats.count('early');
    switch (m.type) {
      case 'have':
        if (link.role === 'viewer' && !peer.noUpload) peer.holdings.apply(m.entries, host.nowUs());
        return changed();
      case 'certificate-request':
        return asked.ask(m.segments);
      case 'certificate':
        return verification.certificate(peer, m.segment, m.certificate.slice());
      case 'certificate-none':
        return verification.none(peer, m.segment, m.reason, m.objectLength);
      case 'request':
        return peer.uploads.request(m.segment, m.lane, m.requests);
      case 'cancel':
        return peer.uploads.cancel(m.ids);
      case 'promote':
        return peer.uploads.promote(m.ids);
      case 'reject':
        return supply.rejected(m.reason, m.ids);
      case 'ping':
        return peer.send({ ...m, type: 'pong' });
      case 'pong':
        return supply.pong(m);
      case 'bye':
        return host.bye();
    }
  };

  const ofParts = (node: Pick<LowLatency, 'heard'>, bytes: Uint8Array) => {
    const over = allowance.heardType(bytes[0]!);
    if (over) return overrun(over);
    if (!peer.ready) return stats.count('early');
    if (peer.speaksParts) node.heard(peer, bytes);
  };

  const unasked = (bytes: number) => {
    unsolicited += unsolicitedCost(bytes);
    if (unsolicited > maxUnsolicited) overrun('data');
  };

  const data = (m: Parameters<OwnSupply['data']>[0], size: number) => {
    if (size > link.maxMessage) throw new Malformed('long');
    if (lowLatency && pushed(m.request) && lowLatency.pushed(peer, m)) return;
    const not = supply.data(m);
    if (not === 'crumbs') overrun('data');
    else if (not) unasked(m.payload.length);
  };

  const take = (channel: 'control' | 'data', bytes: Uint8Array) => {
    if (channel === 'data') peer.lane?.took(bytes.length);
    if (peer.lane && channel === 'data' && bytes[0] === backgroundType) {
      const part = peer.lane.data(bytes);
      if (part) data(part, bytes.length);
      // What came before comes again by no fault of the transport.
      else unasked(bytes.length);
      return;
    }
    if (lowLatency && channel === 'control' && isParts(bytes[0]!)) return ofParts(lowLatency, bytes);
    const m = decode(channel, bytes);
    if (!m) {
      stats.count('unknown_messages');
      if (++unknown > maxUnknown) peer.drop('over-limit', byeOverLimit, true);
    } else if (m.type === 'data') {
      if (!peer.ready) return;
      // What was asked for in the background has come, if not as it should have.
      if (supply.downloads.all.get(m.request)?.lane) peer.lane?.gone(m.payload.length);
      data(m, bytes.length);
    } else {
      control(m);
    }
  };

  return {
    receive(channel: 'control' | 'data', bytes: Uint8Array) {
      if (!open()) return;
      host.heard();
      try {
        take(channel, bytes);
      } catch (e) {
        if (!(e instanceof Malformed)) throw e;
        stats.count(`malformed_${e.reason}`);
        peer.drop('protocol-error', byeProtocolError, true);
      }
    },
    /** An ack of the background, which `lane` takes if it is one. */
    acked(take: () => boolean) {
      host.heard();
      if (!open()) return;
      const over = allowance.acked();
      if (over) return overrun(over);
      if (!take()) stats.count('malformed_acks');
    },
    overrun,
    unasked,
    /** The link has room again. */
    drain: asked.pump,
  };
};
