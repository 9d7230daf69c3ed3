import type { TabsPort } from '../background/ports.ts';
import { createTabs, type Tabs, type TabsOptions } from '../background/tabs.ts';
import { onSleep } from './sleep.ts';

const name = 'leeway-line';

/** Takes part in the count of this origin's tabs in the same browser; undefined where the browser does not count them. */
export function tabsPort(): TabsPort | undefined {
  const { locks } = navigator;
  if (!locks) return undefined;
  let channel: BroadcastChannel | undefined;
  let release = () => {};

  const open = () => {
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Held until the tab goes: the browser lets go of it then, however it ends.
    locks.request(name, { mode: 'shared' }, () => held).catch(() => {});
    channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => port.onMessage?.(data);
  };
  const shut = () => {
    release();
    channel?.close();
    channel = undefined;
  };
  // A page that sleeps takes no part of the line.
  const end = onSleep((asleep) => (asleep ? shut() : open()));
  const port: TabsPort = {
    async count() {
      const { held = [] } = await locks.query();
      return held.filter((lock) => lock.name === name).length;
    },
    post: (message) => channel?.postMessage(message),
    close() {
      end();
      shut();
    },
  };
  try {
    open();
  } catch {
    // Firefox gives none to pages that it gives no storage.
    port.close();
    return undefined;
  }
  return port;
}

/** What divides the line among those tabs. */
export const pageTabs = (o: Omit<TabsOptions, 'port'>): Tabs | undefined => {
  const port = tabsPort();
  return port && createTabs({ ...o, port });
};
