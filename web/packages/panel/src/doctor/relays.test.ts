import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Examination } from './examination.ts';
import { fixes } from './fixes.ts';
import { checkRelays } from './relays.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** What the check finds of a relay by UDP, in a browser that says these codes of its servers; none: it says nothing at all. */
async function found(codes: { turn?: number; stun?: number }) {
  class Connection {
    onicecandidateerror?: (event: { errorCode: number }) => void;
    readonly #code: number | undefined;
    constructor({ iceServers: [server] }: { iceServers: { urls: string }[] }) {
      this.#code = server!.urls.startsWith('turn') ? codes.turn : codes.stun;
    }
    createDataChannel() {}
    close() {}
    async setLocalDescription() {
      if (this.#code) setTimeout(() => this.onicecandidateerror?.({ errorCode: this.#code! }), 100);
    }
  }
  vi.stubGlobal('RTCPeerConnection', Connection);
  const greeting = { ice_servers: [{ urls: ['turn:turn.example.com:3478'], username: 'u', credential: 'c' }] };
  const finding = checkRelays({ greeting, options: { tracker: 'wss://t.example' } } as unknown as Examination);
  await vi.advanceTimersByTimeAsync(11_000);
  return [await finding].flat()[0];
}

it('a relay whose name is not known is dead, whatever the browser says of STUN there', async () => {
  expect(await found({ stun: 701 })).toMatchObject({ code: 'turn-dead' });
  expect(await found({})).toMatchObject({ code: 'turn-dead' });
  expect(await found({ turn: 701 })).toMatchObject({ code: 'turn-dead' });
});

it('a relay that the browser does not take is one to take out', async () => {
  vi.stubGlobal(
    'RTCPeerConnection',
    class {
      constructor() {
        throw new Error('no such transport');
      }
    },
  );
  const greeting = { ice_servers: [{ urls: ['turn:turn.example.com?transport=quic', 'stun:stun.example.com'] }] };
  const found = await checkRelays({ greeting, options: { tracker: 'wss://t.example' } } as unknown as Examination);
  expect(found).toMatchObject([
    { code: 'turn-dead', fix: fixes['turn-dead'] },
    { code: 'stun-dead', fix: fixes['stun-dead'] },
  ]);
});

it('a relay that refuses has said so', async () => {
  expect(await found({ turn: 401 })).toMatchObject({ code: 'turn-refused' });
});
