/** A disk in memory: what tabs of one origin share. */

import type { DiskParts, Folder, StoredFile } from '../disk/ports.ts';

interface Lock {
  got(): void;
  lost(): void;
}

export class FakeDisk {
  readonly files = new Map<string, Uint8Array>();
  quota: number | undefined;
  /** What the next writes fail with, by the name of the error. */
  failing?: string;
  /** Why there is no folder. */
  missing?: Error;
  /** Reads wait for it. */
  slow?: Promise<void>;
  /** So do writes. */
  writing?: Promise<void>;
  reads = 0;
  date = 1_790_000_000_000;
  private readonly queue: Lock[] = [];
  private readonly sleepers = new Set<(asleep: boolean) => void>();

  get bytes(): number {
    let n = 0;
    for (const { length } of this.files.values()) n += length;
    return n;
  }

  /** The segments that are kept. */
  get segments(): string[] {
    return [...this.files.keys()].filter((name) => name !== 'list');
  }

  get listeners(): number {
    return this.sleepers.size + this.queue.length;
  }

  sleep(asleep: boolean): void {
    for (const f of [...this.sleepers]) f(asleep);
  }

  /** As a page that deletes everything does. */
  steal(): void {
    const [holder] = this.queue.splice(0, 1);
    this.files.clear();
    holder?.lost();
    this.queue[0]?.got();
  }

  /** The disk as one tab sees it. */
  parts(): DiskParts {
    return {
      folder: async () => {
        if (this.missing) throw this.missing;
        return this.folder;
      },
      estimate: async () => (this.quota === undefined ? {} : { quota: this.quota, usage: this.bytes }),
      lock: (got, lost) => {
        const lock = { got, lost };
        if (this.queue.push(lock) === 1) queueMicrotask(got);
        return () => {
          const at = this.queue.indexOf(lock);
          if (at < 0) return;
          this.queue.splice(at, 1);
          if (at === 0) this.queue[0]?.got();
        };
      },
      onSleep: (f) => {
        this.sleepers.add(f);
        return () => this.sleepers.delete(f);
      },
      date: () => this.date,
    };
  }

  private readonly folder: Folder = {
    keys: () => this.names(),
    getFileHandle: async (name, { create } = {}) => {
      if (!create && !this.files.has(name)) throw new DOMException(name, 'NotFoundError');
      if (!this.files.has(name)) this.files.set(name, new Uint8Array());
      return this.file(name);
    },
    removeEntry: async (name) => {
      if (!this.files.delete(name)) throw new DOMException(name, 'NotFoundError');
    },
  };

  private async *names(): AsyncGenerator<string> {
    yield* [...this.files.keys()];
  }

  private file(name: string): StoredFile {
    return {
      getFile: async () => {
        this.reads++;
        await this.slow;
        const data = this.files.get(name);
        if (!data) throw new DOMException(name, 'NotFoundError');
        return { arrayBuffer: async () => data.slice().buffer };
      },
      createWritable: async () => {
        const written: Uint8Array[] = [];
        return {
          write: async (data) => {
            await this.writing;
            if (this.failing) throw new DOMException(name, this.failing);
            written.push(data.slice());
          },
          close: async () => void this.files.set(name, new Uint8Array(Buffer.concat(written))),
          abort: async () => {},
        };
      },
    };
  }
}
