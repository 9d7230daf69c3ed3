import type { Clock } from '../ports.ts';
import type { TabsPort } from './ports.ts';

/** How often the tabs are counted, and told what this one knows. A tab that is gone is missed after as long. */
const roundMs = 2_000;
/** Foreground of another tab that has not said so again for so long is over: the tab may be gone. */
const urgentMs = 3 * roundMs;
/** An end of foreground that lasts so long is told. */
const pauseMs = 100;
/** A base delay is as old as the law's own history at most. */
const baseMs = 600_000;
/** Routes remembered. */
const routes = 64;

/** What one tab tells the others; older versions of the library may say anything. */
interface Said {
  leeway: 1;
  /** Names the tab. */
  tab: number;
  urgent: boolean;
  /** Least round trip by peer, µs. */
  bases: [string, number][];
}

export interface TabsOptions {
  port: TabsPort;
  clock: Clock;
  /** Names this tab among the others. */
  random(): number;
  /** Base delays of the links that are open, by peer. */
  bases(): [string, number][];
  /** The number of tabs, or whether another one has foreground, is another. */
  changed(parts: number, urgent: boolean): void;
}

/** Divides the line among the tabs of one browser. There is no leader: each counts the others, and says what it does. */
export class Tabs {
  #o: TabsOptions;
  #tab: number;
  #parts = 1;
  #urgent = false;
  /** Until when other tabs have foreground, by their names. */
  #others = new Map<number, number>();
  #known = new Map<string, { base: number; until: number }>();
  #timer = 0;
  #pause = 0;
  #told = false;
  #stopped = false;

  constructor(o: TabsOptions) {
    this.#o = o;
    this.#tab = Math.floor(o.random() * 2 ** 32);
    o.port.onMessage = (message) => this.#hear(message);
    this.#round();
  }

  /** What is known of the way to a peer; 0: nothing. */
  base(peer: string): number {
    const known = this.#known.get(peer);
    return known && known.until > this.#o.clock.now() ? known.base : 0;
  }

  /** Keeps what was measured of the way to a peer. */
  remember(peer: string, base: number): void {
    if (base <= 0) return;
    const now = this.#o.clock.now();
    const least = Math.min(base, this.base(peer) || base);
    this.#known.delete(peer);
    this.#known.set(peer, { base: least, until: now + baseMs });
    if (this.#known.size > routes) this.#known.delete(this.#known.keys().next().value!);
  }

  /** Foreground begins or ends here. The beginning is told at once, the end when it has lasted, for most are short. */
  urgent(on: boolean): void {
    const { clock } = this.#o;
    this.#urgent = on;
    clock.clearTimer(this.#pause);
    if (on && !this.#told) this.#tell();
    if (!on && this.#told) this.#pause = clock.setTimer(() => this.#tell(), pauseMs);
  }

  #tell(): void {
    if (this.#parts < 2 && !this.#told) return;
    this.#told = this.#urgent;
    this.#o.port.post({ leeway: 1, tab: this.#tab, urgent: this.#urgent, bases: this.#o.bases() } satisfies Said);
  }

  #hear(message: unknown): void {
    const m = message as Partial<Said> | null;
    if (this.#stopped || m?.leeway !== 1 || typeof m.tab !== 'number') return;
    if (m.urgent === true) this.#others.set(m.tab, this.#o.clock.now() + urgentMs);
    else this.#others.delete(m.tab);
    for (const [peer, base] of Array.isArray(m.bases) ? m.bases.slice(0, routes) : []) {
      if (typeof peer === 'string' && typeof base === 'number') this.remember(peer, base);
    }
    this.#change();
  }

  #change(): void {
    const now = this.#o.clock.now();
    for (const [tab, until] of this.#others) if (until <= now) this.#others.delete(tab);
    this.#o.changed(this.#parts, this.#others.size > 0);
  }

  #round(): void {
    this.#o.port.count().then(
      (n) => {
        if (this.#stopped) return;
        this.#parts = Math.max(1, n);
        this.#tell();
        this.#change();
      },
      () => {}, // a browser that does not count has one tab
    );
    this.#timer = this.#o.clock.setTimer(() => this.#round(), roundMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#o.clock.clearTimer(this.#timer);
    this.#o.clock.clearTimer(this.#pause);
    this.#o.port.close();
  }
}
