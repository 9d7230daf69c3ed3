/** Responsiveness under load: RPM of draft-ietf-ippm-responsiveness (spec/probe.md). */

/** Times of requests under load, in microseconds. */
export interface Probes {
  /** Handshakes of connections of their own. */
  tcp: readonly number[];
  /** A round trip of their TLS handshakes; empty without TLS. */
  tls: readonly number[];
  /** Requests on those connections. */
  http: readonly number[];
  /** Requests on the connections that make the load, or their round-trip times. */
  loaded: readonly number[];
}

/** The mean of the values without the largest 5 %. */
export function trimmedMean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  const kept = [...values].sort((a, b) => a - b).slice(0, Math.floor((95 * values.length + 99) / 100));
  return kept.reduce((sum, v) => sum + v, 0) / kept.length;
}

/** Round trips per minute; undefined where a kind of probe is missing. */
export function rpm(probes: Probes): number | undefined {
  const tcp = trimmedMean(probes.tcp);
  const tls = trimmedMean(probes.tls);
  const http = trimmedMean(probes.http);
  const loaded = trimmedMean(probes.loaded);
  if (tcp === undefined || http === undefined || loaded === undefined) return undefined;
  const foreign = tls === undefined ? (tcp + http) / 2 : (tcp + tls + http) / 3;
  return foreign <= 0 || loaded <= 0 ? undefined : (60e6 / foreign + 60e6 / loaded) / 2;
}
