/** Binary messages: probes and echoes. */
import { echoSize, MalformedError, maxClock, maxMessages, maxSize, probeSize, tail } from './quality.ts';

/** Times are µs of the clock of the side that writes them. */
export interface Probe {
  type: 'probe';
  stream: number;
  sequence: number;
  sent: number;
}

/** What the server makes of a probe. */
export interface Echo extends Omit<Probe, 'type'> {
  type: 'echo';
  received: number;
  echoed: number;
}

/** The message, with zeros up to size bytes if that is larger than its header. */
export function encodeMessage(message: Probe | Echo, size: number): Uint8Array<ArrayBuffer> {
  const echo = message.type === 'echo';
  const out = new Uint8Array(Math.max(size, echo ? echoSize : probeSize));
  const view = new DataView(out.buffer);
  view.setUint8(0, echo ? 2 : 1);
  view.setUint16(2, message.stream);
  view.setUint32(4, message.sequence);
  view.setBigUint64(8, BigInt(message.sent));
  if (echo) {
    view.setBigUint64(16, BigInt(message.received));
    view.setBigUint64(24, BigInt(message.echoed));
  }
  return out;
}

/** Throws a `MalformedError`. */
export function decodeMessage(bytes: ArrayBuffer): Probe | Echo {
  const view = new DataView(bytes);
  const size = bytes.byteLength;
  if (size > maxSize) throw new MalformedError('long');
  const type = size > 0 ? view.getUint8(0) : 0;
  if (size < probeSize || (type === 2 && size < echoSize)) throw new MalformedError('short');
  if (type !== 1 && type !== 2) throw new MalformedError('type');
  if (view.getUint8(1) !== 0) throw new MalformedError('reserved');
  const sequence = view.getUint32(4);
  const times = (type === 1 ? [8] : [8, 16, 24]).map((at) => Number(view.getBigUint64(at)));
  if (sequence > maxMessages + tail - 1 || times.some((t) => t > maxClock)) throw new MalformedError('range');
  const [sent, received, echoed] = times as [number, number, number];
  const head = { stream: view.getUint16(2), sequence, sent };
  return type === 1 ? { type: 'probe', ...head } : { type: 'echo', ...head, received, echoed };
}
