/** What every cell looks at. Each check returns what is wrong, in words; nothing: all is well. */

import { createHash } from 'node:crypto';
import type { PageSeen, PlayerSeen } from '../page/probe.ts';
import type { Scene } from './scene.ts';

/** A viewer of a cell, and what its page has seen. */
export interface Watched {
  name: string;
  seen: PageSeen;
}

const round = (x: number) => Math.round(x * 100) / 100;

/** Where a picture is to be at last, in seconds, and, at a live edge, how many of them are to be played: a player may jump over gaps. */
export interface End {
  ended: boolean;
  seconds: number;
  played?: number;
}

/** The pictures went through, without a stall, and no player gave up. */
export function playedThrough({ name, seen }: Watched, end: End): string[] {
  const wrong: string[] = [];
  for (const [i, { picture, errors }] of seen.players.entries()) {
    const who = seen.players.length > 1 ? `${name}, player ${i + 1}` : name;
    if (!picture) {
      wrong.push(`${who}: no picture`);
      continue;
    }
    const { stalls, ended, currentTime, played, error } = picture;
    if (end.ended && !ended) wrong.push(`${who}: not at the end, at ${round(currentTime)} s`);
    if (currentTime < end.seconds) wrong.push(`${who}: only ${round(currentTime)} s played`);
    else if (end.played && played < end.played)
      wrong.push(`${who}: ${round(played)} s played of ${end.played}, gaps jumped`);
    if (stalls.length > 0) wrong.push(`${who}: stalled ${stalls.map(({ ms }) => `${Math.round(ms)} ms`).join(', ')}`);
    if (error) wrong.push(`${who}: video error: ${error}`);
    const fatal = errors.filter((one) => one.fatal);
    if (fatal.length > 0) wrong.push(`${who}: fatal: ${fatal.map(({ code }) => code).join(', ')}`);
  }
  return wrong;
}

/** The page had no errors of its own, and the library said nothing. */
export function quiet({ name, seen }: Watched): string[] {
  const wrong = seen.pageErrors.map((error) => `${name}: page: ${error}`);
  if (seen.notices.length > 0) wrong.push(`${name}: notices: ${seen.notices.join(', ')}`);
  if (seen.contradictions > 0) wrong.push(`${name}: ${seen.contradictions} contradictions`);
  return wrong;
}

/** Every media response that the players were given is the origin's, byte by byte; `least`: how many there are. */
export async function originBytes(scene: Scene, { name, seen }: Watched, least: number): Promise<string[]> {
  const wrong: string[] = [];
  for (const { received } of seen.players) {
    const media = new Set<string>();
    for (const { url, range, length, digest } of received) {
      const file = new URL(url).pathname.split('/').at(-1)!;
      const bytes = await scene.bytes(url, range);
      if (!bytes) wrong.push(`${name}: received ${file} ${range}, which the origin does not have`);
      else if (createHash('sha256').update(bytes).digest('hex') !== digest) {
        wrong.push(`${name}: ${file} ${range}: ${length} bytes that are not the origin's ${bytes.length}`);
      }
      if (scene.media.isMedia(file)) media.add(`${file} ${range}`);
    }
    if (media.size < least) {
      wrong.push(
        `${name}: only ${media.size} segments received, of at least ${least}: ${[...media].sort().join(', ')}`,
      );
    }
  }
  return wrong;
}

/** Where the bytes of a viewer came from. */
export function sources(...seen: PageSeen[]): { origin: number; seed: number; peer: number } {
  const sum = { origin: 0, seed: 0, peer: 0 };
  for (const { bytes } of seen.flatMap(({ shared }) => shared)) {
    for (const source of ['origin', 'seed', 'peer'] as const) sum[source] += bytes[source];
  }
  return sum;
}

/** The shares of a viewer's bytes that the origin did not send, by the origin's own account, and that its peer sent. */
export function shareOf(scene: Scene, { name, seen }: Watched): { others: number; peer: number } {
  const media = scene.requests().filter(({ path, asker }) => asker === name && scene.media.isMedia(path));
  const fetched = media.reduce((sum, { bytes }) => sum + bytes, 0);
  const received = seen.players.flatMap((player) => player.received).reduce((sum, { length }) => sum + length, 0) || 1;
  return { others: round(Math.max(0, 1 - fetched / received)), peer: round(sources(seen).peer / received) };
}

/** The second viewer had segments of the first. */
export function sharedSegments(scene: Scene, watched: Watched, least: number): string[] {
  const { name, seen } = watched;
  const { others, peer } = shareOf(scene, watched);
  const wrong: string[] = [];
  if (peer === 0) wrong.push(`${name}: nothing from its peer`);
  if (others < least) {
    const reasons = [...new Set(seen.shared.map(({ reason }) => reason).filter(Boolean))].join(', ');
    wrong.push(`${name}: ${others} from others, of at least ${least} (${reasons})`);
  }
  return wrong;
}

/** Keys and licenses went from the origin to each viewer, and to no other program. */
export function ownKeys(scene: Scene, secret: RegExp, viewers: Watched[], each = 1): string[] {
  const wrong: string[] = [];
  const asked = scene.requests().filter(({ path }) => secret.test(path));
  for (const { name, seen } of viewers) {
    const own = asked.filter(({ asker, status }) => asker === name && status === 200);
    const files = new Set(own.map(({ path }) => path)).size;
    if (files < each) wrong.push(`${name}: asked the origin for ${files} keys, of ${each}`);
    const passed = seen.shared.filter(({ url }) => secret.test(new URL(url).pathname.split('/').at(-1)!));
    if (passed.length > 0) wrong.push(`${name}: the library had a key: ${passed[0]!.url}`);
  }
  const servers = asked.filter(({ asker }) => asker === 'server');
  if (servers.length > 0) wrong.push(`a server of Leeway asked for ${servers[0]!.path}`);
  return wrong;
}

/** What a player told the page of, without those that browsers and players say at will. */
export const told = ({ errors }: PlayerSeen): string[] => errors.map(({ code, fatal }) => (fatal ? `${code}!` : code));
