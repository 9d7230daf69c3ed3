/**
 * How the drop-in gets the engine: by a second script of the same build (decision 0015), which takes the place of the core's
 * `load.ts`. It lies beside this script; the tracker has it too, for a site that serves the first one itself and not the second.
 */

import type { CreateEngine } from '../../core/src/title/options.ts';

/** Written by the build: the file's name with a tag for caches, and what it must hash to. */
declare const engineFile: string;
declare const engineIntegrity: string;

/** The element of the second script, as that script finds it. */
export interface EngineScript extends HTMLScriptElement {
  take(create: CreateEngine): void;
}

const own = document.currentScript as HTMLScriptElement | null;

const fetchFrom = (src: string): Promise<CreateEngine> =>
  new Promise((take, reject) => {
    const script = Object.assign(document.createElement('script'), {
      // The two scripts are of one build, and what they say to each other has no versions. A page that pins this script by a
      // hash has pinned the other with it.
      src,
      integrity: engineIntegrity,
      crossOrigin: 'anonymous',
      nonce: own?.nonce,
      take,
      onload: reject,
      onerror: reject,
    });
    document.head.append(script);
  });

export const loadEngine = async (tracker: string): Promise<CreateEngine> => {
  const host = tracker.replace(/^ws/i, 'http');
  const [beside, there] = [own?.src || host, host].map((base) => new URL(engineFile, base).href) as [string, string];
  return fetchFrom(beside).catch((error) => {
    if (beside === there) throw error;
    return fetchFrom(there);
  });
};
