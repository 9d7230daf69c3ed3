import { afterEach, expect, test, vi } from 'vitest';
import { settle } from '../testing/clock.ts';
import { tabsPort } from './tabs.ts';

afterEach(() => vi.unstubAllGlobals());

/** A browser with Web Locks, and with these channels. */
function browser(BroadcastChannel?: unknown) {
  const held: string[] = [];
  const locks = {
    async request(name: string, _how: object, hold: () => Promise<void>) {
      held.push(name);
      await hold();
      held.splice(held.indexOf(name), 1);
    },
    query: async () => ({ held: held.map((name) => ({ name })) }),
  };
  const window = new EventTarget();
  const listening = { added: vi.spyOn(window, 'addEventListener'), removed: vi.spyOn(window, 'removeEventListener') };
  vi.stubGlobal('navigator', { locks });
  vi.stubGlobal('window', window);
  vi.stubGlobal('BroadcastChannel', BroadcastChannel);
  const listeners = () => listening.added.mock.calls.length - listening.removed.mock.calls.length;
  return { held, window, listeners };
}

class Channel {
  static open = 0;
  constructor() {
    Channel.open++;
  }
  postMessage() {}
  close() {
    Channel.open--;
  }
}

test('a tab takes part in the count while it is awake, and until it is closed', async () => {
  const { held, window, listeners } = browser(Channel);
  const port = tabsPort()!;
  expect([await port.count(), Channel.open]).toEqual([1, 1]);
  window.dispatchEvent(new Event('pagehide'));
  await settle();
  expect([held, Channel.open]).toEqual([[], 0]);
  window.dispatchEvent(new Event('pageshow'));
  expect([await port.count(), Channel.open]).toEqual([1, 1]);
  port.close();
  await settle();
  expect([held, Channel.open, listeners()]).toEqual([[], 0, 0]);
});

test.each([
  ['Firefox, of a page that it gives no storage', 'The operation is insecure.'],
  ['a browser that knows none', undefined],
])('%s, has no channel, and no tab is counted', async (_, refusal) => {
  class Refusing {
    constructor() {
      throw new DOMException(refusal, 'SecurityError');
    }
  }
  const { held, listeners } = browser(refusal && Refusing);
  expect(tabsPort()).toBeUndefined();
  await settle();
  expect([held, listeners()]).toEqual([[], 0]);
});

test('a browser without Web Locks counts no tabs', () => {
  vi.stubGlobal('navigator', {});
  expect(tabsPort()).toBeUndefined();
});
