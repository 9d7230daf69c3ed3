/** The cases: what is played, and what has to come of it. */

import type { Adapter } from '../adapter.ts';
import { fixtures, segmentSeconds } from '../fixtures/recipe.ts';
import type { CaseName } from '../names.ts';
import {
  originBytes,
  ownKeys,
  playedThrough,
  quiet,
  sharedSegments,
  shareOf,
  sources,
  told,
  type Watched,
} from './checks.ts';
import type { Scene, SceneOptions } from './scene.ts';
import { ended, pause, reached, type View } from './view.ts';

/** What a cell measured, for the record. */
export type Figures = Record<string, number | string[]>;

export interface Outcome {
  wrong: string[];
  figures: Figures;
}

export interface Case {
  name: CaseName;
  title: string;
  scene: SceneOptions;
  run(scene: Scene): Promise<Outcome>;
}

/** How far the first viewer is ahead of the second, in seconds of film. */
const leadSeconds = 4;
/** Where the second viewer waits for its links, in seconds of film, and how many it has: to the first viewer and to the seed. */
const heldSeconds = 0.5;
const ends = 2;
/** Beyond the length of what is played, in seconds of the clock. */
const patienceSeconds = 30;
/** How long viewers of low latency watch, in seconds of film. */
const lowLatencySeconds = 14;
/** The least share that others send to a second viewer; its player fills a buffer of eight seconds before a link is up. */
const leastShare = 0.3;
const segments = fixtures.ts.seconds / segmentSeconds;

const read = async (...views: View[]): Promise<Watched[]> =>
  Promise.all(views.map(async (view) => ({ name: view.name, seen: await view.read() })));

const figuresOf = (scene: Scene, host: Watched, guest: Watched): Figures => {
  const startups = [host, guest].map(({ seen }) => Math.round(seen.players[0]?.picture?.startup ?? -1));
  return { hostStartup: startups[0]!, guestStartup: startups[1]!, ...shareOf(scene, guest), ...sources(guest.seen) };
};

/** Two viewers, one after the other, watch all of it. */
async function together(scene: Scene, least = segments): Promise<Outcome & { host: Watched; guest: Watched }> {
  const { seconds } = scene.fixture;
  const first = await scene.view('host');
  await first.until(reached(leadSeconds), patienceSeconds);
  const second = await scene.view('guest');
  // How long links take is the machine's: on a busy one, a film of 24 s has passed by half before there are any.
  await second.until(reached(heldSeconds), patienceSeconds);
  await second.hold();
  await second.linked(ends, patienceSeconds);
  await second.play();
  await Promise.all([first, second].map((view) => view.until(ended, seconds + patienceSeconds)));
  const [host, guest] = (await read(first, second)) as [Watched, Watched];
  const wrong: string[] = [];
  for (const one of [host, guest]) {
    wrong.push(...playedThrough(one, { ended: true, seconds: seconds - 1 }), ...quiet(one));
    wrong.push(...(await originBytes(scene, one, least)));
  }
  wrong.push(...sharedSegments(scene, guest, leastShare));
  return { wrong, figures: figuresOf(scene, host, guest), host, guest };
}

const encrypted =
  (secret: RegExp, keys: number, least = segments) =>
  async (scene: Scene): Promise<Outcome> => {
    const { wrong, figures, host, guest } = await together(scene, least);
    return { wrong: [...wrong, ...ownKeys(scene, secret, [host, guest], keys)], figures };
  };

/** Where the picture of a page at a live edge begins, in seconds. */
async function beginning(view: View): Promise<number> {
  await view.until(({ picture }) => (picture?.startup ?? -1) >= 0, patienceSeconds);
  return (await view.read()).players[0]?.picture?.currentTime ?? 0;
}

/** Two viewers at a live edge. Not all players say what is a part of a segment that is still being made: `shares` says whether there is more. */
const live =
  (watchSeconds: number, least: number | ((adapter: Adapter) => number), shares = (_: Adapter) => true) =>
  async (scene: Scene): Promise<Outcome> => {
    const [first, second] = [await scene.view('host'), await scene.view('guest')];
    const from = new Map<View, number>();
    for (const view of [first, second]) from.set(view, await beginning(view));
    await Promise.all(
      [first, second].map((view) =>
        view.until(reached(from.get(view)! + watchSeconds), watchSeconds + patienceSeconds),
      ),
    );
    const [host, guest] = (await read(first, second)) as [Watched, Watched];
    const wrong: string[] = [];
    // There the sound has segments of its own.
    const tracks = scene.adapter.format === 'dash' ? 2 : 1;
    const each = typeof least === 'number' ? least : least(scene.adapter);
    for (const [i, one] of [host, guest].entries()) {
      const begun = from.get([first, second][i]!)!;
      const end = { ended: false, seconds: begun + watchSeconds - 1, played: watchSeconds - 1 };
      wrong.push(...playedThrough(one, end), ...quiet(one));
      wrong.push(...(await originBytes(scene, one, tracks * each)));
    }
    const { seed, peer } = sources(host.seen, guest.seen);
    if (scene.media.early === 0) wrong.push('no segment was asked for while it was made: that is no low latency');
    if (shares(scene.adapter) && seed + peer === 0) wrong.push('nothing was shared');
    return { wrong, figures: { ...figuresOf(scene, host, guest), hostPeer: shareOf(scene, host).peer } };
  };

async function cmcd(scene: Scene): Promise<Outcome> {
  const { wrong, figures } = await together(scene);
  const asked = scene.requests().filter(({ path, asker }) => scene.media.isMedia(path) && asker !== 'server');
  const bare = asked.filter(({ query }) => !/(^|&)CMCD=/.test(query));
  if (bare.length > 0) wrong.push(`${bare.length} of ${asked.length} requests without CMCD, as ${bare[0]!.path}`);
  if (!asked.some(({ query }) => /CMCD=[^&]*v%3D2/.test(query))) wrong.push('no request says version 2');
  return { wrong, figures };
}

async function cmcdHeaders(scene: Scene): Promise<Outcome> {
  const { wrong, figures } = await together(scene);
  const asked = scene.requests().filter(({ path, asker }) => scene.media.isMedia(path) && asker !== 'server');
  const bare = asked.filter(({ cmcd }) => cmcd === '');
  if (bare.length > 0) wrong.push(`${bare.length} of ${asked.length} requests without CMCD, as ${bare[0]!.path}`);
  if (!asked.some(({ cmcd }) => /(^|,)v=2(,|$)/.test(cmcd))) wrong.push('no request says version 2');
  const named = asked.filter(({ query }) => query !== '');
  if (named.length > 0) wrong.push(`${named.length} requests have a query, as ${named[0]!.query}`);
  return { wrong, figures };
}

/** Whether a page without Leeway plays it: what a cell that failed has to say beside its reasons. */
export async function playsPlain(scene: Scene): Promise<boolean> {
  const view = await scene.view('host', true);
  if (!scene.live) return view.until(ended, scene.fixture.seconds + patienceSeconds);
  // It begins far from zero: where the picture is says nothing of what was played.
  const seconds = (await beginning(view)) + lowLatencySeconds;
  const there = await view.until(reached(seconds), lowLatencySeconds + patienceSeconds);
  const [player] = (await view.read()).players;
  return there && (player?.picture?.played ?? 0) >= lowLatencySeconds - 1;
}

/** Seeks, back and forth, faster than segments come; then all of the rest is watched. */
async function storms(scene: Scene): Promise<Outcome> {
  const first = await scene.view('host');
  await first.until(reached(leadSeconds), patienceSeconds);
  const second = await scene.view('guest');
  await second.until(reached(1), patienceSeconds);
  const slow = scene.fault({ file: /.*/, askers: ['host', 'guest'], rate: 60_000 });
  const targets = [20, 3, 15, 8, 22, 1, 12, 18, 5, 10, 2, 14];
  for (const view of [first, second]) {
    for (const to of targets) {
      await view.seek(to);
      await pause(150);
    }
  }
  slow();
  await Promise.all([first, second].map((view) => view.play()));
  await Promise.all([first, second].map((view) => view.until(ended, scene.fixture.seconds + patienceSeconds)));
  const [host, guest] = (await read(first, second)) as [Watched, Watched];
  const wrong: string[] = [];
  for (const one of [host, guest]) {
    // What the slow line did is the line's; what counts is that the picture came to the end.
    for (const { picture } of one.seen.players) picture?.stalls.splice(0);
    wrong.push(...playedThrough(one, { ended: true, seconds: scene.fixture.seconds - 1 }), ...quiet(one));
    wrong.push(...(await originBytes(scene, one, segments / 2)));
  }
  return { wrong, figures: figuresOf(scene, host, guest) };
}

/** The same faults, with Leeway and without: the player tells the page the same. */
async function originErrors(scene: Scene): Promise<Outcome> {
  const failing = /.*seg-(\d-)?\d*00?4\.(ts|m4s)/;
  scene.fault({ file: failing, askers: ['server'], status: 503 });
  const watch = async (asker: 'host' | 'guest', plain: boolean) => {
    const end = scene.fault({ file: failing, askers: [asker], status: 503, times: 2 });
    const view = await scene.view(asker, plain);
    await view.until(ended, scene.fixture.seconds + patienceSeconds);
    end();
    const [one] = (await read(view)) as [Watched];
    await view.close();
    const tries = scene.requests().filter(({ asker: by, path }) => by === asker && failing.test(path)).length;
    return { one, tries, errors: one.seen.players.flatMap(told).sort() };
  };
  const plain = await watch('host', true);
  const ours = await watch('guest', false);
  const end = { ended: true, seconds: scene.fixture.seconds - 1 };
  const wrong = [
    ...playedThrough(ours.one, end),
    ...quiet(ours.one),
    ...(await originBytes(scene, ours.one, segments)),
  ];
  if (plain.tries < 3) wrong.push(`without Leeway the player tried only ${plain.tries} times: the fault was not met`);
  if (ours.tries !== plain.tries) wrong.push(`${ours.tries} tries with Leeway, ${plain.tries} without`);
  if (ours.errors.join() !== plain.errors.join()) {
    wrong.push(`the player said [${ours.errors.join()}] with Leeway, [${plain.errors.join()}] without`);
  }
  return { wrong, figures: { tries: ours.tries, errors: ours.errors } };
}

/** A window of five segments, of a presentation that has begun four segments ago. */
const liveWindow = { window: 5, head: 8 };

export const cases: readonly Case[] = [
  { name: 'vod', title: 'video on demand', scene: { fixture: 'ts' }, run: (scene) => together(scene) },
  { name: 'live', title: 'live', scene: { fixture: 'live', live: liveWindow }, run: live(20, 8) },
  {
    name: 'low-latency',
    title: 'low latency',
    scene: { fixture: 'chunks', live: liveWindow, lowLatency: true },
    // In HLS parts are counted, in DASH whole segments.
    run: live(
      lowLatencySeconds,
      ({ format }) => (format === 'dash' ? 5 : 10),
      ({ parts }) => !!parts,
    ),
  },
  {
    name: 'byte-ranges',
    title: 'byte ranges',
    scene: { fixture: 'ranges' },
    run: (scene) => together(scene, 2 * segments),
  },
  {
    name: 'separate-audio',
    title: 'separate audio',
    scene: { fixture: 'cmaf' },
    run: (scene) => together(scene, 2 * segments),
  },
  { name: 'aes-128', title: 'AES-128', scene: { fixture: 'aes' }, run: encrypted(/\.key$/, 1) },
  { name: 'key-rotation', title: 'key rotation', scene: { fixture: 'rotation' }, run: encrypted(/\.key$/, 3) },
  {
    name: 'clear-key',
    title: 'EME clear key',
    scene: { fixture: 'clearkey' },
    run: encrypted(/^(license|content\.key)$/, 1, 2 * segments),
  },
  {
    name: 'discontinuities',
    title: 'discontinuities',
    scene: { fixture: 'discontinuity' },
    run: (scene) => together(scene),
  },
  { name: 'cmcd', title: 'CMCD v2', scene: { fixture: 'ts', cmcd: 'query' }, run: cmcd },
  {
    name: 'cmcd-headers',
    title: 'CMCD v2 in headers',
    scene: { fixture: 'ts', cmcd: 'headers' },
    run: cmcdHeaders,
  },
  { name: 'storms', title: 'abort and seek storms', scene: { fixture: 'ts' }, run: storms },
  {
    name: 'two-players',
    title: 'two players on a page',
    scene: { fixture: 'ts', players: 2 },
    run: (scene) => together(scene),
  },
  { name: 'origin-errors', title: "the origin's errors and retries", scene: { fixture: 'ts' }, run: originErrors },
];
