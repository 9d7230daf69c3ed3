/** Takes the place of the core's `media.ts` in the adapters of players: the first script has it, and hands it on. */

import type { PartScript } from './load.ts';

export const { deadlineMs, notStored, observePlayback } = (document.currentScript as PartScript<unknown>).media;
