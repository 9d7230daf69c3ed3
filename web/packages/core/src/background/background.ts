import { encodeAck, type Stamp } from '../ledbat/ack.ts';
import { Acker } from '../ledbat/acker.ts';
import { Receiver, type Source } from '../ledbat/receiver.ts';
import type { Clock } from '../ports.ts';
import type { DataMessage } from '../protocol/peer.ts';
import { Arrivals } from './arrivals.ts';
import { Beats } from './beats.ts';
import { decodeBackground } from './message.ts';
import type { Alarm, Background, BackgroundLane, BackgroundLink } from './ports.ts';
import { Sender, type SendingLane } from './sender.ts';
import type { Tabs, TabsOptions } from './tabs.ts';

export interface BackgroundOptions {
  clock: Clock;
  /** Makes the alarm that calls f, and heard with each beat. */
  alarm(f: () => void, heard: (ms?: number) => void): Alarm;
  /** The sending side; without it one as the specification has it. */
  sender?: Sender;
  /** Other tabs of the browser; undefined: none are known. */
  tabs?(o: Omit<TabsOptions, 'port'>): Tabs | undefined;
  /** Runs f when the task that runs now is over: what it says of the foreground comes first. */
  soon?(f: () => void): void;
}

/** What a download costs the uplink, bytes: half a packet of SCTP's acknowledgement for each packet, and what is around an ack of ours. */
const packetBytes = 1156;
const sackBytes = 47;
const ackAround = 100;

const afterTask = (f: () => void): void => {
  void Promise.resolve().then(f);
};

/** Makes the background of a host: what arrives drives it, and an alarm where nothing arrives. */
export const createBackground = (o: BackgroundOptions): Background => {
  const { clock, soon = afterTask, sender = new Sender() } = o;
  const zero = clock.now();
  /** µs, never 0, which the controller takes for "never". */
  const now = () => Math.floor((clock.now() - zero) * 1000) + 1;
  const coarse = () => clock.coarse?.() ?? false;
  const receiver = new Receiver();
  const lanes = new Set<Lane>();
  let due = false;
  /** When the alarm is to ring. */
  let dueAt = Number.POSITIVE_INFINITY;
  let stopped = false;
  let told = { sent: 0, yields: 0, slowdowns: 0 };

  const run = () => {
    due = false;
    if (stopped) return;
    const at = now();
    let wait = sender.work(at);
    for (const lane of lanes) wait = Math.min(wait, lane.answer(at));
    if (Number.isFinite(wait)) later(wait);
  };
  const later = (us: number) => {
    const wait = Math.max(0, us);
    dueAt = Math.min(dueAt, now() + wait);
    alarm.set(wait / 1000);
  };
  const beside = (size: number) => sender.host.beside(now(), size);
  const kick = () => {
    if (due) return;
    due = true;
    soon(run);
  };
  const beats = new Beats(
    (ms) => alarm.beat?.(ms),
    () => alarm.queue?.(),
  );
  const ring = () => {
    const at = now();
    if (dueAt <= at) sender.heard(at - dueAt);
    dueAt = Number.POSITIVE_INFINITY;
    run();
  };
  const alarm = o.alarm(ring, (ms) => {
    const then = ms ? beats.heard(now(), ms * 1000) : beats.passed(now());
    let waited = false;
    for (const lane of lanes) waited = lane.cameBy(then) || waited;
    if (waited) run();
  });

  const tabs = o.tabs?.({
    clock,
    bases: () => [...lanes].flatMap((lane): [string, number][] => (lane.base ? [[lane.peer, lane.base]] : [])),
    counted(parts) {
      sender.host.setParts(parts);
      receiver.setParts(parts);
    },
  });

  return {
    sender,
    receiver,
    add(link, source, peer = '') {
      const at = now();
      const sending = sender.add(at, link, source, tabs?.base(peer) ?? 0);
      const ended = (lane: Lane) => {
        tabs?.remember(peer, lane.base);
        lanes.delete(lane);
      };
      const asked = receiver.open(at);
      const lane = new Lane({ link, peer, sending, asked, beats, now, coarse, kick, later, beside, ended });
      lanes.add(lane);
      lane.wake();
      return lane;
    },
    mayRequest() {
      const at = now();
      const may = receiver.mayRequest(at);
      if (may === true) return true;
      return may === 0 ? Number.POSITIVE_INFINITY : (may - at) / 1000;
    },
    cap(kbps) {
      sender.cap.kbps = kbps;
    },
    take() {
      const { sent, host } = sender;
      if (sent === told.sent) return undefined;
      const { view, controller, yields } = host;
      const { slowdowns, window } = controller;
      const before = told;
      told = { sent, yields, slowdowns };
      return {
        queuing_us: view.queuing,
        base_us: view.base,
        target_us: view.target,
        window_bytes: window,
        rate: host.ceiling.of(host.pacingRate()),
        yields: yields - before.yields,
        slowdowns: Math.max(0, slowdowns - before.slowdowns), // a host that starts anew counts anew
      };
    },
    stop() {
      stopped = true;
      for (const lane of lanes) lane.close();
      alarm.stop();
      tabs?.stop();
    },
  };
};

interface LaneOptions {
  link: BackgroundLink;
  peer: string;
  sending: SendingLane;
  asked: Source;
  beats: Beats;
  now(): number;
  coarse(): boolean;
  /** Has the host look what may be sent, after this task. */
  kick(): void;
  /** Has it look after so many µs. */
  later(us: number): void;
  /** So many bytes went out outside the controller. */
  beside(size: number): void;
  /** The lane closes. */
  ended(lane: Lane): void;
}

/** What came with a message, until it is known when. */
interface Came {
  at: number;
  size: number;
  stamp: Stamp;
}

/** One link: sends, acknowledges, and counts what was asked for. */
class Lane implements BackgroundLane {
  readonly peer: string;
  #o: LaneOptions;
  #acker = new Acker();
  #arrivals = new Arrivals();
  #came: Came[] = [];

  constructor(o: LaneOptions) {
    this.#o = o;
    this.peer = o.peer;
  }

  /** The least round trip of the path, µs; 0 while it is not measured. */
  get base(): number {
    const { measured, base } = this.#o.sending.path;
    return measured ? base : 0;
  }

  get #closed(): boolean {
    return this.#o.sending.closed;
  }

  wake(): void {
    if (this.#closed) return;
    this.#o.sending.wake();
    this.#o.kick();
  }

  ack(message: Uint8Array): boolean {
    const taken = this.#o.sending.ack(this.#o.now(), message);
    this.#o.kick();
    return taken;
  }

  took(size: number): void {
    this.#o.beside(Math.ceil(size / packetBytes) * sackBytes);
  }

  data(message: Uint8Array): DataMessage | undefined {
    const { link, now, coarse, beats, sending } = this.#o;
    const read = decodeBackground(message, link.maxMessage);
    if (this.#closed) return undefined;
    const at = now();
    beats.want(at);
    const { request, payload } = read.part;
    const ours = sending.source.ours?.(request) ?? true;
    this.#acker.foreground = !ours;
    this.#acker.coarse = coarse();
    this.#arrivals.found(at, read.stamp.sentAt);
    const fresh = this.#acker.onData(at, message.length, read.stamp);
    if (fresh) {
      this.#came.push({ at, size: ours ? payload.length : 0, stamp: read.stamp });
    }
    const wait = this.answer(at);
    if (Number.isFinite(wait)) this.#o.later(wait);
    return fresh ? read.part : undefined;
  }

  /** All that is here had come by then; says whether that was waited for. */
  cameBy(then: number): boolean {
    for (const came of this.#came) {
      came.at = this.#arrivals.dated(came.at, came.stamp.sentAt, then);
      this.#acker.cameBy(came.stamp.sequence, came.at);
    }
    return this.#take();
  }

  /** Has the receiver hear of what came, as of when it came. */
  #take(): boolean {
    const now = this.#o.now();
    const list = this.#came.splice(0);
    for (const { at, size, stamp } of list) {
      const late = now - at;
      this.#o.asked.onData(now, size, { ...stamp, sentAt: stamp.sentAt + late, echo: stamp.echo + late });
    }
    return list.length > 0;
  }

  /** Acknowledges what is due; otherwise after how many µs it is. */
  answer(now: number): number {
    if (this.#came.length && !this.#acker.coarse && this.#o.beats.overdue(now)) return Number.POSITIVE_INFINITY;
    this.#take();
    const { due } = this.#acker;
    if (due === 0) return Number.POSITIVE_INFINITY;
    if (due > now) return due - now;
    const ack = this.#acker.make(now);
    if (ack) {
      const message = encodeAck(ack);
      this.#o.link.sendAck(message);
      this.#o.beside(message.length + ackAround);
    }
    return Number.POSITIVE_INFINITY;
  }

  requested(size: number): void {
    if (!this.#closed) this.#o.asked.onRequest(this.#o.now(), size);
  }

  gone(size: number): void {
    if (!this.#closed) this.#o.asked.onGone(size);
  }

  reset(): void {
    if (this.#closed) return;
    const at = this.#o.now();
    this.#o.sending.path.reset(at);
    this.#o.asked.reset(at);
  }

  close(): void {
    if (this.#closed) return;
    this.#o.ended(this);
    this.#o.sending.close();
    this.#o.asked.close();
    this.#o.kick(); // what it had in flight is room for others
  }
}
