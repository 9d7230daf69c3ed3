import { afterEach, expect, it, vi } from 'vitest';
import { type Slot, Timeline } from './timeline';

/** As much of an element as the strip needs: children in order, and how often it was put into the page. */
class Element {
  children: Element[] = [];
  style = { setProperty: () => {}, left: '', width: '' };
  dataset: Record<string, string> = {};
  className = '';
  tabIndex = -1;
  hidden = false;
  textContent = '';
  clientWidth = 1000;
  offsetWidth = 0;
  put = 0;
  private parent: Element | undefined;
  private readonly parts = new Map<string, Element>();

  querySelector(name: string): Element {
    if (!this.parts.has(name)) this.parts.set(name, new Element());
    return this.parts.get(name)!;
  }
  readonly attributes = new Map<string, string>();
  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }
  addEventListener(): void {}
  append(child: Element): void {
    this.insertBefore(child, null);
  }
  replaceChildren(): void {
    for (const child of [...this.children]) child.remove();
  }
  insertBefore(child: Element, before: Element | null): void {
    child.remove();
    child.parent = this;
    child.put++;
    this.children.splice(before === null ? this.children.length : this.children.indexOf(before), 0, child);
  }
  remove(): void {
    this.parent?.children.splice(this.parent.children.indexOf(this), 1);
    this.parent = undefined;
  }
}

afterEach(() => vi.unstubAllGlobals());

/** Segments of 2 s from the n-th on, where a playlist says they are: live ones drift by a little. */
const slots = (first: number, count: number): Slot[] =>
  Array.from({ length: count }, (_, i) => ({ startMs: (first + i) * 2000 + (first % 3) * 40, durationMs: 2000 }));

it('the strip of a live stream never goes pale: what stays in it is moved, not made anew', () => {
  vi.stubGlobal('document', { createElement: () => new Element(), activeElement: null });
  const root = new Element();
  const timeline = new Timeline(root as unknown as HTMLElement);
  const cells = root.querySelector('.cells');
  const bytes = { origin: 0, seed: 0, peer: 1 };
  const delivered = { source: 'peer' as const, reason: undefined, bytes, early: false, rendition: '' };
  timeline.layOut(slots(0, 15), 0, true);
  for (const slot of slots(0, 15)) timeline.record(slot, delivered);
  let before = [...cells.children];
  for (let first = 1; first < 40; first++) {
    timeline.layOut(slots(first, 15), first * 2000, true);
    const now = cells.children;
    expect(now).toHaveLength(15);
    // An element that is put into the page again, or is a new one, fades in from nothing.
    for (const [i, cell] of now.slice(0, 14).entries()) expect(cell).toBe(before[i + 1]);
    expect(now.map(({ put }) => put)).toEqual(now.map(() => 1));
    expect(now.slice(0, 14).every(({ dataset }) => dataset.source === 'peer')).toBe(true);
    timeline.record(slots(first, 15)[14]!, delivered);
    before = [...now];
  }
});

it('a cell of a stream of low latency is of all its parts, also while it grows', () => {
  vi.stubGlobal('document', { createElement: () => new Element(), activeElement: null });
  const root = new Element();
  const timeline = new Timeline(root as unknown as HTMLElement);
  const cells = root.querySelector('.cells');
  const came = (startMs: number, source: 'peer' | 'seed' | 'origin', n: number) => {
    const bytes = { origin: 0, seed: 0, peer: 0, [source]: n };
    const reason = source === 'peer' ? undefined : 'no-holder';
    timeline.record({ startMs, durationMs: 500 }, { source, reason, bytes, early: false, rendition: '240p' });
  };
  const growing = (parts: number) => [...slots(0, 1), { startMs: 2000, durationMs: 500 * parts }];
  timeline.layOut(growing(1), 0, true);
  came(2020, 'seed', 30_000);
  expect(cells.children[1]!.dataset.source).toBe('seed');
  // A part may come before the page has looked at the playlist that lists it.
  came(2520, 'peer', 20_000);
  timeline.layOut(growing(2), 0, true);
  expect(cells.children[1]!.dataset.source).toBe('seed');
  timeline.layOut(growing(3), 0, true);
  came(3020, 'peer', 25_000);
  expect(cells.children[1]!.dataset.source).toBe('peer');
  const label = () => cells.children[1]!.attributes.get('aria-label')!;
  expect(label()).toContain('75 kB');
  // The next segment begins; what was of this one stays.
  timeline.layOut([...slots(0, 2), { startMs: 4000, durationMs: 500 }], 0, true);
  expect(label()).toContain('75 kB');
  expect(cells.children[0]!.dataset.source).toBeUndefined();
});
