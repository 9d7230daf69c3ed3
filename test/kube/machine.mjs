// Whether a machine was too slow for what test/kube/test looks at: machine.mjs FILE prints why and exits with 0, or exits with 1. FILE has
// a line for each second of the test: which share of the processors was idle, and how many milliseconds late the second was.
import { readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';
import { fileURLToPath } from 'node:url';

// A second is taken where the processors had nothing left, or a process that wanted to run at its end ran this much later.
const IDLE_BELOW = 0.05;
const LATE_MS = 250;
// The test itself starts pods and viewers, which may take that many of the seconds; viewers have five seconds of film in hand.
const TAKEN_SHARE = 0.2;

/** Why the machine was too slow, from the lines of samples; empty if it was not. */
export function tooSlow(text) {
  const samples = text.trim().split('\n').filter(Boolean).map((line) => line.split(' ').map(Number));
  if (samples.length === 0) return '';
  const taken = samples.filter(([idle, late]) => idle < IDLE_BELOW || late > LATE_MS).length;
  if (taken / samples.length <= TAKEN_SHARE) return '';
  const idle = samples.reduce((sum, [share]) => sum + share, 0) / samples.length;
  const late = Math.max(...samples.map(([, ms]) => ms));
  return `its processors were taken in ${taken} of ${samples.length} seconds (${Math.round(100 * idle)} % idle in the mean, up to ${late} ms late)`;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const why = tooSlow(readFileSync(argv[2], 'utf8'));
  if (why) console.log(why);
  exit(why ? 0 : 1);
}
