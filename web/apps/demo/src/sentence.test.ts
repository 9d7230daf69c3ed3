import { expect, describe as group, it } from 'vitest';
import { describe, type Situation } from './sentence';

const alone: Situation = {
  script: 'present',
  state: 'connected',
  notice: undefined,
  reason: undefined,
  others: 0,
  linkedViewers: 0,
  linkedSeeds: 1,
  serving: 0,
  served: 0,
  bytes: { origin: 0, seed: 100, peer: 0 },
  given: 0,
  waitedMs: 0,
  failure: undefined,
};

group('the sentence', () => {
  const cases: [name: string, change: Partial<Situation>, text: string | RegExp][] = [
    ['first viewer', {}, 'You are the first: the seed serves you. Add a viewer.'],
    ['no seed', { linkedSeeds: 0, bytes: { origin: 9, seed: 0, peer: 0 } }, /the origin serves you\. Add a viewer\.$/],
    ['script left out', { script: 'left-out' }, /left out/],
    ['script absent', { script: 'absent', state: 'connecting' }, /did not load.*origin alone/],
    ['before the tracker', { state: 'connecting' }, /^Looking for the tracker/],
    [
      'tracker lost',
      { state: 'reconnecting' },
      'The tracker is away; reconnecting. The film plays on, and the links stay up.',
    ],
    [
      'served',
      { linkedViewers: 3, serving: 3, bytes: { origin: 10, seed: 19, peer: 71 } },
      'Three viewers serve you; 71 % of your bytes came from them.',
    ],
    [
      'served by one',
      { linkedViewers: 2, serving: 1, bytes: { origin: 50, seed: 0, peer: 50 } },
      'One viewer serves you; 50 % of your bytes came from it.',
    ],
    ['serving', { linkedViewers: 2, served: 2, given: 3_400_000 }, 'You serve two viewers: 3.4 MB given so far.'],
    ['linking', { others: 2, waitedMs: 3000 }, /^Two other viewers here\. Linking up/],
    ['apart', { others: 1, waitedMs: 10_000 }, /^Viewers cannot find each other\. No link came up in ten seconds\./],
    ['apart, known why', { others: 1, waitedMs: 10_000, reason: 'lna-denied' }, /Local network access/],
    ['control group', { state: 'off', reason: 'control-group' }, /^Leeway is off; the film plays\. .*control group/],
    [
      'off by notice',
      { state: 'off', notice: { code: 'no-webrtc', message: 'No WebRTC.', hint: 'Nothing to do.' } },
      'Leeway is off; the film plays. No WebRTC. Nothing to do.',
    ],
    ['film missing', { failure: 'The film does not load.' }, 'The film does not load.'],
  ];
  for (const [name, change, text] of cases) {
    it(name, () => {
      expect(describe({ ...alone, ...change }).text).toMatch(text);
    });
  }

  it('keeps its key while only figures change', () => {
    const served = { ...alone, linkedViewers: 2, serving: 2 };
    const one = describe({ ...served, bytes: { origin: 1, seed: 1, peer: 1 } });
    const two = describe({ ...served, bytes: { origin: 1, seed: 1, peer: 8 } });
    expect(one.key).toBe(two.key);
    expect(one.text).not.toBe(two.text);
  });
});
