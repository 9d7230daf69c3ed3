/** How the engine gets what few pages need: bundlers make a file of its own of it. The drop-in has another `later.ts` in place of this one. */

import type { CreateStreams } from './transfer/streams.ts';

export const loadStreams = async (): Promise<CreateStreams> => (await import('./streams.ts')).createStreams;
