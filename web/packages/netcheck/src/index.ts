/**
 * What is this client's line good for? The network check (spec/probe.md), run by a page against `leeway probe serve`, and its
 * figures.
 */
export { NetworkCheck, type NetworkCheckOptions, type Phase, type Progress, type RunOptions } from './check.ts';
export { CheckError, type CheckErrorCode, type CheckErrorDetails, type RefusalStatus } from './error.ts';
export * from './netstat/aim.ts';
export * from './netstat/arrival.ts';
export * from './netstat/delay.ts';
export * from './netstat/figures.ts';
export * from './netstat/nat.ts';
export * from './netstat/record.ts';
export * from './netstat/responsiveness.ts';
export * from './netstat/summary.ts';
export * from './netstat/tcp.ts';
export * from './netstat/window.ts';
export type { Plan } from './plan.ts';
export type { CandidateType, Reachability } from './reach.ts';
export { figureOf, type Results, scoresOf } from './results.ts';
