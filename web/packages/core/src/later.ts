/** How the engine gets what it seldom needs: bundlers make files of their own of it. The drop-in has another `later.ts` in place of this one. */

import type { OpenDisk } from './disk/disk.ts';
import type { Seldom } from './transfer/seldom.ts';

export const loadSeldom = (): Promise<Seldom> => import('./seldom.ts');
export const loadDisk = async (): Promise<OpenDisk> => (await import('./disk.ts')).openDisk;
