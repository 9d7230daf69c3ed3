/** Turns a growing byte counter into a smooth rate: pieces come in bursts, a person wants to see a flow. */
export class RateMeter {
  private last: { bytes: number; at: number } | undefined;
  private smooth = 0;
  private readonly halfLifeMs: number;

  constructor(halfLifeMs = 1800) {
    this.halfLifeMs = halfLifeMs;
  }

  /** Takes the counter's value at a time (ms); returns bytes per second. A counter that falls begins anew. */
  take(bytes: number, at: number): number {
    const last = this.last;
    this.last = { bytes, at };
    if (last === undefined || at <= last.at) return this.smooth;
    const span = at - last.at;
    const rate = (Math.max(0, bytes - last.bytes) * 1000) / span;
    const weight = 1 - 0.5 ** (span / this.halfLifeMs);
    this.smooth += (rate - this.smooth) * weight;
    if (this.smooth < 500) this.smooth = rate > 0 ? this.smooth : 0;
    return this.smooth;
  }
}

/** One meter a name; those not asked for in a round are forgotten. */
export class RateMeters {
  private meters = new Map<string, { meter: RateMeter; at: number }>();

  take(name: string, bytes: number, at: number): number {
    let entry = this.meters.get(name);
    if (entry === undefined) {
      entry = { meter: new RateMeter(), at };
      // What came before the first look counts as if it began at zero a moment ago, so that a new link shows at once.
      this.meters.set(name, entry);
    }
    entry.at = at;
    return entry.meter.take(bytes, at);
  }

  /** Drops the meters not taken since `before` (ms). */
  sweep(before: number): void {
    for (const [name, entry] of this.meters) if (entry.at < before) this.meters.delete(name);
  }
}
