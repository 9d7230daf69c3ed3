/** What a viewer is to its swarm: spec/tracker-protocol.md, "Role". */

import type { Line } from '../environment.ts';
import type { Policy, ViewerRole } from '../session/messages.ts';

/** Without a policy it is that before the welcome. */
export const roleOf = (
  policy: Pick<Policy, 'role' | 'control_group' | 'unknown_line'> | null | undefined,
  line: Line,
): ViewerRole => {
  if (!policy || policy.control_group) return 'off';
  const { role, unknown_line } = policy;
  const takesOnly = line.metered || line.coarse || (line.unknown && unknown_line !== 'full');
  if (!takesOnly || role === 'leech') return role;
  return role === 'full' ? 'leech' : 'off';
};
