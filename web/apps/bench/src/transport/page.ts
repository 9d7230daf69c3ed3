/** One end of background links in a browser, for `leeway-lab bench transport`: ordered about by the process that opened it. */

import { createEnd, type End } from './end.ts';
import { hear, say } from './parent.ts';

let end: End;

/** A page that is to be in the background is so only once another tab has come before it. */
function ready(): void {
  const tell = () => say({ type: 'ready', hidden: document.visibilityState === 'hidden' });
  document.addEventListener('visibilitychange', tell);
  tell();
}

export function runTransportEnd(): void {
  ready();
  addEventListener('error', (event) => say({ type: 'failed', why: event.message }));
  hear((order) => {
    try {
      if (order.type === 'setup') end = createEnd(order.setup, say);
      else if (order.type === 'begin') end.begin(order.link);
      else if (order.type === 'signal') end.signal(order.link, order.signal);
      else if (order.type === 'burst') end.burst(order.bytes);
      else end.start();
    } catch (error) {
      say({ type: 'failed', why: String(error) });
    }
  });
}
