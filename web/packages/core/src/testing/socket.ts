/** Sockets of a tracker that a test plays. */

import type { OpenSocket, SocketHandlers } from '../session/session.ts';

export interface FakeSocket {
  url: string;
  protocol: string;
  sent: Record<string, unknown>[];
  closed: number | undefined;
  handlers: SocketHandlers;
  /** A message of the tracker. */
  say(message: object): void;
}

export class FakeTracker {
  readonly sockets: FakeSocket[] = [];
  refuse = false;

  readonly open: OpenSocket = (url, protocol, handlers) => {
    if (this.refuse) throw new Error('refused');
    const socket: FakeSocket = {
      url,
      protocol,
      sent: [],
      closed: undefined,
      handlers,
      say: (message) => handlers.message(JSON.stringify(message)),
    };
    this.sockets.push(socket);
    return {
      send: (text) => {
        socket.sent.push(JSON.parse(text));
      },
      close: (code) => {
        socket.closed = code;
      },
    };
  };

  get last(): FakeSocket {
    const socket = this.sockets[this.sockets.length - 1];
    if (!socket) throw new Error('no socket was opened');
    return socket;
  }
}

export const peerA = 'AAAAAAAAAAAAAAAAAAAAAQ';
export const peerB = 'AAAAAAAAAAAAAAAAAAAAAg';
export const self = 'AAAAAAAAAAAAAAAAAAAACQ';
export const swarm = 'AQEBAQEBAQEBAQEBAQEBAQ';

/** A whole policy, as the tracker sends it. */
const policyWith = (more: object = {}) => ({
  role: 'full',
  max_links: 8,
  relay: 'allow',
  local: 'if-granted',
  signed_manifests: 'off',
  unknown_line: 'leech',
  ...more,
});

/** A welcome; `policy` is what is special about its policy. */
export function welcome(special: object = {}): object {
  const { policy, ...more } = special as { policy?: object };
  return {
    type: 'welcome',
    session: self,
    ticket: 'ticket-1',
    resumed: false,
    server_time_ms: 1_790_000_000_000,
    site: { name: 'demo', hosts: ['video.example.com'] },
    ice_servers: [],
    verify_keys: [],
    revocations: [],
    policy: policyWith(policy),
    limits: { message_bytes: 65_536, swarms: 4, messages_per_second: 50, links: 32 },
    update_interval_ms: 10_000,
    stats_interval_ms: 10_000,
    ...more,
  };
}
