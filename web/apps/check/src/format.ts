/** Figures as people read them. */
import type { Direction, Figure, FigureName, Source } from '@leeway/netcheck';

const digits = (value: number) => {
  if (value === 0) return '0';
  const size = Math.abs(value);
  return size >= 100 ? Math.round(value).toString() : `${Number(value.toPrecision(size >= 10 ? 3 : 2))}`;
};

/** A value and its unit. */
export type Quantity = readonly [value: string, unit: string];

export function rate(bps: number): Quantity {
  if (bps >= 1e9) return [(bps / 1e9).toPrecision(3), 'Gbit/s'];
  return bps >= 1e6 ? [digits(bps / 1e6), 'Mbit/s'] : [digits(bps / 1e3), 'kbit/s'];
}

/** Of a scale that ends with `most`: the number alone, in the unit of its end. */
export function onScale(part: number, most: number): string {
  const unit = rate(most)[1];
  const size = unit === 'Gbit/s' ? 1e9 : unit === 'Mbit/s' ? 1e6 : 1e3;
  return digits((part * most) / size);
}

export function time(seconds: number): Quantity {
  if (seconds >= 1) return [seconds.toPrecision(3), 's'];
  return seconds < 1e-4 ? [digits(seconds * 1e6), 'µs'] : [digits(seconds * 1000), 'ms'];
}

export const share = (ratio: number): Quantity => [digits(ratio * 100), '%'];

export function quantity({ unit, value }: Figure): Quantity {
  switch (unit) {
    case 'bit/s':
      return rate(value);
    case 's':
      return time(value);
    case 'B':
      return value >= 10_000 ? [digits(value / 1000), 'kB'] : [`${Math.round(value)}`, 'bytes'];
    case 'percent':
      return [digits(value), '%'];
    case 'ratio':
      return value <= 1 ? share(value) : [digits(value), '×'];
    case 'round trips/min':
      return [Math.round(value).toLocaleString('en'), 'a minute'];
    default:
      return [digits(value), unit];
  }
}

export const names: Record<FigureName, string> = {
  throughput: 'Throughput',
  baseline_rtt: 'Round trip, idle',
  loaded_rtt: 'Round trip under load',
  rtt_range: 'Range of round trips',
  transfer_time_ratio: 'Transfer time ratio (RFC 6349)',
  throughput_ratio: 'Throughput ratio',
  tcp_efficiency: 'TCP efficiency (RFC 6349)',
  buffer_delay: 'Buffer delay (RFC 6349)',
  window: 'Window in use',
  achievable_throughput: 'Throughput that the window allows',
  path_mtu: 'Largest packet',
  loss: 'Lost messages',
  loss_distance: 'Smallest loss distance (RFC 3357)',
  loss_period: 'Longest loss period (RFC 3357)',
  duplicates: 'Duplicates',
  reordered: 'Reordered (RFC 4737)',
  reorder_extent: 'Reordering extent (RFC 4737)',
  jitter: 'Jitter (RFC 3550)',
  delay_range: 'Range of delays',
  one_way_delay: 'Delay one way',
  round_trip: 'Round trip of messages',
  responsiveness: 'Round trips under load (RPM)',
  request_responsiveness: 'Requests on the load (RPM)',
  free_capacity: 'Left by other traffic',
};

export const directions: Record<Direction, string> = { down: 'down', up: 'up', 'round-trip': 'both ways' };

export const sources: Record<Source, string> = {
  receiver: 'the receiver',
  'tcp-info': "the server's kernel",
  channel: 'data channel',
  http: 'requests',
  lane: 'a load that gives way',
};
