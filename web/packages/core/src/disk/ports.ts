/** What the disk needs of the browser. `browser/disk.ts` has the real parts; tests bring their own. */

/** What is used of a `FileSystemFileHandle`. */
export interface StoredFile {
  getFile(): Promise<Pick<Blob, 'arrayBuffer'>>;
  createWritable(): Promise<{
    write(data: Uint8Array<ArrayBuffer>): Promise<void>;
    /** The file has what was written from here on, and before that what it had. */
    close(): Promise<void>;
    abort(): Promise<void>;
  }>;
}

/** What is used of a `FileSystemDirectoryHandle`. */
export interface Folder {
  keys(): AsyncIterable<string>;
  getFileHandle(name: string, options?: { create?: boolean }): Promise<StoredFile>;
  removeEntry(name: string): Promise<void>;
}

export interface DiskParts {
  /** The folder of this origin, made if it is not there. Rejects where the browser has none, or none for this window. */
  folder(): Promise<Folder>;
  /** Bytes that this origin may store, and those that it does; empty where the browser does not say. */
  estimate(): Promise<{ quota?: number; usage?: number }>;
  /**
   * Calls `got` once no other tab of the origin has the disk, and keeps it from them until the function that it answers is called. `lost`:
   * it was taken away, or cannot be had.
   */
  lock(got: () => void, lost: () => void): () => void;
  /** Calls with true when nothing of the page will run for a while, or ever, and with false when it does again. */
  onSleep(f: (asleep: boolean) => void): () => void;
  /** Milliseconds since the Unix epoch, by the device's clock. */
  date(): number;
}
