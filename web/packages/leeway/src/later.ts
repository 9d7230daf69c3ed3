/**
 * How the engine of the drop-in gets what it seldom needs: by a script beside its own, from wherever that came. It takes the place of the
 * core's `later.ts`. The hash is in the engine, since the first script has no room for it.
 */

import type { Seldom } from '../../core/src/transfer/seldom.ts';
import { fetchFrom, own } from './script.ts';

/** Written by the build. */
declare const seldomHash: string;
declare const buildVersion: string;

export const loadSeldom = (): Promise<Seldom> =>
  fetchFrom(new URL(`leeway-${buildVersion}-seldom.js?${seldomHash.slice(-9, -1)}`, own!.src).href, seldomHash);
