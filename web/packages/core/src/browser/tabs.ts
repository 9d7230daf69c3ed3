import type { TabsPort } from '../background/ports.ts';

const name = 'leeway-line';

/** The other tabs of this origin in the same browser, or undefined where the browser does not count them. */
export function pageTabs(): TabsPort | undefined {
  const { locks } = navigator;
  if (!locks || typeof BroadcastChannel === 'undefined') return undefined;
  const channel = new BroadcastChannel(name);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  // Held until the tab goes: the browser lets go of it then, however it ends.
  locks.request(name, { mode: 'shared' }, () => held).catch(() => {});
  const port: TabsPort = {
    async count() {
      const { held = [] } = await locks.query();
      return held.filter((lock) => lock.name === name).length;
    },
    post: (message) => channel.postMessage(message),
    close() {
      release();
      channel.close();
    },
  };
  channel.onmessage = ({ data }) => port.onMessage?.(data);
  return port;
}
