/** What the engine seldom needs. */

export { createStreams } from './transfer/streams.ts';
export { createUnlisted } from './transfer/unlisted.ts';
