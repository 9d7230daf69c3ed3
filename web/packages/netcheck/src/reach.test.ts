import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { relaysOf, stunServers, testReach } from './reach.ts';

const servers = [
  { host: 'a.example.com', port: 3478 },
  { host: 'b.example.com', port: 3478 },
];

interface Gathered {
  type: string;
  address: string;
  port: number;
  relatedAddress?: string;
  relatedPort?: number;
}

/** Browsers whose candidates are those of a function of the STUN servers that are asked. */
function browser(candidates: (urls: string[]) => Gathered[], ends = true) {
  const open = new Set<object>();
  vi.stubGlobal(
    'RTCPeerConnection',
    class {
      onicecandidate: ((event: { candidate: unknown }) => void) | null = null;
      constructor(private readonly configuration: { iceServers: { urls: string | string[] }[] }) {
        open.add(this);
      }
      createDataChannel() {}
      async createOffer() {
        return {};
      }
      async setLocalDescription() {
        const urls = this.configuration.iceServers.flatMap((server) => server.urls);
        for (const candidate of candidates(urls))
          this.onicecandidate?.({ candidate: { protocol: 'udp', ...candidate } });
        if (ends) this.onicecandidate?.({ candidate: null });
      }
      close() {
        open.delete(this);
      }
    },
  );
  return open;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const host = { type: 'host', address: 'x.local', port: 5000 };
const hidden = { relatedAddress: '0.0.0.0', relatedPort: 9 };
const reflexive = (port: number, more: object = hidden) => ({ type: 'srflx', address: '192.0.2.7', port, ...more });
const signal = () => new AbortController().signal;

test.each<[string, (urls: string[]) => Gathered[], object]>([
  ['one mapping for all', () => [host, reflexive(40_000)], { ipv4: 'endpoint-independent', ipv6: 'no-answer' }],
  ['one for each server', (urls) => [host, ...urls.map((_, n) => reflexive(40_000 + n))], { ipv4: 'dependent' }],
  [
    'one server alone',
    (urls) => (urls.some((url) => url.includes('a.')) ? [host, reflexive(40_000)] : [host]),
    { ipv4: 'unknown', candidates: ['host', 'srflx'] },
  ],
  ['no server', () => [host], { ipv4: 'no-answer', ipv6: 'no-answer', candidates: ['host'] }],
  [
    'no NAT',
    () => [{ type: 'srflx', address: '192.0.2.7', port: 5000, relatedAddress: '192.0.2.7', relatedPort: 5000 }],
    { ipv4: 'untranslated', candidates: ['srflx'] },
  ],
  ['two networks', () => [host, reflexive(40_000), reflexive(50_000)], { ipv4: 'endpoint-independent' }],
  [
    'two networks, one mapping each for each server',
    (urls) => urls.flatMap((_, n) => [reflexive(40_000 + n), reflexive(50_000 + n)]),
    { ipv4: 'dependent' },
  ],
  [
    'IPv6 alone',
    () => [host, { type: 'srflx', address: '2001:db8::7', port: 5000, relatedAddress: '::', relatedPort: 9 }],
    { ipv4: 'no-answer', ipv6: 'endpoint-independent' },
  ],
])('%s', async (_, candidates, want) => {
  const open = browser(candidates);
  expect(await testReach(servers, [], signal())).toMatchObject(want);
  expect(open.size).toBe(0);
});

test('relays that a server names are taken as far as a browser would take them', () => {
  const good = {
    urls: ['turn:a.example.com:3478?transport=udp', 'turns:[2001:db8::1]'],
    username: 'u',
    credential: 'c',
  };
  expect(relaysOf([good])).toEqual([good]);
  expect(relaysOf([{ ...good, urls: ['turn:a', 'http://a', 'stun:a', 7, 'turn:a b'] }])).toEqual([
    { ...good, urls: ['turn:a'] },
  ]);
  for (const bad of [undefined, 'x', [null], [7], [{}], [{ ...good, credential: 1 }], [{ ...good, urls: 'turn:a' }]])
    expect(relaysOf(bad)).toEqual([]);
  expect(relaysOf(Array(9).fill(good))).toHaveLength(4);
});

test('relays are asked where there are credentials', async () => {
  browser((urls) =>
    urls.some((url) => url.startsWith('turn:')) ? [host, { type: 'relay', address: '192.0.2.1', port: 1 }] : [host],
  );
  const relays = [{ urls: 'turn:a.example.com', username: 'u', credential: 'c' }];
  expect((await testReach(servers, relays, signal())).candidates).toEqual(['host', 'relay']);
});

test('a browser that does not end is not waited for, nor when the check is ended', async () => {
  const open = browser(() => [host], false);
  const late = testReach(servers, [], signal());
  await vi.advanceTimersByTimeAsync(2_000);
  expect((await late).candidates).toEqual(['host']);
  const end = new AbortController();
  const ended = testReach(servers, [], end.signal);
  end.abort();
  await ended;
  expect(open.size).toBe(0);
});

test('what a server names', () => {
  const named = ['a.example.com:3478', ':4601', '[2001:db8::1]:3478', 'no port', 'a:0'];
  expect(stunServers(named, 'own')).toEqual([
    { host: 'a.example.com', port: 3478 },
    { host: 'own', port: 4601 },
    { host: '[2001:db8::1]', port: 3478 },
  ]);
  expect(stunServers(['a:70000', 'a b:1', 7, null, 'fifth:1'], 'own')).toEqual([]);
  expect(stunServers('a:1', 'own')).toEqual([]);
});
