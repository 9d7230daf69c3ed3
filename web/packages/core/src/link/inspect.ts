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
    const d = parseDescription(sdp);
    // The offer of a program that speaks DTLS 1.2: it is a round trip quicker as the client (spec/tracker-protocol.md, DTLS roles).
    const setup = d.sctpInit && d.setup === 'actpass' ? 'active' : d.setup;
    return writeDescription({ ...d, setup, candidates: d.candidates.filter(usable) });
  },
  readCandidate(text, usable) {
    const parsed = parseCandidate(text);
    return parsed && usable(parsed) ? writeCandidate(parsed) : undefined;
  },
};
