import type { Clock } from '../ports.ts';
import type { TabsPort } from './ports.ts';

/** How often the tabs are counted, and told what this one knows. A tab that is gone is missed after as long. */
const roundMs = 2_000;
/** Foreground of another tab that has not said so again for so long is over: the tab may be gone. */
const urgentMs = 3 * roundMs;
/** An end of foreground that lasts so long is told. */
const pauseMs = 100;
/** A base delay is as old as the controller's own history at most. */
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

export interface Tabs {
  /** What is known of the way to a peer; 0: nothing. */
  base(peer: string): number;
  /** Keeps what was measured of the way to a peer. */
  remember(peer: string, base: number): void;
  /** Foreground begins or ends here. The beginning is told at once, the end when it has lasted, for most are short. */
  urgent(on: boolean): void;
  stop(): void;
}

/** Divides the line among the tabs of one browser. There is no leader: each counts the others, and says what it does. */
export function createTabs({ port, clock, random, bases, changed }: TabsOptions): Tabs {
  const tab = Math.floor(random() * 2 ** 32);
  let parts = 1;
  let urgent = false;
  /** Until when other tabs have foreground, by their names. */
  const others = new Map<number, number>();
  const known = new Map<string, { base: number; until: number }>();
  let timer = 0;
  let pause = 0;
  let told = false;
  let stopped = false;

  const tell = () => {
    if (parts < 2 && !told) return;
    told = urgent;
    port.post({ leeway: 1, tab, urgent, bases: bases() } satisfies Said);
  };

  const change = () => {
    const now = clock.now();
    for (const [name, until] of others) if (until <= now) others.delete(name);
    changed(parts, others.size > 0);
  };

  const round = () => {
    port.count().then(
      (n) => {
        if (stopped) return;
        parts = Math.max(1, n);
        tell();
        change();
      },
      () => {}, // a browser that does not count has one tab
    );
    timer = clock.setTimer(round, roundMs);
  };

  const tabs: Tabs = {
    base(peer) {
      const way = known.get(peer);
      return way && way.until > clock.now() ? way.base : 0;
    },
    remember(peer, base) {
      if (base <= 0) return;
      const least = Math.min(base, tabs.base(peer) || base);
      known.delete(peer);
      known.set(peer, { base: least, until: clock.now() + baseMs });
      if (known.size > routes) known.delete(known.keys().next().value!);
    },
    urgent(on) {
      urgent = on;
      clock.clearTimer(pause);
      if (on && !told) tell();
      if (!on && told) pause = clock.setTimer(tell, pauseMs);
    },
    stop() {
      stopped = true;
      clock.clearTimer(timer);
      clock.clearTimer(pause);
      port.close();
    },
  };

  port.onMessage = (message) => {
    const m = message as Partial<Said> | null;
    if (stopped || m?.leeway !== 1 || typeof m.tab !== 'number') return;
    if (m.urgent === true) others.set(m.tab, clock.now() + urgentMs);
    else others.delete(m.tab);
    for (const [peer, base] of Array.isArray(m.bases) ? m.bases.slice(0, routes) : []) {
      if (typeof peer === 'string' && typeof base === 'number') tabs.remember(peer, base);
    }
    change();
  };
  round();
  return tabs;
}
