import type { Reason, Source } from './delivery';
import { formatBytes } from './format';

/** Why a segment did not come from a viewer, as the end of a sentence. */
const segmentReasons: Record<Reason, string> = {
  'no-cert': 'no seed had signed its digests in time, so another viewer’s copy could not be verified',
  'no-holder': 'no other viewer had it yet',
  'udp-blocked': 'UDP does not get through this network',
  'symmetric-nat': 'this network gives every connection another address',
  'lna-denied': 'the browser keeps this page from the local network',
  'insecure-context': 'the page is not in a secure context',
  policy: 'the site’s policy says so, or the line is being measured',
  budget: 'a budget was spent',
  'needs-token': 'the manifest is signed and the page has no token',
  urgent: 'it was needed at once',
  'control-group': 'this viewer is in the control group, served by the origin alone',
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
  const why = early && reason === 'no-holder' ? 'the swarm was not joined yet' : known;
  return why === undefined || parts.at(-1) === 'peer' ? where : `${where}: ${why} (${reason})`;
}

/** What is in the way and what to do about it, or undefined for a reason that asks nothing of a person. */
export function remedy(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : remedies[reason as Reason];
}
