/** One end of a measured link in a browser, for `leeway-lab bench transfer` and `leeway-lab bench transport`: ordered about by the process that opened it. */

import { tabsPort } from '../../../packages/core/src/browser/tabs.ts';
import { bareEnd } from './bare.ts';
import { libraryEnd } from './library.ts';
import { createMeter } from './meter.ts';
import { type End, type EndEvents, hear, type Order, say } from './parent.ts';
import { runPeersEnd } from './peers/page.ts';
import { runProbe } from './probe/page.ts';
import { runTransportEnd } from './transport/page.ts';

const meter = createMeter(() => performance.now());
const events: EndEvents = {
  signal: (link, body) => say({ type: 'signal', link, body }),
  open: (link) => say({ type: 'open', link }),
  got: meter.add,
  failed: (why) => say({ type: 'failed', why }),
};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** How long the longest task of this thread takes from now on, ms; 0 while none took 50. */
function watchTasks(): () => number {
  let longest = 0;
  const note = (entries: PerformanceEntryList) => {
    for (const { duration } of entries) longest = Math.max(longest, duration);
  };
  const observer = new PerformanceObserver((list) => note(list.getEntries()));
  observer.observe({ type: 'longtask' });
  return () => {
    note(observer.takeRecords());
    observer.disconnect();
    return longest;
  };
}

async function measure(warmMs: number, runMs: number): Promise<void> {
  await pause(warmMs);
  const task = watchTasks();
  const from = performance.now();
  const before = meter.read().bytes;
  await pause(runMs);
  const { bytes, silence } = meter.read();
  const seconds = (performance.now() - from) / 1000;
  say({ type: 'report', bytes: bytes - before, seconds, silence: silence / 1000, task: task() });
}

let end: Promise<End> | undefined;

async function obey(order: Order): Promise<void> {
  if (order.type === 'setup') {
    end = order.setup.bare ? Promise.resolve(bareEnd(order.setup, events)) : libraryEnd(order.setup, events);
    await end;
  } else if (order.type === 'measure') void measure(order.warm_ms, order.run_ms);
  else if (order.type === 'signal') (await end)!.signal(order.link, order.body);
  else (await end)![order.type](order.link);
}

/** Orders are followed one after the other. */
let last: Promise<void> = Promise.resolve();
if (location.search === '?transport') runTransportEnd();
else if (location.search === '?peers') runPeersEnd();
else if (location.search === '?probe') runProbe();
else if (location.search === '?tab') tabsPort();
else {
  hear((order) => {
    last = last.then(() => obey(order)).catch((error) => events.failed(String(error)));
  });
}
