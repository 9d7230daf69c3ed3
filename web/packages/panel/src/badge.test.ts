import type { Leeway, LeewayState } from '@leeway/core';
import { afterEach, expect, it, vi } from 'vitest';
import { FakeClock } from '../../core/src/testing/clock.ts';
import { showBadge } from './badge.ts';

afterEach(() => vi.unstubAllGlobals());

/** An element, as far as the badge needs one. */
class Fake extends EventTarget {
  readonly style: { cssText?: string } = {};
  readonly attributes: Record<string, string> = {};
  readonly children: (Fake | string)[] = [];
  removed = false;
  className = '';
  textContent = '';
  setAttribute(name: string, value: string) {
    this.attributes[name] = value;
  }
  append(...children: (Fake | string)[]) {
    this.children.push(...children);
  }
  attachShadow() {
    const root = new Fake();
    this.append(root);
    return root;
  }
  remove() {
    this.removed = true;
  }
  /** All below it. */
  get all(): Fake[] {
    const own = this.children.filter((child) => child instanceof Fake);
    return [...own, ...own.flatMap((child) => child.all)];
  }
}

/** A page with the badge of a library in some state. */
function show(state: LeewayState) {
  const body = new Fake();
  vi.stubGlobal('document', Object.assign(new EventTarget(), { body, createElement: () => new Fake() }));
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
