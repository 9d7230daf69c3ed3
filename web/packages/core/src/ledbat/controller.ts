import {
  div,
  fastAfter,
  fastPart,
  initialWindow,
  leastTarget,
  lossLeast,
  lossMost,
  maxWindow,
  minWindow,
  never,
  packet,
  roomPart,
  roomTime,
  slowdownDepth,
  slowdownFactor,
  slowdownMost,
  slowdownWindow,
  startPart,
} from './constants.ts';
import { targetOf } from './delay.ts';

/** The phases of the controller; the last two are LEDBAT++'s periodic slowdown. */
export type State = 'slow-start' | 'avoidance' | 'slowdown' | 'ramp';

/** What a controller hears with an ack, a loss or a timeout. Times in µs, sizes in bytes. */
export interface Signal {
  now: number;
  acked: number;
  queuing: number;
  target: number;
  base: number;
  rtt: number;
  /** The window was hit within the last round trip: only then may it grow. */
  limited: boolean;
  /** Among how many controllers on this line the growth is divided: tabs of one browser. */
  parts: number;
}

/** Goes by the path's own target, not by what a host bears of it. */
const gainDivisor = (s: Signal): number => {
  const base = Math.max(1, s.base);
  return Math.min(16, Math.max(1, div(2 * targetOf(base) + base - 1, base)));
};

/** The part of a change that falls to the way there, of a round trip that a queue on the way back makes longer. */
const there = (change: number, trip: number, rtt: number): number =>
  div(change * Math.min(trip, rtt), Math.max(1, rtt));

/** LEDBAT++ with what the spec changes in it. A host's controller runs slowdowns; the cap of a path does not. */
export class Controller {
  window = initialWindow;
  state: State = 'slow-start';
  slowdowns = 0;
  #host: boolean;
  #ssthresh = maxWindow;
  /** Part of a byte that the window is owed, in bytes × window. */
  #credit = 0;
  #lossAt = -never;
  /** The queue, µs, to which one packet too many came, and when that was; 0: none yet. */
  #room = 0;
  #fullAt = 0;
  /** When the queue last held half the target, or a packet was lost. */
  #crowdedAt = -never;
  #slowAt = never;
  /** When the slowdown began that its end leads back from. */
  protected beganAt = 0;
  #until = 0;

  constructor(host: boolean) {
    this.#host = host;
  }

  onAck(heard: Signal): void {
    const short = this.#room > 0 && heard.now - this.#fullAt < roomTime;
    const borne = Math.max(div(this.#room * roomPart, 100), leastTarget);
    const s = short ? { ...heard, target: Math.min(heard.target, borne) } : heard;
    if (2 * s.queuing >= s.target || this.#crowdedAt === -never) this.#crowdedAt = s.now;
    if (this.state === 'slow-start') this.#start(s);
    else if (this.state === 'ramp') this.#ramp(s);
    else if (this.state === 'avoidance') {
      if (s.now >= this.#slowAt && this.window > slowdownWindow) this.#slow(s);
      else this.#steer(s);
    } else if (s.now >= this.#until) this.state = 'ramp';
  }

  /** Makes the window half as large again each round trip until the queue is seen. */
  #start(s: Signal): void {
    const seen = 4 * s.queuing > 3 * s.target;
    if (s.limited && !seen) this.#grow(div(s.acked, Math.max(startPart, gainDivisor(s))));
    if (seen || this.window >= this.#ssthresh) this.#avoid(s.now + 2 * s.rtt);
  }

  #avoid(slowAt: number): void {
    this.state = 'avoidance';
    this.#credit = 0;
    if (this.#host) this.#slowAt = slowAt;
  }

  /** The host's own queue drains, so that all flows on the line see the base delay. */
  #slow(s: Signal): void {
    this.state = 'slowdown';
    this.beganAt = s.now;
    this.#until = s.now + 2 * s.rtt;
    this.#ssthresh = this.window;
    this.window = Math.max(slowdownWindow, div(this.window, slowdownDepth));
    this.slowdowns++;
  }

  /** Leads back to where the slowdown began, or to where the queue is there again. */
  #ramp(s: Signal): void {
    if (s.limited) this.#grow(s.acked);
    if (this.window >= this.#ssthresh || s.queuing > s.target) {
      this.window = Math.min(this.window, this.#ssthresh);
      this.#avoid(s.now + this.#rest(s));
    }
  }

  /** The control step: up by a packet each round trip below the target, down in proportion above it. */
  #steer(s: Signal): void {
    let step = div(div(packet, gainDivisor(s)), s.parts);
    if (2 * s.queuing > s.target) step = div(step, 2);
    if (!s.limited) step = 0;
    const floor = div(packet, s.parts);
    if (s.queuing >= s.target) {
      const over = div(this.window * (s.queuing - s.target), s.target);
      const most = Math.max(this.window, floor);
      const change = Math.max(Math.min(step, most - this.window) - over, -div(this.window, 2));
      this.#move(change < 0 ? there(change, s.base + s.queuing, s.rtt) : change, s.acked);
    } else if (step > 0 && this.window < floor) {
      this.window = floor;
      this.#credit = 0;
    } else if (step > 0) {
      if (s.now - this.#crowdedAt >= fastAfter * (s.base + s.queuing)) {
        const part = div(div(this.window, fastPart) * (s.target - s.queuing), s.target);
        step = Math.max(step, there(part, s.base + s.target, s.rtt));
      }
      this.#move(step, s.acked);
    }
  }

  /** Changes the window by so much per round trip, in the part that the acked bytes are of the window. */
  #move(perRtt: number, acked: number): void {
    this.#credit += perRtt * Math.min(acked, this.window);
    const step = div(this.#credit, this.window);
    this.#credit -= step * this.window;
    this.#grow(step);
  }

  #grow(n: number): void {
    this.window = Math.min(Math.max(this.window + n, minWindow), maxWindow);
  }

  /**
   * Cuts the window little where no queue was, for then the loss is the path's nature, and more where there was one. A
   * queue above the target that overflows is the doing of other traffic; one below it is as long as it can be.
   */
  onLoss(s: Signal): void {
    if (s.now - this.#lossAt < s.rtt || this.state === 'slowdown') return;
    this.#lossAt = s.now;
    this.#crowdedAt = s.now;
    if (4 * s.queuing >= s.target) {
      this.#room = s.queuing;
      this.#fullAt = s.now;
    }
    const half = div(s.target, 2);
    const cut = lossLeast * half + (lossMost - lossLeast) * Math.min(half, s.queuing);
    this.#grow(s.queuing >= s.target ? div(-this.window, 2) : div(-this.window * cut, 1000 * half));
    this.#credit = 0;
    if (this.state === 'slow-start') this.#avoid(s.now + 2 * s.rtt);
    else if (this.state === 'ramp') this.#avoid(s.now + this.#rest(s));
  }

  /** The time from a slowdown until the next. */
  #rest(s: Signal): number {
    return Math.min(slowdownFactor * Math.max(s.now - this.beganAt, s.rtt), slowdownMost);
  }

  /** Nothing was heard for a retransmission timeout. */
  onTimeout(s: Signal): void {
    this.#ssthresh = Math.max(div(this.window, 2), slowdownWindow);
    this.window = Math.min(this.window, Math.max(div(packet, s.parts), minWindow));
    this.#lossAt = s.now;
    this.#again(s.now);
  }

  /** First message after nothing was in flight for long: what was known of the queue is old. */
  onIdle(s: Signal): void {
    if (this.state === 'slow-start' || this.window <= initialWindow) return;
    this.#ssthresh = Math.max(this.window, this.state === 'avoidance' ? 0 : this.#ssthresh);
    this.window = initialWindow;
    this.#again(s.now);
  }

  /** From a window that is small by now the ramp leads back. */
  #again(now: number): void {
    this.#credit = 0;
    this.state = 'ramp';
    this.beganAt = now;
    this.#crowdedAt = now;
  }
}
