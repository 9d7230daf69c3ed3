import type { Leeway, LeewayState } from '@leeway/core';
import { afterEach, expect, it, vi } from 'vitest';
import { FakeClock } from '../../core/src/testing/clock.ts';
import { showDebug } from './debug.ts';
import { stubPage } from './testing.ts';

afterEach(() => vi.unstubAllGlobals());

/** A page with the panel of a library in some state. */
function show(state: LeewayState) {
  const body = stubPage();
  const clock = new FakeClock();
  const listeners: Record<string, (event: object) => void> = {};
  const on = (event: string, listener: (event: object) => void) => {
    listeners[event] = listener;
    return () => delete listeners[event];
  };
  const stats = () => ({ version: '1', state, self: null, notice: null, titles: [] });
  showDebug({ state, clock, on, stats } as unknown as Leeway);
  return { body, clock, listeners };
}

it('goes with the library', () => {
  const { body, clock, listeners } = show('ready');
  expect([body.all[0]!.removed, clock.pending]).toEqual([false, 1]);
  listeners.state!({ state: 'stopped' });
  expect([body.all[0]!.removed, clock.pending, Object.keys(listeners)]).toEqual([true, 0, []]);
});

it('is not left on a page whose library was stopped before it was there', () => {
  const { body, clock, listeners } = show('stopped');
  expect([body.all[0]!.removed, clock.pending, Object.keys(listeners)]).toEqual([true, 0, []]);
});
