/** What the other side of a link may say: the rates of spec/peer-protocol.md. */
import { type Bucket, type Limit, maxStrays, rates } from '../protocol/limits.ts';
import { typeEnd, typeSubscribe } from '../protocol/parts.ts';
import type { Message } from '../protocol/peer.ts';

export interface Allowance {
  /** This side says something that names n things. */
  said(type: Message['type'], n: number): void;
  /** This side says a message with this type byte. */
  saidType(type: number): void;
  /** A request of the other side has been sent whole: it was worth the asking. */
  served(): void;
  /** The other side says something that names n things: the limit that this is beyond, if it is. */
  heard(type: Message['type'], n: number): Limit | undefined;
  /** The other side says a message of parts with this type byte. */
  heardType(type: number): Limit | undefined;
  /** A data message of the background has gone out, which may be acknowledged. */
  sentBehind(): void;
  /** It has been. */
  acked(): Limit | undefined;
}

/** What there must have been a reason for: what gives it, and what takes it. */
type Reason = 'cancel' | 'promote' | 'reject' | 'certificate' | 'pong' | 'ack' | 'end';

export const createAllowance = (now: () => number): Allowance => {
  /** What is left of each bucket, in thousandths, and when, ms: both languages count alike. */
  const levels = new Map<Bucket, [level: number, at: number]>();
  const owed = new Map<Reason, number>();
  let strays = 0;

  const give = (reason: Reason, n: number) => owed.set(reason, (owed.get(reason) ?? 0) + n);

  /** What is beyond counts as stray. */
  const answer = (reason: Reason, n: number): Limit | undefined => {
    const left = (owed.get(reason) ?? 0) - n;
    owed.set(reason, Math.max(left, 0));
    strays -= Math.min(left, 0);
    return strays > maxStrays ? 'strays' : undefined;
  };

  const take = (bucket: Bucket, n: number): Limit | undefined => {
    const { burst, perSecond } = rates[bucket];
    const ms = Math.floor(now());
    let [level, at] = levels.get(bucket) ?? [1000 * burst, ms];
    if (ms > at) {
      level = Math.min(1000 * burst, level + (ms - at) * perSecond);
      at = ms;
    }
    level -= 1000 * n;
    levels.set(bucket, [level, at]);
    return level < 0 ? bucket : undefined;
  };

  return {
    said(type, n) {
      if (type === 'request') give('reject', n);
      else if (type === 'certificate-request') give('certificate', n);
      else if (type === 'ping') give('pong', 1);
    },
    saidType(type) {
      if (type === typeSubscribe) give('end', 1);
    },
    heardType(type) {
      return type === typeEnd ? answer('end', 1) : take('messages', 1);
    },
    served() {
      const level = levels.get('requests');
      if (level) level[0] = Math.min(1000 * rates.requests.burst, level[0] + 1000);
    },
    heard(type, n) {
      switch (type) {
        case 'have':
          return take('messages', 1) ?? take('have', n);
        case 'certificate-request':
          return take('messages', 1) ?? take('certificates', n);
        case 'ping':
          return take('messages', 1) ?? take('pings', 1);
        case 'promote':
          return take('messages', 1) ?? answer('promote', n);
        case 'request':
          give('cancel', n);
          give('promote', n);
          return take('requests', n);
        case 'cancel':
        case 'reject':
        case 'pong':
          return answer(type, n);
        case 'certificate':
        case 'certificate-none':
          return answer('certificate', 1);
      }
      return undefined;
    },
    sentBehind: () => give('ack', 1),
    acked: () => answer('ack', 1),
  };
};
