/**
 * How the drop-in gets its parts: by further scripts of the same build (decision 0015), `src/parts/`. The way to the engine
 * takes the place of the core's `load.ts`. They lie beside this script; the tracker has them too, for a site that serves the
 * first one itself and not the others.
 */

import type { Leeway } from '@leeway/core';
import { deadlineMs, notStored, observePlayback } from '../../core/src/media.ts';
import type { CreateEngine } from '../../core/src/title/options.ts';
import type parts from '../parts.json';
import { fetchFrom, own, type PartScript as Script } from './script.ts';

/** A script that is loaded where it is needed. The engine loads the others itself (`later.ts`). */
export type Part = Exclude<keyof typeof parts, 'seldom' | 'disk'>;

/** Written by the build: what each part must hash to, SHA-256 in base64 without its `=`, and the version in its name. */
declare const hashes: Record<Part, string>;
declare const buildVersion: string;

/** What the adapter of a player gives: it lets the players of what a page has under its global share. Returns what undoes it. */
export type Attach<T> = (leeway: Leeway, found: T) => () => void;

/** The element of a further script, as that script finds it. */
export interface PartScript<T> extends Script<T> {
  /** What the adapters of players have in common with this script. */
  media: (typeof more)['media'];
}

const more = { media: { deadlineMs, notStored, observePlayback } };

/** Loads a part: from beside this script, else from the tracker. */
export async function loadPart<T>(tracker: string, part: Part): Promise<T> {
  const integrity = `sha256-${hashes[part]}=`;
  // The query is for caches: a version is built often.
  const file = `leeway-${buildVersion}-${part}.js?${integrity.slice(-9)}`;
  const host = tracker.replace(/^ws/i, 'http');
  const [beside, there] = [own?.src || host, host].map((base) => new URL(file, base).href) as [string, string];
  return fetchFrom<T>(beside, integrity, more).catch((error) => {
    if (beside === there) throw error;
    return fetchFrom<T>(there, integrity, more);
  });
}

export const loadEngine = (tracker: string): Promise<CreateEngine> => loadPart(tracker, 'engine');

export const clear = async (tracker: string): Promise<void> =>
  (await loadPart<{ clear(): Promise<void> }>(tracker, 'more')).clear();
