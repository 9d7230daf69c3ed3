import { encodeAck, type Stamp } from '../ledbat/ack.ts';
import { Acker } from '../ledbat/acker.ts';
import type { Source } from '../ledbat/receiver.ts';
import { Arrivals } from './arrivals.ts';
import type { Beats } from './beats.ts';
import { decodeBackground } from './message.ts';
import type { BackgroundLane, BackgroundLink } from './ports.ts';
import type { SendingLane } from './sender.ts';

/** What a download costs the uplink, bytes: half a packet of SCTP's acknowledgement for each packet, and what is around an ack of ours. */
const packetBytes = 1156;
const sackBytes = 47;
const ackAround = 100;

export interface LaneOptions {
  link: BackgroundLink;
  peer: string;
  sending: SendingLane;
  asked: Source;
  beats: Beats;
  now(): number;
  coarse(): boolean;
  /** Has the host look what may be sent, after this task. */
  kick(): void;
  /** Has it look after so many µs; Infinity: not for this. */
  later(us: number): void;
  /** So many bytes went out outside the controller. */
  beside(size: number): void;
  /** The lane closes. */
  ended(): void;
}

/** The background of one link, as the host has it. */
export interface Lane extends BackgroundLane {
  readonly peer: string;
  /** The least round trip of the path, µs; 0 while it is not measured. */
  base(): number;
  /** All that is here had come by then; says whether that was waited for. */
  cameBy(then: number): boolean;
  /** Acknowledges what is due; otherwise after how many µs it is. */
  answer(now: number): number;
}

/** What came with a message, until it is known when. */
interface Came {
  at: number;
  size: number;
  stamp: Stamp;
}

/** One link: sends, acknowledges, and counts what was asked for. */
export const createLane = (o: LaneOptions): Lane => {
  const { link, peer, sending, asked, beats, now, kick, later, beside } = o;
  const acker = new Acker();
  const arrivals = new Arrivals();
  let waiting: Came[] = [];

  /** Has the receiver hear of what came, as of when it came. */
  const take = (): boolean => {
    const list = waiting;
    const heardAt = now();
    waiting = [];
    for (const { at, size, stamp } of list) {
      const late = heardAt - at;
      asked.onData(heardAt, size, { ...stamp, sentAt: stamp.sentAt + late, echo: stamp.echo + late });
    }
    return list.length > 0;
  };

  const lane: Lane = {
    peer,
    base: () => (sending.path.measured ? sending.path.base : 0),
    wake() {
      if (sending.closed) return;
      sending.wake();
      kick();
    },
    ack(message) {
      const taken = sending.ack(now(), message);
      kick();
      return taken;
    },
    took(size) {
      beside(Math.ceil(size / packetBytes) * sackBytes);
    },
    data(message) {
      const { part, stamp } = decodeBackground(message, link.maxMessage);
      if (sending.closed) return undefined;
      const at = now();
      beats.want(at);
      const ours = sending.source.ours?.(part.request) ?? true;
      acker.foreground = !ours;
      acker.coarse = o.coarse();
      arrivals.found(at, stamp.sentAt);
      const fresh = acker.onData(at, message.length, stamp);
      if (fresh) waiting.push({ at, size: ours ? part.payload.length : 0, stamp });
      later(lane.answer(at));
      return fresh ? part : undefined;
    },
    cameBy(then) {
      for (const came of waiting) {
        came.at = arrivals.dated(came.at, came.stamp.sentAt, then);
        acker.cameBy(came.stamp.sequence, came.at);
      }
      return take();
    },
    answer(at) {
      if (!waiting.length || acker.coarse || !beats.overdue(at)) {
        take();
        const { due } = acker;
        if (due > at) return due - at;
        const ack = acker.make(at);
        if (ack) {
          const message = encodeAck(ack);
          link.sendAck(message);
          beside(message.length + ackAround);
        }
      }
      return Number.POSITIVE_INFINITY;
    },
    requested(size) {
      if (!sending.closed) asked.onRequest(now(), size);
    },
    gone(size) {
      if (!sending.closed) asked.onGone(size);
    },
    reset() {
      if (sending.closed) return;
      const at = now();
      sending.path.reset(at);
      asked.reset(at);
      kick(); // what it had in flight is room
    },
    close() {
      if (sending.closed) return;
      o.ended();
      sending.close();
      asked.close();
      kick(); // what it had in flight is room for others
    },
  };
  return lane;
};
