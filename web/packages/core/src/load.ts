/** How a page gets the engine: bundlers make a file of its own of it. The drop-in has another `load.ts` in place of this one. */

import type { CreateEngine } from './title/options.ts';

export const loadEngine = async (_tracker: string): Promise<CreateEngine> =>
  (await import('./compose.ts')).composeEngine;
