/** What the receiver of background data tells its sender; spec/background-transport.md has the layout. */
export interface LedbatAck {
  /** Every sequence below it has come. */
  cumulative: number;
  /** The highest sequence that has come. */
  highest: number;
  /** Upper and lower 32 bits; most significant: highest − 1 has come, least: highest − 64. */
  bitmap: [number, number];
  /** µs of the receiver's clock, wrapping: when `highest` came. */
  receivedAt: number;
  /** µs from then until this ack was sent. */
  hold: number;
}

/** What travels in the header of a background data message. */
export interface Stamp {
  /** Per link and direction, from 0, wrapping. */
  sequence: number;
  /** µs of the sender's clock, wrapping. */
  sentAt: number;
  /** µs of the receiver's clock: send time of the newest ack plus the time since it came. */
  echo: number;
  /** `echo` is valid. */
  echoes: boolean;
  /** The sender will wait for this message's ack. */
  ackNow: boolean;
}

const ackType = 0x30;
const ackLength = 25;

/** Whether the sequence that lies so far below the highest one has come. */
export const inBitmap = ({ bitmap: [high, low] }: LedbatAck, below: number): boolean =>
  below >= 1 && below <= 64 && ((below <= 32 ? high >>> (32 - below) : low >>> (64 - below)) & 1) === 1;

export const encodeAck = (a: LedbatAck): Uint8Array<ArrayBuffer> => {
  const b = new Uint8Array(ackLength);
  const view = new DataView(b.buffer);
  b[0] = ackType;
  [a.cumulative, a.highest, ...a.bitmap, a.receivedAt, a.hold].forEach((v, i) => {
    view.setUint32(1 + 4 * i, v);
  });
  return b;
};

/** Undefined when the bytes are no ack. */
export const decodeAck = (b: Uint8Array): LedbatAck | undefined => {
  if (b.length !== ackLength || b[0] !== ackType) return undefined;
  const view = new DataView(b.buffer, b.byteOffset);
  const at = (i: number) => view.getUint32(1 + 4 * i);
  return { cumulative: at(0), highest: at(1), bitmap: [at(2), at(3)], receivedAt: at(4), hold: at(5) };
};
