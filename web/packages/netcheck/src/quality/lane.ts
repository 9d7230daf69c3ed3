/** A load that gives way, on channel `lane` (spec/probe.md, Load that gives way). Twin of laneLoad of internal/netcheck. */
import {
  type Background,
  type BackgroundLane,
  type BackgroundLink,
  type BackgroundSource,
  backgroundHeader,
  clock,
  createBackground,
  pageAlarm,
  Sender,
  Within,
} from '@leeway/core/lane';
import { leastTarget, mostTarget } from '../wire/quality.ts';

/** Bytes of the largest message. */
const maxMessage = 16_384;

const nothing: BackgroundSource = { waiting: () => false, next: () => undefined };

/** Bytes that no compression on the way makes fewer. */
function plenty(): BackgroundSource {
  const all = crypto.getRandomValues(new Uint8Array(maxMessage));
  return { waiting: () => true, next: (n) => ({ request: 0, offset: 0, payload: all.subarray(0, n) }) };
}

/** One load, of a channel and a host of its own: what comes down is acknowledged, what goes up is sent from `begin` on. */
export class LaneLoad {
  private readonly background: Background;
  private readonly link: BackgroundLink;
  /** Of a download it is there from the start on: messages may come before the server's `ready`. */
  private lane: BackgroundLane | undefined;
  private came = 0;
  private stopped = false;

  /** `broken`: the server sent what it must not. */
  constructor(
    channel: RTCDataChannel,
    private readonly direction: 'up' | 'down',
    private readonly broken: () => void,
  ) {
    const sender = new Sender();
    sender.host.controller = new Within(leastTarget, mostTarget);
    this.background = createBackground({ clock, alarm: pageAlarm(clock), sender });
    this.link = linkOf(channel);
    if (direction === 'down') this.lane = this.background.add(this.link, nothing);
    channel.binaryType = 'arraybuffer';
    channel.bufferedAmountLowThreshold = maxMessage / 4;
    channel.onbufferedamountlow = () => this.lane?.wake();
    channel.onmessage = ({ data }) => this.message(data);
  }

  begin(): void {
    if (this.direction === 'up') this.lane = this.background.add(this.link, plenty());
  }

  /** Bytes of messages that have come: here, or as the server says. */
  get bytes(): number {
    return this.direction === 'up' ? this.background.sender.acked : this.came;
  }

  stop(): void {
    if (this.stopped) return;
    this.stopped = true;
    this.background.stop();
  }

  private message(data: unknown): void {
    if (this.stopped) return;
    if (!(data instanceof ArrayBuffer) || !this.lane || !this.takes(this.lane, new Uint8Array(data))) this.broken();
  }

  private takes(lane: BackgroundLane, message: Uint8Array): boolean {
    if (this.direction === 'up') return lane.ack(message);
    try {
      const part = lane.data(message);
      if (part) this.came += backgroundHeader + part.payload.length;
      return true;
    } catch {
      return false; // malformed
    }
  }
}

function linkOf(channel: RTCDataChannel): BackgroundLink {
  const send = (message: Uint8Array): boolean => {
    try {
      channel.send(message as Uint8Array<ArrayBuffer>);
      return true;
    } catch {
      return false; // it is closing; its event follows
    }
  };
  return { maxMessage, waiting: () => channel.bufferedAmount, sendBackground: send, sendAck: send };
}
