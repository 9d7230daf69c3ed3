/**
 * How the engine of the drop-in gets the node of low-latency streams: by a script beside its own, from wherever that came. It takes the
 * place of the core's `later.ts`. The hash is in the engine, since pages that play no such stream are not to pay for it.
 */

import type { CreateStreams } from '../../core/src/transfer/streams.ts';
import { fetchFrom, own } from './script.ts';

/** Written by the build. */
declare const lowlatencyHash: string;
declare const buildVersion: string;

export const loadStreams = (): Promise<CreateStreams> => {
  const file = `leeway-${buildVersion}-lowlatency.js?${lowlatencyHash.slice(-9, -1)}`;
  return fetchFrom(new URL(file, own!.src).href, lowlatencyHash);
};
