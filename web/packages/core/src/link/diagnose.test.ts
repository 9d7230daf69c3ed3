import { describe, expect, test } from 'vitest';
import { settle } from '../testing/clock.ts';
import type { FakeConnection } from '../testing/connection.ts';
import { mdns, reflexive, setUp } from '../testing/link.ts';
import { establishMs, type LinkOptions } from './link.ts';

describe('an attempt that does not open', () => {
  async function attempt(
    stats: FakeConnection['stats'],
    state: RTCIceConnectionState,
    more: Partial<LinkOptions> = {},
    candidate = reflexive,
  ) {
    const s = setUp(more);
    await s.offered();
    s.link.receive({ kind: 'candidate', candidate });
    s.connection.stats = stats;
    s.connection.iceConnectionState = state;
    await s.clock.advance(establishMs);
    expect(s.connection.closed).toBe(true);
    expect(s.clock.pending).toBe(0);
    return s.failed.mock.calls[0]![0];
  }
  const local = (candidateType: string, more = {}) => ({
    id: `${candidateType}${JSON.stringify(more)}`,
    type: 'local-candidate',
    candidateType,
    ...more,
  });

  test('times out', async () => {
    expect(await attempt([local('host'), { id: 'r', type: 'remote-candidate' }], 'checking')).toEqual({
      fail: 'timeout',
    });
  });

  test('is of a peer that is gone, as long as none has answered', async () => {
    const { clock, connection, link, failed } = setUp();
    link.offer();
    await settle();
    connection.stats = [local('host'), { id: 'r', type: 'remote-candidate' }];
    connection.iceConnectionState = 'checking';
    await clock.advance(establishMs);
    expect(failed).toHaveBeenCalledWith({ fail: 'gone' });
  });

  test('is kept from the local network without a word', async () => {
    const gated = { gated: Promise.resolve(true) };
    const lna = { fail: 'lna-denied', reason: 'lna-denied' };
    expect(await attempt([local('host')], 'new', gated, reflexive)).toEqual(lna);
    expect(await attempt([local('host')], 'new', gated, mdns)).toEqual(lna);
    // Here it is the browser that says nothing, having asked the viewer perhaps.
    expect(await attempt([local('host')], 'new', { ...gated, asks: true }, mdns)).toEqual(lna);
    expect(await attempt([{ id: 'r', type: 'remote-candidate' }], 'checking', { ...gated, asks: true }, mdns)).toEqual({
      fail: 'timeout',
    });
  });

  test('finds UDP blocked when no server answers', async () => {
    const blocked = await attempt([local('host')], 'checking', { udpServers: true });
    expect(blocked).toEqual({ fail: 'udp-blocked', reason: 'udp-blocked' });
  });

  test('sees a symmetric NAT by its two faces', async () => {
    const found = await attempt(
      [
        local('srflx', { relatedAddress: '0.0.0.0', relatedPort: 5, address: '203.0.113.1', port: 1 }),
        local('srflx', { relatedAddress: '0.0.0.0', relatedPort: 5, address: '203.0.113.1', port: 2 }),
      ],
      'checking',
      { udpServers: true },
    );
    expect(found).toEqual({ fail: 'timeout', reason: 'symmetric-nat' });
  });

  test.each([undefined, 0])('sees none in two faces whose port is not known: %s', async (relatedPort) => {
    const faces = ['198.51.100.1', '203.0.113.1'].map((address) => local('srflx', { relatedPort, address }));
    expect(await attempt(faces, 'new', { udpServers: true })).toEqual({ fail: 'timeout' });
  });

  test('finds UDP blocked where the channels close before the connection fails', async () => {
    const { clock, connection, failed, offered } = setUp({ udpServers: true });
    await offered();
    connection.stats = [local('host')];
    connection.iceConnectionState = 'failed';
    connection.channels[0]!.onclose!();
    connection.become('failed');
    await clock.advance(0);
    expect(failed.mock.calls).toEqual([[{ fail: 'udp-blocked', reason: 'udp-blocked' }]]);
  });

  test('hears the reason of the other side', async () => {
    const { link, failed, signal, offered } = setUp();
    await offered();
    signal.mockClear();
    link.receive({ kind: 'fail', reason: 'busy' });
    expect(failed).toHaveBeenCalledWith({ fail: 'busy' });
    expect(signal).not.toHaveBeenCalled();
  });

  test('has a reason of its own where the other side saw a time-out alone', async () => {
    const { clock, connection, link, failed, signal, offered } = setUp({ udpServers: true });
    await offered();
    signal.mockClear();
    connection.stats = [local('host')];
    connection.iceConnectionState = 'checking';
    link.receive({ kind: 'fail', reason: 'timeout' });
    await clock.advance(0);
    expect(failed).toHaveBeenCalledWith({ fail: 'udp-blocked', reason: 'udp-blocked' });
    expect(signal).not.toHaveBeenCalled();
  });
});
