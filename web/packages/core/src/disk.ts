/** What keeps segments on the viewer's disk: one store for all titles of the page. */

import { pageDisk } from './browser/disk.ts';
import { createDisk, type OpenDisk } from './disk/disk.ts';
import { createStore, type Store } from './disk/store.ts';

export { clear } from './browser/disk.ts';

let store: Store | undefined;

export const openDisk: OpenDisk = (shared, host) => {
  if (shared.stopped) return undefined;
  store ??= createStore(pageDisk, shared.clock);
  return createDisk(store, shared, host);
};
