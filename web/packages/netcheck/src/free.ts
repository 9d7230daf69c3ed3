/** What other traffic leaves of a line, by a load that gives way to it (spec/probe.md, Load that gives way). */
import { aborted, CheckError, type RefusalStatus } from './error.ts';
import { type Figure, figure } from './netstat/figures.ts';
import type { Plan } from './plan.ts';
import { connects, openLine } from './quality/line.ts';
import type { Server } from './server.ts';
import type { Glance } from './tcp/direction.ts';
import { lately, type Series } from './tcp/received.ts';
import type { ErrorCode } from './wire/control.ts';

/** A packet that a lane fills: what it has of the lane's messages, and all of it, bytes. */
const packetPayload = 1156;
const packet4 = 1253;
const packet6 = 1273;

/** µs whose rate counts. */
const freeWindow = 2_000_000;
/** µs that a gauge looks back. */
const glanced = 500_000;

/** What a server says that ends a connection, as the status of a request that it would refuse. */
const refusals: Partial<Record<ErrorCode, RefusalStatus>> = { bytes: 429, ending: 503 };

export interface FreeTest {
  direction: 'down' | 'up';
  server: Server;
  /** This client's address. */
  client: string;
  plan: Plan;
  signal: AbortSignal;
  glance(now: Pick<Glance, 'done' | 'throughput'>): void;
}

/** blocked: no data channel opens. Rejects with a `CheckError`. */
export async function testFree({
  direction,
  server,
  client,
  plan,
  signal,
  glance,
}: FreeTest): Promise<Figure | 'blocked'> {
  const line = openLine();
  if (!line) return 'blocked';
  const factor = (client.includes(':') ? packet6 : packet4) / packetPayload;
  const stop = () => line.close();
  signal.addEventListener('abort', stop);
  try {
    if (!(await connects(line, server, signal))) return 'blocked';
    const time_us = Math.round(plan.seconds * 1e6);
    const load = { type: 'load', stream: 1, direction, time_us } as const;
    const came = await line.load(load, plan.patience * 1000, (series) =>
      glance({ done: Math.min(1, series.at(-1)![0] / time_us), throughput: factor * lately([series], glanced) }),
    );
    if (signal.aborted) throw aborted(signal);
    const rate = came ? fastest(came) : 0;
    if (rate > 0) return figure('free_capacity', direction, factor * rate);
    const words = `The load that gives way has no result: ${line.reason || 'nothing came'}.`;
    const status = line.code && refusals[line.code];
    throw status ? new CheckError('refused', words, { status }) : new CheckError('stopped', words);
  } finally {
    signal.removeEventListener('abort', stop);
    line.close();
  }
}

/** The rate of the fastest two seconds, bit/s; 0: there were none. */
export function fastest(came: Series): number {
  let rate = 0;
  let from = 0;
  for (const [at, bytes] of came) {
    while (at - (came[from + 1]?.[0] ?? at) >= freeWindow) from++;
    const [then, before] = came[from]!;
    if (at - then >= freeWindow) rate = Math.max(rate, ((bytes - before) * 8e6) / (at - then));
  }
  return rate;
}
