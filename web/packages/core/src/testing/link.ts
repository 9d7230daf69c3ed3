/** A link over a connection that a test moves. */

import { vi } from 'vitest';
import { inspection } from '../link/inspect.ts';
import { createLink, type LinkOptions } from '../link/link.ts';
import { FakeClock, settle } from './clock.ts';
import { description, FakeConnection } from './connection.ts';

export const mdns = 'candidate:1 1 udp 2113937151 6a2f.local 50000 typ host';
export const reflexive = 'candidate:2 1 udp 1677729535 203.0.113.7 50000 typ srflx raddr 0.0.0.0 rport 0';
export const plan = { v: 1, data: 2, message: 16_384 };

export function setUp(more: Partial<LinkOptions> = {}) {
  const clock = new FakeClock();
  const connection = new FakeConnection();
  const told = { signal: vi.fn(), opened: vi.fn(), failed: vi.fn(), closed: vi.fn() };
  const link = createLink({
    id: 'L',
    peer: 'aa',
    role: 'viewer',
    connection: connection as unknown as RTCPeerConnection,
    clock,
    gated: Promise.resolve(false),
    asks: false,
    udpServers: false,
    relayOnly: false,
    inspection: () => inspection,
    greeting: () => ({ said: [new Uint8Array([1, 2, 3])], held: ['ab'] }),
    ...told,
    ...more,
  });
  const offered = async (answer = plan) => {
    link.offer();
    await settle();
    link.receive({ kind: 'answer', sdp: description, plan: answer });
    await settle();
  };
  const open = async (answer = plan) => {
    await offered(answer);
    connection.openAll();
    await settle();
  };
  return { clock, connection, link, ...told, offered, open };
}
