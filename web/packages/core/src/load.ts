/** How a page gets the engine, and what deletes what it kept: bundlers make files of their own of them. The drop-in has another `load.ts` in place of this one. */

import type { CreateEngine } from './title/options.ts';

export const loadEngine = async (_tracker: string): Promise<CreateEngine> =>
  (await import('./compose.ts')).composeEngine;

export const clear = async (_tracker: string): Promise<void> => (await import('./disk.ts')).clear();
