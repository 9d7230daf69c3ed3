import { Receiver } from '../ledbat/receiver.ts';
import type { Clock } from '../ports.ts';
import { Beats } from './beats.ts';
import { createLane, type Lane } from './lane.ts';
import type { Alarm, Background } from './ports.ts';
import { Sender } from './sender.ts';
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

/** Makes the background of a host: what arrives drives it, and an alarm where nothing arrives. */
export const createBackground = (o: BackgroundOptions): Background => {
  const { clock, soon = queueMicrotask, sender = new Sender() } = o;
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
    later(wait);
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
    bases: () => [...lanes].map((lane): [string, number] => [lane.peer, lane.base()]).filter(([, base]) => base),
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
      const ended = () => {
        tabs?.remember(peer, lane.base());
        lanes.delete(lane);
      };
      const asked = receiver.open(at);
      const lane = createLane({ link, peer, sending, asked, beats, now, coarse, kick, later, beside, ended });
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
