/**
 * How the drop-in gets its parts: by further scripts of the same build (decision 0015). The way to the engine takes the place
 * of the core's `load.ts`. They lie beside this script; the tracker has them too, for a site that serves the first one itself
 * and not the others.
 */

import type { CreateEngine } from '../../core/src/title/options.ts';
import type { attachShakaClass } from '../../shaka/src/attach.ts';

/** Written by the build: the files' names with a tag for caches, and what they must hash to. */
declare const engineFile: string;
declare const engineIntegrity: string;
declare const shakaFile: string;
declare const shakaIntegrity: string;

export type AttachShaka = typeof attachShakaClass;

/** The element of a further script, as that script finds it. */
export interface PartScript<T> extends HTMLScriptElement {
  take(part: T): void;
}

const own = document.currentScript as HTMLScriptElement | null;

const fetchFrom = <T>(src: string, integrity: string): Promise<T> =>
  new Promise((take, reject) => {
    const script = Object.assign(document.createElement('script'), {
      // The scripts are of one build, and what they say to each other has no versions. A page that pins this script by a
      // hash has pinned the others with it.
      src,
      integrity,
      crossOrigin: 'anonymous',
      nonce: own?.nonce,
      take,
      onload: reject,
      onerror: reject,
    });
    document.head.append(script);
  });

const load = async <T>(tracker: string, file: string, integrity: string): Promise<T> => {
  const host = tracker.replace(/^ws/i, 'http');
  const [beside, there] = [own?.src || host, host].map((base) => new URL(file, base).href) as [string, string];
  return fetchFrom<T>(beside, integrity).catch((error) => {
    if (beside === there) throw error;
    return fetchFrom<T>(there, integrity);
  });
};

export const loadEngine = (tracker: string): Promise<CreateEngine> => load(tracker, engineFile, engineIntegrity);

/** What lets the players of Shaka share. */
export const loadShaka = (tracker: string): Promise<AttachShaka> => load(tracker, shakaFile, shakaIntegrity);
