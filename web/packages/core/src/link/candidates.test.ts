import { describe, expect, test } from 'vitest';
import { settle } from '../testing/clock.ts';
import { mdns, reflexive, setUp } from '../testing/link.ts';
import { isLocalAddress, parseCandidate, stripLocalCandidates } from './candidates.ts';

describe('candidates', () => {
  test('local addresses are known', () => {
    for (const address of [
      'ab.local',
      '10.1.2.3',
      '172.16.0.1',
      '192.168.1.1',
      '127.0.0.1',
      '169.254.1.1',
      '100.64.0.1',
      '::1',
      'fd00::1',
      'fe80::1',
      '::ffff:10.0.0.1',
      'localhost',
    ]) {
      expect(isLocalAddress(address), address).toBe(true);
    }
    for (const address of ['203.0.113.1', '172.32.0.1', '100.128.0.1', '2001:db8::1', 'video.example.com']) {
      expect(isLocalAddress(address), address).toBe(false);
    }
  });

  test('are read, and stripped from a description', () => {
    expect(parseCandidate(`a=${reflexive}`)).toEqual({ address: '203.0.113.7', type: 'srflx' });
    expect(parseCandidate('candidate:1 1 udp')).toBeUndefined();
    const sdp = ['v=0', `a=${mdns}`, `a=${reflexive}`, 'a=mid:0', ''].join('\r\n');
    expect(stripLocalCandidates(sdp)).toBe(['v=0', `a=${reflexive}`, 'a=mid:0', ''].join('\r\n'));
  });

  test('private ones are left out where the page may not use them', async () => {
    for (const asks of [false, true]) {
      const { connection, link, offered } = setUp({ gated: Promise.resolve(true), asks });
      await offered();
      link.receive({ kind: 'candidate', candidate: mdns });
      link.receive({ kind: 'candidate', candidate: reflexive });
      await settle();
      expect(connection.candidates).toEqual(asks ? [mdns, reflexive] : [reflexive]);
    }
  });

  test('more than 64 are not taken', async () => {
    const { connection, link, offered } = setUp();
    await offered();
    for (let i = 0; i < 100; i++) link.receive({ kind: 'candidate', candidate: reflexive });
    await settle();
    await settle();
    await settle();
    await settle();
    expect(connection.candidates.length).toBeLessThanOrEqual(65);
  });
});
