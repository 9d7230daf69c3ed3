/** What a check does, and for how long. */
export interface Plan {
  /** Find out what is reached by UDP, and by which kind of NAT, where the server names STUN servers. */
  reach: boolean;
  /** Test the way down. */
  download: boolean;
  /** Test the way up. */
  upload: boolean;
  /** Test loss, order and delay by a data channel, where the server has one. */
  quality: boolean;
  /**
   * Download and upload leave the line to other traffic, and measure what that leaves: `free_capacity`. Then reach and quality
   * are left out unless they are asked for, and connections and rampUp mean nothing.
   */
  givesWay: boolean;
  /** WebSockets at a time. A server bounds them by address. */
  connections: number;
  /** Seconds of each test, at most 10. */
  seconds: number;
  /** Seconds of those that no throughput is computed from. */
  rampUp: number;
  /** Seconds of an idle line before. */
  idle: number;
  /** Seconds that a silent server is waited for. */
  patience: number;
}

const usual: Plan = {
  reach: true,
  download: true,
  upload: true,
  quality: true,
  givesWay: false,
  connections: 4,
  seconds: 10,
  rampUp: 2,
  idle: 1.5,
  patience: 5,
};

const bounds = {
  connections: [1, 16],
  seconds: [1, 10],
  rampUp: [0, 9],
  idle: [0, 10],
  patience: [0.1, 10],
} as const;

/** The usual plan with changes. Throws a `RangeError` that names what is out of its bounds. */
export function planOf(changes: Partial<Plan> = {}): Plan {
  const plan = { ...usual, ...(changes.givesWay && { reach: false, quality: false }), ...changes };
  for (const [name, [least, most]] of Object.entries(bounds)) {
    const value = plan[name as keyof typeof bounds];
    if (!(value >= least && value <= most)) {
      throw new RangeError(`The plan's ${name} is ${value}; it is ${least} to ${most}.`);
    }
  }
  if (!Number.isInteger(plan.connections)) throw new RangeError('The plan has a part of a connection.');
  if (plan.givesWay && plan.seconds < 2) throw new RangeError('A load that gives way takes two seconds at the least.');
  if (!plan.givesWay && plan.rampUp >= plan.seconds) throw new RangeError('The ramp-up takes the whole of a test.');
  return plan;
}
