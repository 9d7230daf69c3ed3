/** What a viewer is to its swarm: spec/tracker-protocol.md, "Role". */

import type { Policy, ViewerRole } from '../session/messages.ts';

/** What a viewer knows of its line and clock as it joins. */
export interface Line {
  /** The viewer asked to save data, or the line is cellular. */
  metered: boolean;
  /** A phone or tablet whose browser does not say how it is connected. */
  unknown: boolean;
  /** The clock is too coarse to give way by. */
  coarse: boolean;
}

/** Without a policy it is that before the welcome. */
export const roleOf = (
  policy: Pick<Policy, 'role' | 'control_group' | 'unknown_line'> | null | undefined,
  line: Line,
): ViewerRole => {
  if (!policy || policy.control_group) return 'off';
  const { role, unknown_line } = policy;
  return !(line.metered || line.coarse || (line.unknown && unknown_line !== 'full')) || role === 'leech'
    ? role
    : role === 'full'
      ? 'leech'
      : 'off';
};
