/**
 * The data channels of one link: in-band, reliable, `lw.data.*` and `lw.ack` unordered. Small send buffers, so that
 * what is urgent never waits behind what was written long ago.
 */

import { ackLabel, controlLabel, dataLabels, maxControlMessage } from './plan.ts';

/** A data channel takes no further message above this, bytes. */
export const highWater = 131_072;
/** Below this it reports room again, bytes. */
export const lowWater = 65_536;
/** A control channel whose reader is this far behind ends its link, bytes. */
const controlBound = 4 << 20;
/** Above this what is long waits for room, bytes. */
const controlHigh = 262_144;
/** Channels outside the plan that are closed and counted before the link ends. */
const strangersAllowed = 8;

export interface ChannelEvents {
  /** Control and all data channels of the plan are open. */
  ready(): void;
  control(message: Uint8Array): void;
  data(message: Uint8Array): void;
  ack(message: Uint8Array): void;
  drain(): void;
  /** A channel of the plan has closed, or the other side broke the protocol, or does not read. */
  ended(reason: 'closed' | 'protocol-error' | 'over-limit'): void;
}

export interface Channels {
  /** The offerer's part: creates every channel of the plan, in-band. */
  create(connection: RTCPeerConnection, data: number): void;
  /** The answerer's part: a channel that the other side made. `offered` is the N of its offer. */
  accept(channel: RTCDataChannel, offered: number): void;
  /** Fixes the plan that both sides agreed on; `ready` cannot come before. */
  agree(data: number, maxMessage: number): void;
  sendControl(message: Uint8Array): void;
  /** Whether what is long may be said: else `drain` says when. */
  controlRoom(): boolean;
  /** Writes to the emptiest data channel, if it has room. */
  sendData(message: Uint8Array): boolean;
  /** Bytes that wait in the data channels' buffers. */
  waiting(): number;
  /** Writes to the emptiest data channel, whatever its room. */
  sendBackground(message: Uint8Array): boolean;
  /** Lost with the channel, like an ack that comes late. */
  sendAck(message: Uint8Array): void;
  /** Detaches every handler; the connection's close ends the channels. */
  dispose(): void;
}

export function createChannels(events: ChannelEvents): Channels {
  const byLabel = new Map<string, RTCDataChannel>();
  let data: RTCDataChannel[] = [];
  let strangers = 0;
  let agreed = 0;
  let maxMessage = 0;
  let over = false;
  let heldBack = false;

  const check = () => {
    if (data.length > 0 || over || agreed === 0) return;
    const labels = [controlLabel, ...dataLabels(agreed)];
    if (labels.some((label) => byLabel.get(label)?.readyState !== 'open')) return;
    data = labels.slice(1).map((label) => byLabel.get(label)!);
    events.ready();
  };

  const receive = (label: string, payload: unknown) => {
    const control = label === controlLabel;
    const bound = control || agreed === 0 ? maxControlMessage : maxMessage;
    if (over) return;
    if (!(payload instanceof ArrayBuffer) || payload.byteLength > bound) events.ended('protocol-error');
    else events[control ? 'control' : label === ackLabel ? 'ack' : 'data'](new Uint8Array(payload));
  };

  const adopt = (channel: RTCDataChannel) => {
    const { label } = channel;
    byLabel.set(label, channel);
    channel.binaryType = 'arraybuffer';
    channel.bufferedAmountLowThreshold = lowWater;
    channel.onopen = check;
    channel.onclose = () => {
      // Channels beyond the agreed plan may go.
      if (!over && (label === controlLabel || data.length === 0 || data.includes(channel))) events.ended('closed');
    };
    channel.onmessage = (event) => receive(label, event.data);
    channel.onbufferedamountlow = () => {
      if (!over && (data.includes(channel) || (label === controlLabel && heldBack))) {
        if (label === controlLabel) heldBack = false;
        events.drain();
      }
    };
    check();
  };

  const emptiest = () =>
    data.filter((channel) => channel.readyState === 'open').sort((a, b) => a.bufferedAmount - b.bufferedAmount)[0];

  return {
    create(connection, count) {
      adopt(connection.createDataChannel(controlLabel));
      for (const label of [ackLabel, ...dataLabels(count)]) {
        adopt(connection.createDataChannel(label, { ordered: false }));
      }
    },
    accept(channel, offered) {
      const { label } = channel;
      if (!byLabel.has(label) && [controlLabel, ackLabel, ...dataLabels(offered)].includes(label)) {
        adopt(channel);
        return;
      }
      channel.close();
      if (!over && ++strangers > strangersAllowed) events.ended('protocol-error');
    },
    agree(count, most) {
      agreed = count;
      maxMessage = most;
      check();
    },
    sendControl(message) {
      const channel = byLabel.get(controlLabel)!;
      if (channel.bufferedAmount > controlBound) events.ended('over-limit');
      else send(channel, message);
    },
    controlRoom() {
      const room = byLabel.get(controlLabel)!.bufferedAmount < controlHigh;
      heldBack ||= !room;
      return room;
    },
    sendData(message) {
      const best = emptiest();
      return best !== undefined && best.bufferedAmount + message.length <= highWater && send(best, message);
    },
    waiting: () => data.reduce((sum, channel) => sum + channel.bufferedAmount, 0),
    sendBackground(message) {
      const best = emptiest();
      return best !== undefined && send(best, message);
    },
    sendAck(message) {
      const channel = byLabel.get(ackLabel);
      if (channel) send(channel, message);
    },
    dispose() {
      over = true;
      for (const c of byLabel.values()) c.onopen = c.onclose = c.onmessage = c.onbufferedamountlow = null;
    },
  };
}

/** False: the channel is closing or full; its event follows. */
function send(channel: RTCDataChannel, message: Uint8Array): boolean {
  try {
    channel.send(message as Uint8Array<ArrayBuffer>);
    return true;
  } catch {
    return false;
  }
}
