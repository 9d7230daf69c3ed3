/** A page as tests of the panel need it. */

import { vi } from 'vitest';

/** An element, as far as badge and panel need one. */
export class Fake extends EventTarget {
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
  replaceChildren(...children: (Fake | string)[]) {
    this.children.splice(0, this.children.length, ...children);
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

/** Puts an empty page in place, and returns its body. */
export function stubPage(): Fake {
  const body = new Fake();
  vi.stubGlobal('document', Object.assign(new EventTarget(), { body, createElement: () => new Fake() }));
  return body;
}
