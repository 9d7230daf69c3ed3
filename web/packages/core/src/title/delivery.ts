/** Whether peers deliver a title, as its policy and its own experience have it. */

import type { Environment } from '../environment.ts';
import type { NoticeCode } from '../events.ts';
import type { LinkSettings } from '../link/links.ts';
import type { Reason } from '../ports.ts';
import { idToHex } from '../session/base64.ts';
import type { ViewerRole, Welcome } from '../session/messages.ts';
import type { AheadRules } from '../transfer/ahead.ts';
import { roleOf } from './role.ts';

export interface DeliveryHost {
  welcome(): Welcome | undefined;
  environment: Pick<Environment, 'line' | 'battery'>;
  /** False: the page has something against fetching ahead, or against keeping segments on the disk. */
  prefetch?: boolean;
  disk?: boolean;
  notice(code: NoticeCode, message: string, hint: string): void;
  /** It is on, or off for another reason than before. */
  changed(reason: Reason | null): void;
  /** It is clear that nothing is to be waited for. */
  decided(): void;
}

export interface Delivery {
  /** Why it is off, while it is. */
  off(): Reason | null;
  setOff(reason: Reason | null): void;
  /** It does not come for this title, as things stand. */
  leaveOut(reason: Reason, code?: NoticeCode, message?: string, hint?: string): void;
  /** The same, and no change of the policy brings it back. */
  bar: Delivery['leaveOut'];
  /** What this viewer is in its swarm. */
  role(): ViewerRole;
  /** What the policy says about links. */
  settings(): LinkSettings;
  /** The policy has changed. `blocked`: why no link opens; `anew`: the title may be delivered after all. */
  decide(blocked: Reason | null, anew?: boolean): void;
  /** What the site and the device say of fetching ahead. */
  ahead(): AheadRules;
}

const seePolicy = "See the site's policy.";

export const createDelivery = (host: DeliveryHost): Delivery => {
  let off: Reason | null = null;
  let barred = false;

  const setOff = (reason: Reason | null) => {
    if (off === reason) return;
    off = reason;
    host.changed(reason);
  };

  const leaveOut = (reason: Reason, code?: NoticeCode, message = '', hint = '') => {
    if (code && off !== reason) host.notice(code, message, hint);
    setOff(reason);
    host.decided();
  };

  const role = () => roleOf(host.welcome()?.policy, host.environment.line());

  return {
    off: () => off,
    setOff,
    leaveOut,
    bar(...why) {
      barred = true;
      leaveOut(...why);
    },
    role,
    settings() {
      const { session, ice_servers, policy, limits } = host.welcome()!;
      return {
        self: idToHex(session),
        iceServers: ice_servers,
        policy: { ...policy, role: role() },
        maxLinks: Math.min(policy.max_links, limits.links),
      };
    },
    decide(blocked, anew) {
      barred &&= !anew;
      if (barred) return;
      if (role() !== 'off') setOff(blocked);
      else if (host.welcome()!.policy.control_group) {
        leaveOut('control-group', 'control-group', 'This viewer is in the control group.', seePolicy);
      } else leaveOut('policy', 'policy-off', 'Peer delivery is off for this viewer.', seePolicy);
    },
    ahead() {
      const { policy } = host.welcome()!;
      return {
        ...policy,
        allowed: policy.prefetch && host.prefetch !== false,
        disk_bytes: host.disk !== false && policy.disk_bytes,
        role: role(),
        battery: host.environment.battery(),
      };
    },
  };
};
