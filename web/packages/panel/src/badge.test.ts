import type { Leeway, LeewayState } from '@leeway/core';
import { afterEach, expect, it, vi } from 'vitest';
import { FakeClock } from '../../core/src/testing/clock.ts';
import { showBadge } from './badge.ts';
import { stubPage } from './testing.ts';

afterEach(() => vi.unstubAllGlobals());

/** A page with the badge of a library in some state. */
function show(state: LeewayState) {
  const body = stubPage();
  const clock = new FakeClock();
  const consent = vi.fn();
  const leeway = { state, clock, on: () => () => {}, stats: () => ({ titles: [] }), consent } as unknown as Leeway;
  showBadge(leeway);
  return { body, clock, leeway, consent };
}

it.each<[LeewayState, boolean, string]>([
  ['off', false, 'Sharing is off'],
  ['idle', true, 'Sharing is off'],
  ['ready', true, '↓ 0 B  ↑ 0 B'],
])('in state %s there is a switch: %s', (state, is, text) => {
  const { body } = show(state);
  const classed = (name: RegExp) => body.all.filter(({ className }) => name.test(className));
  const hides = body.all.some((e) => e.textContent.includes(`.${state} .switch { display: none; }`));
  expect(classed(/^switch$/)).toHaveLength(1);
  expect(classed(new RegExp(`^root right ${state}$`))).toHaveLength(1);
  expect(hides).toBe(!is);
  expect(body.all.map((e) => e.textContent)).toContain(text);
  // On a page that reads from right to left the arrows would change places.
  expect(body.all[0]!.style.cssText).toMatch(/all: initial;.*direction: ltr/);
  // A screen reader of a page in another language would read it by the rules of that.
  expect(body.all[0]).toMatchObject({ lang: 'en' });
});

it('is not left on a page whose library was stopped before it was there', () => {
  const { body, clock, leeway, consent } = show('stopped');
  expect([body.all[0]!.removed, clock.pending]).toEqual([true, 0]);
  expect(leeway.consent).toBe(consent);
  const there = show('ready');
  expect([there.body.all[0]!.removed, there.clock.pending]).toEqual([false, 1]);
});
