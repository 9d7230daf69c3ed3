import { afterEach, describe, expect, test, vi } from 'vitest';
import { browserEnvironment } from './environment.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

// One page has one clock, which has shown nothing before the first case and remembers what it showed.
test.each([
  ['steps of 16.7 ms, as a Firefox that resists fingerprinting has', [100, 100, 116.667, 133.334, 133.334, 250], true],
  ['steps of 100 ms', [1_000, 1_100, 1_100, 1_200], true],
  ['steps of a millisecond', [2_000, 2_000, 2_001], false],
  ['a fine one that was asked seldom since', [3_000, 4_000], false],
])('a clock with %s', (_, readings, coarse) => {
  const { clock } = browserEnvironment();
  const now = vi.spyOn(performance, 'now');
  for (const at of readings) {
    now.mockReturnValueOnce(at);
    clock.now();
  }
  expect(clock.coarse!()).toBe(coarse);
  vi.stubGlobal('navigator', { userAgent: '', userAgentData: { mobile: false } });
  expect(browserEnvironment().line().coarse).toBe(coarse);
});

test.each([
  ['of a phone that is cellular', { type: 'cellular' }, true],
  ['of a viewer that asked to save data', { type: 'wifi', saveData: true }, true],
  ['of a phone by Wi-Fi', { type: 'wifi', saveData: false }, false],
])('a line %s', (_, connection, metered) => {
  vi.stubGlobal('navigator', { userAgent: 'Mobile', connection });
  expect(browserEnvironment().line()).toMatchObject({ metered, unknown: false });
});

describe('a line that nothing is known of', () => {
  const phone = 'Mozilla/5.0 (Android 16; Mobile; rv:153.0) Gecko/153.0 Firefox/153.0';
  const safari =
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15';
  test.each<[string, object, boolean, boolean]>([
    ['Firefox on a phone', { userAgent: phone }, true, true],
    ['Firefox on a computer', { userAgent: safari }, false, false],
    ['Safari on a tablet, which says that it is a computer', { userAgent: safari }, true, true],
    ['Chromium on a phone by Wi-Fi', { connection: { type: 'wifi' }, userAgentData: { mobile: true } }, true, false],
    [
      'Chromium on a phone that knows no more',
      { connection: { type: 'unknown' }, userAgentData: { mobile: true } },
      true,
      true,
    ],
    [
      'Chromium on a computer with a touchscreen alone',
      { connection: {}, userAgentData: { mobile: false } },
      true,
      false,
    ],
  ])('%s', (_, browser, coarse, unknown) => {
    vi.stubGlobal('navigator', { userAgent: '', ...browser });
    vi.stubGlobal('matchMedia', (query: string) => ({ matches: query === '(pointer: coarse)' && coarse }));
    expect(browserEnvironment().line()).toMatchObject({ metered: false, unknown });
  });
});
