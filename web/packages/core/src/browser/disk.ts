import type { DiskParts, Folder } from '../disk/ports.ts';
import { onSleep } from './sleep.ts';

/** The folder in the origin's private file system, and the lock of the tab that has it. */
const name = 'leeway';
const lockName = 'leeway-disk';

/** The disk of this page's origin. */
export const pageDisk: DiskParts = {
  async folder() {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle(name, { create: true });
    // Safari before 26 writes in workers alone.
    if (!('createWritable' in FileSystemFileHandle.prototype)) throw new TypeError('createWritable is missing');
    return folder as unknown as Folder;
  },
  // Safari before 17 does not know.
  estimate: async () => (await navigator.storage.estimate?.()) ?? {},
  lock(got, lost) {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const waiting = new AbortController();
    const have = () => {
      got();
      return held;
    };
    const request = navigator.locks?.request(lockName, { signal: waiting.signal }, have);
    (request ?? Promise.reject(new TypeError('Web Locks are missing'))).catch(lost);
    return () => {
      waiting.abort();
      release();
    };
  },
  onSleep,
  date: () => Date.now(),
};

const tries = 20;
const tryMs = 100;

/** Deletes what pages of this origin have kept, also while another tab has the disk: that loses it. */
export async function clear(): Promise<void> {
  const { storage, locks } = navigator;
  // A private window may have none, and has kept nothing then.
  const root = await storage?.getDirectory?.().catch(() => undefined);
  if (!root || !locks) return;
  await locks.request(lockName, { steal: true }, async () => {
    for (let n = 1; ; n++) {
      try {
        return await root.removeEntry(name, { recursive: true });
      } catch (error) {
        if ((error as Error).name === 'NotFoundError') return;
        // A file is being written, by the tab that has just lost the disk.
        if (n === tries) throw error;
        await new Promise((resolve) => setTimeout(resolve, tryMs));
      }
    }
  });
}
