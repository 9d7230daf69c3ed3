/** Messages of the data channels (spec/probe.md, Quality by data channel): limits, and what is malformed. Twin of internal/wire/quality. */
export const probeSize = 16;
export const echoSize = 32;
/** Bytes of a message: one packet in every stack. */
export const maxSize = 1152;
export const maxMessages = 16_384;
/** Messages at the end of a stream that no figure counts. */
export const tail = 3;
export const minInterval = 1000;
/** µs, messages × interval of a stream. */
export const maxTime = 60_000_000;
/** µs, of a load that gives way. */
export const minLoad = 1_000_000;
export const maxLoad = 30_000_000;
/** Bounds, µs, of the queue that the host of a load bears. */
export const leastTarget = 7_000;
export const mostTarget = 10_000;
/** Times of a stream, ms (spec/probe.md, Times of a stream). */
export const leastLate = 2_000;
export const mostLate = 10_000;
export const thinTime = 5_000;
export const patience = 25_000;
export const silence = 12_000;
export const maxArrivals = 512;
export const maxMarks = 64;
export const maxControl = 32_768;
export const maxClock = Number.MAX_SAFE_INTEGER;

export type Reason = 'long' | 'short' | 'type' | 'reserved' | 'range' | 'json' | 'field';

/** A message that ends its connection. It quotes nothing of the message. */
export class MalformedError extends Error {
  override readonly name = 'MalformedError';
  readonly reason: Reason;
  /** With the reason `field`. */
  readonly field: string | undefined;

  constructor(reason: Reason, field?: string) {
    super(`quality message is malformed: ${field ?? reason}`);
    this.reason = reason;
    this.field = field;
  }
}
