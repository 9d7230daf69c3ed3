/** How the engine gets what it seldom needs: bundlers make a file of its own of it. The drop-in has another `later.ts` in place of this one. */

import type { Seldom } from './transfer/seldom.ts';

export const loadSeldom = (): Promise<Seldom> => import('./seldom.ts');
