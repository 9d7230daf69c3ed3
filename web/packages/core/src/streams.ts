/** The node of low-latency streams: the one place where the engine's way to it knows what it is made of. */

export { createStreams } from './transfer/streams.ts';
