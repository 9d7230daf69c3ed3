import { afterEach, expect, test, vi } from 'vitest';
import { idle } from './idle.ts';

afterEach(() => vi.unstubAllGlobals());

test('waits for a page that has nothing else to do, and not for long', () => {
  const requestIdleCallback = vi.fn();
  vi.stubGlobal('requestIdleCallback', requestIdleCallback);
  const f = () => {};
  idle(f);
  expect(requestIdleCallback).toHaveBeenCalledExactlyOnceWith(f, { timeout: 100 });
});

test('runs in a turn of its own where a browser has no such moment', () => {
  vi.stubGlobal('requestIdleCallback', undefined);
  const setTimeout = vi.fn();
  vi.stubGlobal('setTimeout', setTimeout);
  const f = () => {};
  idle(f);
  expect(setTimeout).toHaveBeenCalledExactlyOnceWith(f);
});
