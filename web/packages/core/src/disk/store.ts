/**
 * Segments on the viewer's disk, in a folder of the origin's private file system. One tab has it at a time. Whatever fails ends in nothing
 * being kept, is counted, and holds nothing up.
 */

import type { Clock } from '../ports.ts';
import { type Entry, mostEntries, parseEntries, printEntries } from './entries.ts';
import type { DiskParts, Folder } from './ports.ts';

/** What is not used for so long is deleted, ms. */
export const keepMs = 7 * 86_400_000;
/** The list is written so long after the first change, ms. */
const saveMs = 5_000;
/** Another tab that has the disk for so long is counted, ms. */
const busyMs = 1_000;
const listName = 'list';

export type Count = (name: string, n?: number) => void;

export interface Store {
  /** What is known of a segment that is kept; undefined: it is not, or the disk is not there. */
  find(id: string): Entry | undefined;
  entries(): Entry[];
  /** The file of a segment. Undefined: it cannot be read. */
  read(id: string): Promise<Uint8Array | undefined>;
  /** It has been of use. */
  used(id: string): void;
  remove(id: string): void;
  /** Keeps a segment, in a file of these parts, within `most` bytes for all of them. Resolves in any case. */
  write(of: Omit<Entry, 'bytes' | 'used'>, parts: Uint8Array[], most: number): Promise<void>;
  /** Deletes what has not been used for the longest until no more than so many bytes are left. */
  trim(most: number): void;
  /** Opens the disk for one more title. What happens to it is counted for all of them. The function that it answers lets go of it. */
  use(count: Count): () => void;
}

/** One time that this tab has the disk, or waits for it. */
interface Turn {
  folder?: Folder;
  release(): void;
  /** What is done with the files, one after the other. */
  work: Promise<unknown>;
}

const readAll = async (folder: Folder, name: string) =>
  new Uint8Array(await (await (await folder.getFileHandle(name)).getFile()).arrayBuffer());

const writeAll = async (folder: Folder, name: string, parts: Uint8Array[]) => {
  const out = await (await folder.getFileHandle(name, { create: true })).createWritable();
  try {
    for (const part of parts) await out.write(part as Uint8Array<ArrayBuffer>);
    await out.close();
  } catch (error) {
    await out.abort().catch(() => {});
    throw error;
  }
};

const text = new TextEncoder();
const nothing = () => {};

export const createStore = (parts: DiskParts, clock: Clock): Store => {
  const counts = new Set<Count>();
  const count: Count = (name, n) => {
    for (const f of counts) f(name, n);
  };
  /** By ID, the least recently used first. */
  const entries = new Map<string, Entry>();
  let bytes = 0;
  let turn: Turn | undefined;
  let saveTimer = 0;
  let busyTimer = 0;
  let endSleep = nothing;

  /** Does something with the files when what was begun before is done, if this tab still has the disk then. */
  const next = (f: (folder: Folder) => Promise<unknown>): Promise<void> => {
    const mine = turn;
    if (!mine) return Promise.resolve();
    const done = mine.work.then(async () => {
      if (mine.folder) await f(mine.folder);
    });
    mine.work = done.catch(() => {
      if (mine !== turn) return;
      count('disk_failed');
      shut();
    });
    return mine.work as Promise<void>;
  };

  const save = () => {
    clock.clearTimer(saveTimer);
    saveTimer = 0;
    const list = text.encode(printEntries(entries.values()));
    next((folder) => writeAll(folder, listName, [list]));
  };
  const changed = () => {
    if (!saveTimer) saveTimer = clock.setTimer(save, saveMs);
  };

  const put = (entry: Entry) => {
    entries.delete(entry.id);
    entries.set(entry.id, entry);
    bytes += entry.bytes;
  };
  const drop = (id: string) => {
    bytes -= entries.get(id)?.bytes ?? 0;
    return entries.delete(id);
  };
  const remove = (id: string) => {
    if (!drop(id)) return;
    changed();
    next((folder) => removeAll(folder, [id]));
  };
  /** Takes what has not been used for the longest from the list; answers the files. */
  const evict = (most: number): string[] => {
    const ids: string[] = [];
    for (const id of entries.keys()) {
      if (bytes <= most && entries.size < mostEntries) break;
      drop(id);
      ids.push(id);
      count('disk_evicted');
    }
    if (ids.length) changed();
    return ids;
  };
  const removeAll = async (folder: Folder, ids: Iterable<string>) => {
    for (const id of ids) await folder.removeEntry(id).catch(nothing);
  };
  const trim = (most: number) => {
    const ids = evict(most);
    if (ids.length) next((folder) => removeAll(folder, ids));
  };

  /** Reads the list. A file that it does not have is deleted: it was being written when the page went. */
  const load = async (mine: Turn) => {
    const folder = await parts.folder();
    const files = new Set<string>();
    for await (const name of folder.keys()) files.add(name);
    const list = files.delete(listName) ? await readAll(folder, listName).catch(() => undefined) : undefined;
    if (mine !== turn) return;
    const now = parts.date();
    for (const entry of parseEntries(new TextDecoder().decode(list))) {
      // A clock that was ahead keeps nothing for longer.
      if (entry.used > now) {
        entry.used = now;
        changed();
      }
      if (entry.used > now - keepMs && files.delete(entry.id)) put(entry);
    }
    mine.folder = folder;
    await removeAll(folder, files);
  };

  const open = () => {
    const mine: Turn = { release: nothing, work: Promise.resolve() };
    turn = mine;
    busyTimer = clock.setTimer(() => count('disk_busy'), busyMs);
    mine.release = parts.lock(
      () => {
        clock.clearTimer(busyTimer);
        if (mine !== turn) return mine.release();
        mine.work = load(mine).catch(() => {
          if (mine !== turn) return;
          count('disk_none');
          shut();
        });
      },
      () => {
        if (mine !== turn) return;
        count('disk_lost');
        shut();
      },
    );
  };

  /** Lets go of the disk, once what is under way is done. */
  const shut = () => {
    const mine = turn;
    if (!mine) return;
    clock.clearTimer(busyTimer);
    clock.clearTimer(saveTimer);
    saveTimer = 0;
    turn = undefined;
    entries.clear();
    bytes = 0;
    mine.work.then(() => mine.release());
  };

  /** Likewise, and the list is as it is now. */
  const leave = () => {
    if (saveTimer) save();
    shut();
  };

  return {
    find: (id) => entries.get(id),
    entries: () => [...entries.values()],
    async read(id) {
      const folder = turn?.folder;
      if (!folder || !entries.has(id)) return undefined;
      return readAll(folder, id).catch(() => {
        // The browser, or the viewer, has deleted it.
        remove(id);
        return undefined;
      });
    },
    used(id) {
      const entry = entries.get(id);
      if (!entry) return;
      drop(id);
      put({ ...entry, used: parts.date() });
      changed();
    },
    remove,
    trim,
    write: (of, file, most) =>
      next(async (folder) => {
        const size = file.reduce((n, { length }) => n + length, 0);
        const { quota, usage = 0 } = await parts.estimate().catch(() => ({}) as { quota?: number; usage?: number });
        // Half of what is left is for others, the page itself among them.
        const room = quota === undefined ? most : Math.min(most, bytes + Math.max(0, quota - usage) / 2);
        if (size > room) return count('disk_full');
        await removeAll(folder, evict(room - size));
        try {
          await writeAll(folder, of.id, file);
        } catch (error) {
          if ((error as Error).name !== 'QuotaExceededError') throw error;
          // The browser has less than it said: half of what there is makes room, for the next one.
          count('disk_full');
          return removeAll(folder, [of.id, ...evict(bytes / 2)]);
        }
        if (!turn?.folder) return;
        drop(of.id);
        put({ ...of, bytes: size, used: parts.date() });
        count('disk_written_bytes', size);
        changed();
      }),
    use(f) {
      counts.add(f);
      if (counts.size === 1) {
        endSleep = parts.onSleep((asleep) => (asleep ? leave() : open()));
        open();
      }
      return () => {
        if (!counts.delete(f) || counts.size) return;
        endSleep();
        leave();
      };
    },
  };
};
