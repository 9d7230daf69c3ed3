/** Links of a viewer in a test, between connections that are not real ones. */
import { vi } from 'vitest';
import { inspection } from '../link/inspect.ts';
import { createLinks, type LinkSettings } from '../link/links.ts';
import type { Policy, SignalIn } from '../session/messages.ts';
import { FakeClock } from './clock.ts';
import { FakeConnection } from './connection.ts';

export const plan = { v: 1, data: 2, message: 16_384 };
export const hexA = '00000000000000000000000000000001';
export const hexB = '00000000000000000000000000000002';

export const policy: Policy = {
  role: 'full',
  control_group: false,
  prefetch: false,
  waste_bytes: 0,
  max_links: 8,
  relay: 'allow',
  local: 'ask',
  signed_manifests: 'off',
  unknown_line: 'leech',
};

export function setUp(more: Partial<LinkSettings> = {}, self = '00000000000000000000000000000009', before = () => {}) {
  const clock = new FakeClock();
  const connections: FakeConnection[] = [];
  let ids = 0;
  const told = { signal: vi.fn(), opened: vi.fn(), failed: vi.fn(), changed: vi.fn(), caught: vi.fn() };
  const links = createLinks({
    environment: {
      clock,
      createConnection: (configuration) => {
        before();
        const connection = new FakeConnection(configuration);
        connections.push(connection);
        return connection as unknown as RTCPeerConnection;
      },
      randomBytes: (length) => new Uint8Array(length).fill(++ids),
      localAccess: async () => false,
    },
    inspection: () => inspection,
    greeting: () => undefined,
    ...told,
  });
  links.configure({ self, iceServers: [], policy, maxLinks: 3, ...more });
  links.begin([]);
  const signals = () => told.signal.mock.calls.map(([to, link, body]) => ({ to, link, ...body }));
  return { clock, connections, links, ...told, signals };
}

export const from = (peer: string, link: string, body: object) =>
  ({ type: 'signal', swarm: '', from: peer, role: 'viewer', link, ...body }) as SignalIn;
