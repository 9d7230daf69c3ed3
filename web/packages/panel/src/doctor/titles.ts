/** What the library has of the films that the page plays. */

import type { Leeway, TitleSnapshot } from '@leeway/core';
import { sum } from '../text.ts';
import type { Examination } from './examination.ts';
import { type Found, fail, ok, skipped, warn } from './finding.ts';
import { begun, fixes } from './fixes.ts';
import { noWelcome } from './tracker.ts';

/** How long a link and a first piece may take. */
const patienceMs = 8_000;
const lookMs = 200;
/** Titles that are looked at. */
const most = 4;

/** Looks until something holds, or patience is at its end. */
function until(leeway: Leeway, holds: () => boolean): Promise<void> {
  const by = leeway.clock.now() + patienceMs;
  return new Promise((resolve) => {
    const look = () => {
      if (holds() || leeway.clock.now() > by) resolve();
      else leeway.clock.setTimer(look, lookMs);
    };
    look();
  });
}

const noManifest = 'no player has opened a manifest';

const titlesOf = (leeway: Leeway): TitleSnapshot[] => leeway.stats().titles.slice(0, most);

/** One finding for each title; several are told apart by name. */
async function each(leeway: Leeway, look: (title: TitleSnapshot) => Found): Promise<Found | Found[]> {
  const all = titlesOf(leeway);
  if (!all.length) return skipped(noManifest);
  return all.map((title) => {
    const found = look(title);
    return all.length > 1 ? { ...found, text: `${title.title ?? title.manifest}: ${found.text}` } : found;
  });
}

/** Whether the manifest is the site's, and whether the site shares at all. */
export async function checkSite({ leeway, greeting }: Examination): Promise<Found | Found[]> {
  if (!greeting) return skipped(noWelcome);
  if (greeting.policy.role === 'off')
    return fail('site-off', 'peer delivery is off for this site or this viewer', fixes['site-off']);
  if (!titlesOf(leeway).length) return skipped(noManifest, 'start playback, then call leeway.doctor() once more');
  await until(leeway, () => titlesOf(leeway).every(({ swarm, off }) => swarm || off));
  const { notice } = leeway.stats();
  return each(leeway, ({ manifest, title, swarm, off, viewers }) => {
    if (off === 'control-group')
      return warn(
        'control-group',
        'this viewer is in the control group, which the origin alone serves',
        'load the page again; policy.control_group_permille of the site says how many are drawn',
      );
    const host = manifest.split('/')[2] ?? '';
    if (off && !greeting.site.hosts.includes(host))
      return fail(
        'foreign-manifest',
        `the manifest is on ${host}, and site ${greeting.site.name} has ${greeting.site.hosts.join(', ')}`,
        `${begun['foreign-manifest']}"${host}"]; hosts serve the same paths`,
      );
    if (off) return fail(notice?.code ?? off, notice?.message ?? `peer delivery is off (${off})`, notice?.hint ?? '');
    if (!swarm) return fail('join-timeout', 'the title was not joined', fixes['welcome-timeout']);
    return ok(`title ${title}, ${viewers} viewers in the swarm`);
  });
}

/** Names that no seed knows are a viewer's own (decision 0063). */
export function checkSigned({ leeway }: Examination): Promise<Found | Found[]> {
  return each(leeway, ({ totals, title }) => {
    const names = Object.keys(totals.unlisted_query ?? {});
    if (names.length)
      return fail(
        'signed-urls',
        `no seed knows the segments by their names, which carry ${names.join(', ')}: each viewer probably has names of its own`,
        `${begun['signed-urls']}${names.join(', ')}]} (docs/operations/signed-urls.md)`,
      );
    return title ? ok('no seed has refused a segment for its name') : skipped('the title was not joined');
  });
}

/** Seeds that were introduced as the title was joined, or that are linked: one that starts later is introduced later. */
const seedsOf = ({ seeds, engine }: TitleSnapshot) =>
  seeds || (engine?.peers.filter(({ role }) => role === 'seed').length ?? 0);

/** Waits for a seed as long as for a link: one may just have started. */
export async function checkSeed({ leeway }: Examination): Promise<Found | Found[]> {
  await until(leeway, () => titlesOf(leeway).every((title) => seedsOf(title) || !title.swarm || title.off));
  return each(leeway, (title) => {
    if (!title.swarm || title.off) return skipped('the title is not shared');
    const seeds = seedsOf(title);
    return seeds ? ok(`${seeds} seed introduced`) : fail('no-seed', 'no seed was introduced', fixes['no-seed']);
  });
}

/** Why links fail, as far as the browser tells. */
const blocked: Record<string, string> = {
  'udp-blocked':
    'UDP is blocked on the way: name a TURN server with tcp or tls in tracker.ice_servers (docs/operations/turn.md)',
  'lna-denied': 'allow this page to reach the local network, or set policy.local of the site',
};

export async function checkLinks({ leeway }: Examination): Promise<Found | Found[]> {
  await until(leeway, () => titlesOf(leeway).every(({ links, swarm, off }) => links.open > 0 || !swarm || off));
  return each(leeway, ({ links, linkFailures, swarm, off, engine }) => {
    if (!swarm || off) return skipped('the title is not shared');
    if (links.open > 0) {
      const viewers = engine?.peers.filter(({ role }) => role === 'viewer') ?? [];
      if (viewers.length && viewers.every(({ path }) => path === 'relay'))
        return warn(
          'links-relayed',
          'other viewers are linked by a relay alone, which is used last',
          'viewers of one machine or network: policy.local of the site (docs/operations/host.md, See viewers share); else their networks let no direct link through',
        );
      const relayed = engine?.peers.filter(({ path }) => path === 'relay').length ?? 0;
      return ok(`${links.open} open${relayed ? `, ${relayed} of them by a relay` : ''}`);
    }
    const why = Object.keys(linkFailures).find((reason) => blocked[reason]);
    const failures = Object.entries(linkFailures).map(([reason, n]) => `${reason} ${n}`);
    return fail(
      'link-none',
      `no link opened within ${patienceMs / 1000} s${failures.length ? ` (${failures.join(', ')})` : ''}`,
      (why && blocked[why]) || fixes['link-none'],
    );
  });
}

/** Bytes that were verified and came from somewhere else than the origin. */
const others = ({ totals: { bytes } }: TitleSnapshot) => sum(Object.values(bytes)) - bytes.origin;

export async function checkPiece({ leeway }: Examination): Promise<Found | Found[]> {
  const before = new Map(titlesOf(leeway).map(({ manifest, totals }) => [manifest, totals.bytes.origin]));
  const linked = () => titlesOf(leeway).filter(({ links }) => links.open > 0);
  await until(leeway, () => linked().every((title) => others(title) > 0));
  return each(leeway, (title) => {
    const { manifest, links, totals, off } = title;
    if (others(title) > 0) {
      const { seed, seed_relay, peer, peer_relay } = totals.bytes;
      return ok(`verified: ${peer + peer_relay} bytes of viewers, ${seed + seed_relay} of seeds`);
    }
    if (off || !links.open) return skipped('there is no link');
    if (totals.bytes.origin === before.get(manifest))
      return skipped(
        'the player asked for no segment meanwhile: paused, or all of it is there',
        'play on, then call leeway.doctor() once more',
      );
    const reasons = Object.keys(totals.reasons).join(', ');
    return fail(
      'piece-none',
      `links are open and no verified piece came within ${patienceMs / 1000} s: reasons ${reasons}`,
      fixes['piece-none'],
    );
  });
}
