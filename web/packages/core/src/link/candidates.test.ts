import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { settle } from '../testing/clock.ts';
import { description } from '../testing/connection.ts';
import { mdns, reflexive, setUp } from '../testing/link.ts';
import { isLocalAddress } from './address.ts';
import { type Candidate, parseCandidate, writeCandidate } from './candidates.ts';

interface Vector {
  name: string;
  text: string;
  decoded: Candidate | null;
  local?: boolean;
}

const file = new URL('../../../../../spec/vectors/sdp.json', import.meta.url);
const { candidates } = JSON.parse(readFileSync(file, 'utf8')) as { candidates: Vector[] };

describe('candidates', () => {
  test('the file is whole', () => expect(candidates.length).toBeGreaterThan(100));

  test.each(candidates)('$name', ({ text, decoded, local }) => {
    const parsed = parseCandidate(text);
    expect(parsed).toEqual(decoded ?? undefined);
    if (!parsed) return;
    expect(isLocalAddress(parsed.address)).toBe(local);
    expect(parseCandidate(writeCandidate(parsed))).toEqual(parsed);
  });

  test('the names of hosts of their own are local', () => {
    for (const host of ['ab.local', 'localhost', '[::1]', '[::ffff:a00:1]', '[2002:a00:1::1]', '[fd00::1]', '10.0.0.1'])
      expect(isLocalAddress(host), host).toBe(true);
    for (const host of ['video.example.com', 'local.example', '10.0.example', '[2606:4700::1111]', '[2001:db8::1]'])
      expect(isLocalAddress(host), host).toBe(false);
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

  const hidden = 'candidate:1 1 udp 2113937151 192.168.1.1 80 typ host';
  test.each([
    ['LF', (sdp: string) => sdp.replaceAll('\r\n', '\n')],
    ['CRLF', (sdp: string) => sdp],
    ['a mapped address', (sdp: string) => sdp.replace('192.168.1.1', '::ffff:c0a8:101')],
    ['a tab', (sdp: string) => sdp.replace(' 192', '\t192')],
    ['a line that CR hides', (sdp: string) => sdp.replace('\r\na=candidate', '\ra=candidate')],
    ['another attribute', (sdp: string) => sdp.replace('a=candidate', 'a=x\na=remote-candidates')],
  ])('a private one does not pass by %s', async (_, spell) => {
    for (const kind of ['offer', 'answer'] as const) {
      const { connection, link } = setUp({ gated: Promise.resolve(true) });
      const sdp = spell(`${description}a=${hidden}\r\na=${reflexive}\r\n`);
      const plan = { v: 1, data: 2, message: 16_384 };
      if (kind === 'offer') link.answer(sdp, plan);
      else {
        link.offer();
        await settle();
        link.receive({ kind, sdp, plan });
      }
      await settle();
      // What is no description at all is not handed on.
      expect(connection.remoteDescription?.sdp ?? '').not.toMatch(/192\.168|c0a8/i);
      link.receive({ kind: 'candidate', candidate: spell(`a=${hidden}`) });
      await settle();
      expect(connection.candidates.join()).not.toMatch(/192\.168|c0a8/i);
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
