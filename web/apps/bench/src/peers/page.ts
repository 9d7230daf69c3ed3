/** One end of links in a browser, for `leeway-lab bench peers`: ordered about by the process that opened it. */

import { type End, oursEnd, plainEnd } from './end.ts';
import { hear, type Order, say } from './parent.ts';

let end: End;

async function obey(order: Order): Promise<void> {
  if (order.type === 'setup') {
    end = order.setup.ours ? await oursEnd(say) : plainEnd(order.setup, say);
    say({ type: 'ready' });
  } else if (order.type === 'signal') end.signal(order.link, order.body);
  else if (order.type === 'job') end.job(order.job);
  else end[order.type](order.link);
}

export function runPeersEnd(): void {
  addEventListener('error', (event) => say({ type: 'failed', why: event.message }));
  /** Orders are followed one after the other. */
  let last: Promise<void> = Promise.resolve();
  hear((order) => {
    last = last.then(() => obey(order)).catch((error) => say({ type: 'failed', why: String(error) }));
  });
}
