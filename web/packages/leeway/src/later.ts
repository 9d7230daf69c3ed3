/**
 * How the engine of the drop-in gets what it seldom needs: by scripts beside its own, from wherever that came. It takes the place of the
 * core's `later.ts`. The hashes are in the engine, since the first script has no room for them.
 */

import type { OpenDisk } from '../../core/src/disk/disk.ts';
import type { Seldom } from '../../core/src/transfer/seldom.ts';
import { fetchFrom, own } from './script.ts';

/** Written by the build. */
declare const seldomHash: string;
declare const diskHash: string;
declare const buildVersion: string;

const load = <T>(part: string, hash: string): Promise<T> =>
  fetchFrom(new URL(`leeway-${buildVersion}-${part}.js?${hash.slice(-9)}`, own!.src).href, hash);

export const loadSeldom = (): Promise<Seldom> => load('seldom', seldomHash);
export const loadDisk = (): Promise<OpenDisk> => load('disk', diskHash);
