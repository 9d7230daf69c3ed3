/** A measurement of ndt7's server (spec/probe.md, ndt7), read as what another party says. */
import type { TCPInfo } from '../netstat/tcp.ts';

export interface Measurement {
  /** µs since the handshake. */
  elapsed: number;
  /** Payload that the server handed to its kernel (down) or read (up). */
  bytes: number;
  info: TCPInfo | undefined;
  v6: boolean;
}

const fields = [
  ...['ElapsedTime', 'BusyTime', 'BytesAcked', 'BytesReceived', 'BytesSent', 'BytesRetrans', 'MinRTT', 'RTT', 'RTTVar'],
  ...['RWndLimited', 'SndBufLimited', 'SndMSS', 'RcvMSS', 'PMTU', 'Options', 'Unacked', 'RcvRTT', 'RcvSpace'],
  ...['SndCwnd', 'SndWnd', 'DeliveryRate'],
] as (keyof TCPInfo)[];

type Fields = Record<string, unknown>;
const object = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null ? (value as Fields) : undefined;
const amount = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;

/** undefined: the text is no measurement of a server. */
export function readMeasurement(text: string): Measurement | undefined {
  let all: Fields | undefined;
  try {
    all = object(JSON.parse(text));
  } catch {
    return undefined;
  }
  const app = object(all?.AppInfo);
  const elapsed = amount(app?.ElapsedTime);
  const bytes = amount(app?.NumBytes);
  if (elapsed === undefined || bytes === undefined) return undefined;
  const client = object(all?.ConnectionInfo)?.Client;
  return {
    elapsed,
    bytes,
    info: infoOf(object(all?.TCPInfo), elapsed),
    v6: typeof client === 'string' && client.startsWith('['),
  };
}

function infoOf(from: Fields | undefined, elapsed: number): TCPInfo | undefined {
  if (!from) return undefined;
  const info: TCPInfo = { ElapsedTime: elapsed };
  for (const field of fields) {
    const value = amount(from[field]);
    if (value !== undefined) info[field] = value;
  }
  return info;
}
