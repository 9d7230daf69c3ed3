/** The figures of the network check (spec/probe.md). */
export * from './netstat/aim.ts';
export * from './netstat/arrival.ts';
export * from './netstat/delay.ts';
export * from './netstat/figures.ts';
export * from './netstat/record.ts';
export * from './netstat/responsiveness.ts';
export * from './netstat/summary.ts';
export * from './netstat/tcp.ts';
