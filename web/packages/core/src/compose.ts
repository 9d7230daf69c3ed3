/** Puts the engine together for a title: the one place where the facade knows what the engine is made of. */

import { createEngine } from './engine.ts';
import type { CreateEngine } from './title.ts';

// Without `background`, so without flag bit 2 and without anything fetched ahead: decision 0017 says what it still waits for.
export const composeEngine: CreateEngine = (context, { clock, crypto }) => createEngine({ ...context, clock, crypto });
