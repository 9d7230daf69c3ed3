/**
 * What looks at connections, and reads what the other side signals about its own. It comes with the engine, since no link is up,
 * given up or answered before (decision 0015).
 */

import { type Candidate, parseCandidate, writeCandidate } from './candidates.ts';
import { parseDescription, writeDescription } from './description.ts';
import { diagnose, pathOf } from './diagnose.ts';

export interface Inspection {
  pathOf: typeof pathOf;
  diagnose: typeof diagnose;
  /** A description of the other side for the browser: with the candidates that are usable, and no line as it came. */
  readDescription(sdp: string, usable: (candidate: Candidate) => boolean): string;
  /** A candidate of the other side, written anew; undefined: it is not used. */
  readCandidate(text: string, usable: (candidate: Candidate) => boolean): string | undefined;
}

export const inspection: Inspection = {
  pathOf,
  diagnose,
  readDescription(sdp, usable) {
    const description = parseDescription(sdp);
    return writeDescription({ ...description, candidates: description.candidates.filter(usable) });
  },
  readCandidate(text, usable) {
    const parsed = parseCandidate(text);
    return parsed && usable(parsed) ? writeCandidate(parsed) : undefined;
  },
};
