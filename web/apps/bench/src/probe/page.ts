/** A network check in a browser, for `leeway-lab bench probe` (internal/lab/bench/probebench/page.go). */

import { NetworkCheck, type Phase, type Plan, type Results } from '../../../../packages/netcheck/src/index.ts';
import { openedBy } from '../process.ts';

type Order = { type: 'check'; server: string; plan: Partial<Plan> };

type Word = { type: 'phase'; phase: Phase } | { type: 'results'; results: Results } | { type: 'failed'; why: string };

const { say, hear } = openedBy<Word, Order>();

async function check({ server, plan }: Order): Promise<void> {
  let now: Phase | undefined;
  const results = await new NetworkCheck({ server, plan }).run({
    onProgress({ phase }) {
      if (phase !== now) say({ type: 'phase', phase });
      now = phase;
    },
  });
  say({ type: 'results', results });
}

export function runProbe(): void {
  hear((order) => {
    check(order).catch((error) => say({ type: 'failed', why: String(error) }));
  });
}
