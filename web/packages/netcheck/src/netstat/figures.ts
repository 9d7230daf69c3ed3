/** The figures of a check, a closed set: spec/probe.md has their meanings. Times are microseconds, sizes bytes, rates bit/s. */

/** Up is from the client to the server. */
export type Direction = 'up' | 'down' | 'round-trip';

/** receiver: what the receiving end counted; tcp-info: the server's kernel; channel: messages; http: requests; lane: a load that gives way. */
export type Source = 'receiver' | 'tcp-info' | 'channel' | 'http' | 'lane';

/** Unit and source of a figure, by its name, in the order of the specification. */
export const kinds = {
  throughput: ['bit/s', 'receiver'],
  baseline_rtt: ['s', 'tcp-info'],
  loaded_rtt: ['s', 'tcp-info'],
  rtt_range: ['s', 'tcp-info'],
  transfer_time_ratio: ['ratio', 'receiver'],
  throughput_ratio: ['ratio', 'receiver'],
  tcp_efficiency: ['percent', 'tcp-info'],
  buffer_delay: ['percent', 'tcp-info'],
  window: ['B', 'tcp-info'],
  achievable_throughput: ['bit/s', 'tcp-info'],
  path_mtu: ['B', 'tcp-info'],
  loss: ['ratio', 'channel'],
  loss_distance: ['messages', 'channel'],
  loss_period: ['messages', 'channel'],
  duplicates: ['ratio', 'channel'],
  reordered: ['ratio', 'channel'],
  reorder_extent: ['messages', 'channel'],
  jitter: ['s', 'channel'],
  delay_range: ['s', 'channel'],
  one_way_delay: ['s', 'channel'],
  round_trip: ['s', 'channel'],
  responsiveness: ['round trips/min', 'http'],
  request_responsiveness: ['round trips/min', 'http'],
  free_capacity: ['bit/s', 'lane'],
} as const satisfies Record<string, readonly [unit: string, source: Source]>;

export type FigureName = keyof typeof kinds;

export interface Figure {
  name: FigureName;
  direction: Direction;
  value: number;
  unit: string;
  source: Source;
}

/** A figure with its unit and source. */
export function figure(name: FigureName, direction: Direction, value: number): Figure {
  const [unit, source] = kinds[name];
  return { name, direction, value, unit, source };
}
