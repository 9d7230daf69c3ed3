/** Throughput figures of RFC 6349 (spec/probe.md, TCP). */
const headersV4 = 40;
const headersV6 = 60;
const timestampBytes = 12;
/** Preamble 8, header 14, check sequence 4, gap 12. */
const ethernet = 38;
const vlanTag = 4;
/** Bit of `Options`: TCP timestamps are in use. */
export const optionStamp = 1;

/** One look at the server's end of a connection, as a measurement of ndt7 has it; what it leaves out is not known. */
export interface TCPInfo {
  ElapsedTime?: number;
  BusyTime?: number;
  BytesAcked?: number;
  BytesReceived?: number;
  BytesSent?: number;
  BytesRetrans?: number;
  MinRTT?: number;
  RTT?: number;
  RTTVar?: number;
  RWndLimited?: number;
  SndBufLimited?: number;
  SndMSS?: number;
  RcvMSS?: number;
  PMTU?: number;
  Options?: number;
  Unacked?: number;
  RcvRTT?: number;
  RcvSpace?: number;
  SndCwnd?: number;
  SndWnd?: number;
  DeliveryRate?: number;
}

/** What carries a connection. */
export interface Link {
  /** bit/s on the wire. */
  rate: number;
  /** Largest packet of the path. */
  mtu: number;
  v6?: boolean;
  vlan?: boolean;
  timestamps?: boolean;
}

const headers = (v6: boolean | undefined, stamped: boolean | undefined) =>
  (v6 ? headersV6 : headersV4) + (stamped ? timestampBytes : 0);

/** The largest possible throughput of TCP payload, bit/s. */
export function maxThroughput(link: Link): number {
  const payload = link.mtu - headers(link.v6, link.timestamps);
  const wire = link.mtu + ethernet + (link.vlan ? vlanTag : 0);
  return payload <= 0 ? 0 : (link.rate * payload) / wire;
}

/** Bytes by microseconds in bit/s; 0 of no time. */
export const rate = (bytes: number, us: number): number => (us <= 0 ? 0 : (bytes * 8e6) / us);

/** Bytes of payload that went over a link in a time. */
export interface Transfer {
  bytes: number;
  /** µs */
  elapsed: number;
  link: Link;
}

/** RFC 6349's ideal transfer time, in microseconds; 0 if the link carries nothing. */
export function idealTime(transfer: Transfer): number {
  const most = maxThroughput(transfer.link);
  return most <= 0 ? 0 : (transfer.bytes * 8e6) / most;
}

/** RFC 6349's transfer time ratio: actual by ideal time. */
export function timeRatio(transfer: Transfer): number | undefined {
  const ideal = idealTime(transfer);
  return ideal <= 0 || transfer.elapsed <= 0 ? undefined : transfer.elapsed / ideal;
}

/** Throughput by the largest possible, the inverse of the transfer time ratio. */
export function throughputRatio(transfer: Transfer): number | undefined {
  const ratio = timeRatio(transfer);
  return ratio === undefined ? undefined : 1 / ratio;
}

/** RFC 6349's TCP efficiency in percent, of bytes sent, retransmissions among them. */
export function efficiency(sent: number, retransmitted: number): number | undefined {
  if (sent <= 0 || retransmitted < 0 || retransmitted > sent) return undefined;
  return (100 * (sent - retransmitted)) / sent;
}

/** RFC 6349's buffer delay in percent, of round-trip times in one unit. */
export function bufferDelay(average: number, baseline: number): number | undefined {
  return baseline <= 0 ? undefined : (100 * (average - baseline)) / baseline;
}

/** Whether a connection uses TCP timestamps. */
export const stamped = (info: TCPInfo): boolean => ((info.Options ?? 0) & optionStamp) !== 0;

/** The largest packet of the path, from the largest segment; 0 where the system tells none. */
export function pathMTU(info: TCPInfo, v6: boolean): number {
  const segment = info.SndMSS ?? 0;
  return segment <= 0 ? 0 : segment + headers(v6, stamped(info));
}
