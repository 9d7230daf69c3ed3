import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { settle } from '../testing/clock.ts';
import { clear, pageDisk } from './disk.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** The browser's private file system and its locks, as far as they are used. */
const browser = (removes: (Error | undefined)[] = []) => {
  const seen: unknown[] = [];
  const folder = { kind: 'directory' };
  const root = {
    getDirectoryHandle: async (...of: unknown[]) => {
      seen.push(of);
      return folder;
    },
    removeEntry: async (...of: unknown[]) => {
      seen.push(of);
      const error = removes.shift();
      if (error) throw error;
    },
  };
  const locks = {
    request: async (...of: unknown[]) => {
      seen.push(of.slice(0, -1));
      return (of.at(-1) as () => unknown)();
    },
  };
  const page = { storage: { getDirectory: async () => root }, locks };
  vi.stubGlobal('navigator', page);
  return { seen, folder, page };
};

describe('the disk of a page', () => {
  it('is a folder of the origin, where files can be written from the page', async () => {
    const { folder, seen } = browser();
    class Handle {
      createWritable() {}
    }
    vi.stubGlobal('FileSystemFileHandle', Handle);
    expect(await pageDisk.folder()).toBe(folder);
    expect(seen).toEqual([['leeway', { create: true }]]);
    vi.stubGlobal('FileSystemFileHandle', class {});
    await expect(pageDisk.folder()).rejects.toThrow(TypeError);
  });

  it('is not there where the browser has none', async () => {
    vi.stubGlobal('navigator', { storage: {} });
    await expect(pageDisk.folder()).rejects.toThrow(TypeError);
    expect(await pageDisk.estimate()).toEqual({});
    const lost = vi.fn();
    pageDisk.lock(() => {}, lost)();
    await settle();
    expect(lost).toHaveBeenCalledOnce();
    await clear();
  });

  it('is held until it is let go of', async () => {
    const { page } = browser();
    let held: Promise<unknown> | undefined;
    page.locks.request = async (...of: unknown[]) => {
      held = (of.at(-1) as () => Promise<unknown>)();
      return held;
    };
    const got = vi.fn();
    let over = false;
    const release = pageDisk.lock(got, () => {});
    held!.then(() => {
      over = true;
    });
    await settle();
    expect([got.mock.calls.length, over]).toEqual([1, false]);
    release();
    await settle();
    expect(over).toBe(true);
  });
});

describe('deleting', () => {
  beforeEach(() => vi.useFakeTimers());

  it('takes the disk from the tab that has it, and waits for what that is writing', async () => {
    const busy = new DOMException('busy', 'NoModificationAllowedError');
    const { seen } = browser([busy, busy, undefined]);
    const cleared = clear();
    await vi.advanceTimersByTimeAsync(200);
    await cleared;
    const remove = ['leeway', { recursive: true }];
    expect(seen).toEqual([['leeway-disk', { steal: true }], remove, remove, remove]);
  });

  it('is no error in a private window that has no storage', async () => {
    const { page, seen } = browser();
    page.storage.getDirectory = () => Promise.reject(new DOMException('private', 'SecurityError'));
    await clear();
    expect(seen).toEqual([]);
  });

  it('of nothing is no error; what stays is', async () => {
    browser([new DOMException('none', 'NotFoundError')]);
    await clear();
    browser(Array(30).fill(new DOMException('busy', 'NoModificationAllowedError')));
    const failed = expect(clear()).rejects.toThrow('busy');
    await vi.advanceTimersByTimeAsync(5_000);
    await failed;
  });
});
