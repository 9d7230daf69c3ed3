/** `leeway.doctor()`: what keeps this page from sharing, and how to mend it. It asks nothing but the site's tracker, relays and seeds. */

import type { Leeway } from '@leeway/core';
import { checkPage, checkPlayer, checkScripts, checkWebrtc, checkWorker } from './browser.ts';
import type { DoctorOptions, Examination } from './examination.ts';
import { type Finding, type Found, fail, ok, skipped, tell } from './finding.ts';
import { checkRelays } from './relays.ts';
import { checkLinks, checkPiece, checkSeed, checkSigned, checkSite } from './titles.ts';
import { checkClock, checkTracker, checkWelcome } from './tracker.ts';

type Check = (e: Examination) => Found | Found[] | Promise<Found | Found[]>;

/** Without consent nothing connects. */
function checkConsent({ leeway }: Examination): Found {
  if (leeway.state === 'stopped')
    return fail('stopped', 'leeway.stop() has ended peer delivery', 'load the page again');
  if (leeway.state === 'idle')
    return fail(
      'consent-missing',
      'peer delivery waits for consent, or the viewer has switched it off',
      'call leeway.consent(true), or use the switch of the badge',
    );
  return ok('given');
}

/** In the order in which findings are told; those of one row do not need each other. */
const rows: Record<string, Check>[] = [
  { page: checkPage, webrtc: checkWebrtc, scripts: checkScripts, worker: checkWorker, player: checkPlayer },
  { consent: checkConsent },
  { tracker: checkTracker },
  { welcome: checkWelcome },
  { clock: checkClock, relays: checkRelays, site: checkSite },
  { seed: checkSeed, links: checkLinks },
  { signed: checkSigned, piece: checkPiece },
];

/** Runs all checks, prints a line on the console for each, and returns what they found. */
export async function examine(leeway: Leeway, options: DoctorOptions): Promise<Finding[]> {
  const e: Examination = { leeway, options };
  const findings: Finding[] = [];
  let connects = true;
  for (const row of rows) {
    const found = Object.entries(row).map(([name, check]) => run(name, connects ? check : withoutConsent, e));
    for (const one of found) {
      for (const finding of await one) {
        findings.push(finding);
        tell(finding);
        options.heard?.(finding);
        connects &&= finding.check !== 'consent' || finding.status === 'ok';
      }
    }
  }
  return findings;
}

const withoutConsent = () => skipped('nothing connects, as said above');

async function run(check: string, look: Check, e: Examination): Promise<Finding[]> {
  const begun = Date.now();
  let found: Found | Found[];
  try {
    found = await look(e);
  } catch (error) {
    found = fail('internal', `the check itself failed: ${(error as Error).message}`, 'please report it');
  }
  return [found].flat().map((one) => ({ check, ...one, took_ms: Date.now() - begun }));
}
