import { describe, expect, test } from 'vitest';
import { peerA, swarm, welcome } from '../testing/socket.ts';
import { fromBase64url, idToHex, toBase64url } from './base64.ts';
import { parseIncoming } from './messages.ts';

const parse = (value: unknown) => parseIncoming(JSON.stringify(value));

describe('base64url', () => {
  test('goes there and back, in one spelling only', () => {
    for (let n = 0; n < 40; n++) {
      const bytes = Uint8Array.from({ length: n }, (_, i) => (i * 37 + n) & 255);
      expect(fromBase64url(toBase64url(bytes))).toEqual(bytes);
      expect(toBase64url(bytes)).toBe(Buffer.from(bytes).toString('base64url'));
    }
    for (const bad of ['A', 'AB', 'A=', 'AA==', 'A+', 'A/', 'é']) expect(fromBase64url(bad)).toBeUndefined();
    expect(idToHex(peerA)).toBe('00000000000000000000000000000001');
  });
});

describe('incoming messages', () => {
  test('a welcome takes defaults for what is missing and drops what is unknown', () => {
    const parsed = parse({ ...welcome({ policy: { surprise: 1 } }), extra: true });
    expect(parsed).toMatchObject({
      type: 'welcome',
      policy: { control_group: false, prefetch: false, waste_bytes: 0 },
    });
    expect(JSON.stringify(parsed)).not.toContain('surprise');
  });

  test.each([
    ['no JSON', '{'],
    ['no object', '7'],
    ['no type', '{}'],
    ['a prototype as a type', '{"type":"constructor","swarm":1}'],
    ['too deep', `{"type":"welcome","x":${'['.repeat(16)}${']'.repeat(16)}}`],
    ['too long', `{"type":"keys","x":"${'x'.repeat(70_000)}"}`],
  ])('%s is refused', (_name, text) => {
    const parsed = parseIncoming(text);
    expect(['malformed', 'unknown']).toContain(parsed);
  });

  test.each([
    [{ type: 'signal', swarm, from: 'short', link: peerA, kind: 'end' }],
    [{ type: 'signal', swarm, from: peerA, link: peerA, kind: 'toString' }],
    [{ type: 'signal', swarm, from: peerA, link: peerA, kind: 'offer', sdp: 'v=0' }],
    [
      {
        type: 'signal',
        swarm,
        from: peerA,
        link: peerA,
        kind: 'offer',
        sdp: 'v=0',
        plan: { v: 1, data: 9, message: 2000 },
      },
    ],
    [{ type: 'signal', swarm, from: peerA, link: peerA, kind: 'candidate', candidate: 'x'.repeat(513) }],
    [{ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'king' }] }],
    [{ type: 'revoke', revocations: [{ site: 'demo' }] }],
    [{ type: 'reconnect', after_ms: -1 }],
  ])('%j is malformed', (message) => {
    expect(parse(message)).toBe('malformed');
  });

  test('both kinds of revocation are read', () => {
    const revocations = [{ key_id: 'AAAAAAAAAAA' }, { site: 'demo', prefix: '/', min_issued_at: 1 }];
    expect(parse({ type: 'revoke', revocations })).toEqual({ type: 'revoke', revocations });
  });

  test('nothing that arrives makes it throw', () => {
    const values = [null, 0, '', [], {}, true, { type: null }, { type: {} }, 'x'];
    for (const type of ['welcome', 'signal', 'introduce', 'error', 'keys', 'revoke', 'policy', 'reconnect', 'joined']) {
      for (const value of values) {
        for (const key of Object.keys(welcome())) parse({ ...welcome(), type, [key]: value });
        for (const key of ['swarm', 'peers', 'from', 'kind', 'link', 'sdp', 'plan']) {
          parse({ type, swarm, from: peerA, link: peerA, kind: 'offer', sdp: 'v', plan: {}, peers: [], [key]: value });
        }
      }
    }
  });
});
