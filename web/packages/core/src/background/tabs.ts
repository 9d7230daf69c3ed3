import type { Clock } from '../ports.ts';
import type { TabsPort } from './ports.ts';

/** How often the tabs are counted, and told what this one knows. A tab that is gone is missed after as long. */
const roundMs = 2_000;
/** A base delay is as old as the controller's own history at most. */
const baseMs = 600_000;
/** Routes remembered. */
const routes = 64;

/** What one tab tells the others; other versions of the library may say more, and anything. */
interface Said {
  leeway: 1;
  /** Least round trip by peer, µs. */
  bases: [string, number][];
}

export interface TabsOptions {
  port: TabsPort;
  clock: Clock;
  /** Base delays of the links that are open, by peer. */
  bases(): [string, number][];
  /** So many tabs share the line. */
  counted(parts: number): void;
}

export interface Tabs {
  /** What is known of the way to a peer; 0: nothing. */
  base(peer: string): number;
  /** Keeps what was measured of the way to a peer. */
  remember(peer: string, base: number): void;
  stop(): void;
}

/** Divides the line among the tabs of one browser. There is no leader: each counts the others. */
export function createTabs({ port, clock, bases, counted }: TabsOptions): Tabs {
  const known = new Map<string, { base: number; until: number }>();
  let timer = 0;
  let stopped = false;

  const round = () => {
    port.count().then(
      (n) => {
        if (stopped) return;
        if (n > 1) port.post({ leeway: 1, bases: bases() } satisfies Said);
        counted(n);
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
    stop() {
      stopped = true;
      clock.clearTimer(timer);
      port.close();
    },
  };

  port.onMessage = (message) => {
    const m = message as Partial<Said> | null;
    if (stopped || m?.leeway !== 1) return;
    for (const [peer, base] of Array.isArray(m.bases) ? m.bases.slice(0, routes) : []) {
      if (typeof peer === 'string' && typeof base === 'number') tabs.remember(peer, base);
    }
  };
  round();
  return tabs;
}
