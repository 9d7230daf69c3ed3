import type { Reason, Source } from './delivery';
import { formatBytes } from './format';

/** Why a segment did not come from a viewer, as the end of a sentence. */
const segmentReasons: Record<Reason, string> = {
  'no-cert': 'nothing could prove in time that another viewer’s copy is the right one',
  'no-holder': 'no other viewer had it yet',
  'udp-blocked': 'this network lets no direct traffic between viewers through',
  'symmetric-nat': 'this network hides where viewers can be reached',
  'lna-denied': 'the browser keeps this page from the local network',
  'insecure-context': 'the page did not come over https',
  policy: 'the site’s policy says so, or the line is being measured',
  budget: 'as much was fetched ahead as may be',
  'needs-token': 'the film is for signed-in viewers, and the page did not say which one this is',
  urgent: 'it was needed at once',
  'control-group': 'this viewer was drawn to be served by the origin alone, for comparison',
};

/** What a person can do where peer delivery is off or no link comes up. */
const remedies: Partial<Record<Reason, string>> = {
  'udp-blocked': 'UDP does not get through this network. Try without the VPN or firewall, or from another network.',
  'symmetric-nat': 'This network gives every connection another address. Try another network, or a TURN server.',
  'lna-denied':
    'The browser keeps this page from the local network. Allow “Local network access” in the site’s settings, then reload.',
  'insecure-context': 'The page is not in a secure context. Open it as http://localhost or over https.',
  'needs-token': 'The manifest is signed and the page has no token (data-token).',
  policy: 'The site’s policy says so.',
  'control-group': 'This viewer is in the control group, which the origin serves alone. Reload to draw again.',
};

const sources: Record<Source, string> = {
  peer: 'from other viewers',
  seed: 'from the seed',
  origin: 'from the origin',
};

/** Where a segment's bytes came from, each source with its amount if there are several, and why not all from viewers.
 * `early`: the library had not joined a swarm yet. */
export function explainSegment(bytes: Record<Source, number>, reason: string | undefined, early = false): string {
  const parts = (['peer', 'seed', 'origin'] as const).filter((source) => bytes[source] > 0);
  const amount = (source: Source) => (parts.length > 1 ? `${formatBytes(bytes[source])} ` : '');
  const where = parts.map((source) => amount(source) + sources[source]).join(', ');
  const known = reason === undefined ? undefined : segmentReasons[reason as Reason];
  const why = early && reason === 'no-holder' ? 'the other viewers were not known yet' : known;
  return why === undefined || parts.at(-1) === 'peer' ? where : `${where}: ${why}`;
}

/** What is in the way and what to do about it, or undefined for a reason that asks nothing of a person. */
export function remedy(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : remedies[reason as Reason];
}
