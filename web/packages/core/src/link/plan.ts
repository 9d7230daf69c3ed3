/** The channel plan of a link: which channels there are and how large a message may be (spec/peer-protocol.md). */

import type { PlanMessage } from '../session/messages.ts';

export const controlLabel = 'lw.control';
export const ackLabel = 'lw.ack';
export const dataLabels = (count: number): string[] => Array.from({ length: count }, (_, i) => `lw.data.${i}`);

/** What this library offers and accepts. */
export const defaultPlan: PlanMessage = { v: 1, data: 2, message: 16_384 };

/** A control message, bytes, at most. */
export const maxControlMessage = 65_535;

/** The plan that holds for both sides: the lower figures. Undefined if there is no common version. */
export function agree(theirs: PlanMessage, ours: PlanMessage): PlanMessage | undefined {
  if (theirs.v !== ours.v) return undefined;
  return { v: ours.v, data: Math.min(theirs.data, ours.data), message: Math.min(theirs.message, ours.message) };
}
