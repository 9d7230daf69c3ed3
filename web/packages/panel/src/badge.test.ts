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
  remove() {}
  /** All below it. */
  get all(): Fake[] {
    const own = this.children.filter((child) => child instanceof Fake);
    return [...own, ...own.flatMap((child) => child.all)];
  }
}

it.each<[LeewayState, boolean, string]>([
  ['off', false, 'Sharing is off'],
  ['idle', true, 'Sharing is off'],
  ['ready', true, '↓ 0 B  ↑ 0 B'],
])('in state %s there is a switch: %s', (state, is, text) => {
  const body = new Fake();
  const document = Object.assign(new EventTarget(), { body, createElement: () => new Fake() });
  vi.stubGlobal('document', document);
  const leeway = {
    state,
    clock: new FakeClock(),
    on: () => () => {},
    stats: () => ({ titles: [] }),
    consent: () => {},
  };
  showBadge(leeway as unknown as Leeway);
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
