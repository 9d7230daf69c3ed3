/** What a line is good for, in words. */
import { type Figure, figureOf, type Mapping, type Reachability, type Results } from '@leeway/netcheck';
import { rate, share, time } from './format.ts';

export type Tone = 'good' | 'fair' | 'poor';

export interface Verdict {
  use: string;
  tone: Tone;
  /** One word. */
  word: string;
  why: string;
}

/** bit/s that a stream takes, with room for its peaks; below the second it stalls. */
const streams = { hd: [8e6, 5e6], uhd: [25e6, 15e6] } as const;
/** bit/s of a stream that one more viewer could get from this line. */
const oneViewer = 5e6;
/** Below it a viewer has nothing to give. */
const leastUplink = 5e5;

const words = ([value, unit]: readonly [string, string]) => `${value} ${unit}`;

const pick = <T>(tone: Tone, good: T, fair: T, poor: T): T => ({ good, fair, poor })[tone];

function stream(use: string, [enough, least]: readonly [number, number], down: number): Verdict {
  const tone: Tone = down >= enough ? 'good' : down >= least ? 'fair' : 'poor';
  const why = pick(
    tone,
    `${words(rate(down))} come in; ${words(rate(enough))} are plenty for it.`,
    `${words(rate(down))} come in, just what it takes. When others use the line, the picture gets coarser.`,
    `${words(rate(down))} come in; it takes ${words(rate(least))}. The player will choose a smaller picture.`,
  );
  return { use, tone, word: pick(tone, 'Good', 'Tight', 'Too slow'), why };
}

function calls(figures: readonly Figure[], down: number, up: number): Verdict {
  const loaded = figureOf(figures, 'loaded_rtt') ?? 0;
  const loss = figureOf(figures, 'loss') ?? 0;
  const least = Math.min(down, up);
  const tone: Tone =
    least >= 3e6 && loaded <= 0.15 && loss <= 0.01
      ? 'good'
      : least < 1e6 || loaded > 0.4 || loss > 0.05
        ? 'poor'
        : 'fair';
  const limits = [
    least < 3e6 && `the slower direction carries ${words(rate(least))}`,
    loaded > 0.15 && `a round trip takes ${words(time(loaded))} while the line is busy`,
    loss > 0.01 && `${words(share(loss))} of the messages are lost`,
  ].filter(Boolean);
  const why =
    limits.length === 0
      ? `A round trip takes ${words(time(loaded))} even while the line is busy.`
      : `${upper(limits.join(', and '))}.`;
  return { use: 'Video calls', tone, word: pick(tone, 'Good', 'Fair', 'Poor'), why };
}

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function swarm({ figures, channel }: Known, up: number): Verdict {
  const use = 'For other viewers';
  const loss = figureOf(figures, 'loss', 'up') ?? 0;
  const viewers = Math.floor((0.8 * up) / oneViewer);
  if (channel === 'blocked') {
    const why =
      'No data channel opens: a firewall blocks UDP, often on purpose, or UDP leaves by another address than this page. Other viewers cannot be reached. Leeway would play from the site, or by a relay.';
    return { use, tone: 'poor', word: 'Takes only', why };
  }
  if (up < leastUplink) {
    const why = `Its uplink of ${words(rate(up))} has nothing left over. Leeway would have it receive from others, and send nothing.`;
    return { use, tone: 'poor', word: 'Takes only', why };
  }
  if (loss > 0.1) {
    const why = `${words(share(loss))} of what it sends is lost. Leeway would have it receive from others, and send nothing.`;
    return { use, tone: 'poor', word: 'Takes only', why };
  }
  if (viewers < 1) {
    const why = `Its uplink of ${words(rate(up))} carries parts of a picture, not all of one. Leeway sends when nothing else does.`;
    return { use, tone: 'fair', word: 'Gives a little', why };
  }
  const many =
    viewers === 1 ? 'another viewer' : viewers > 50 ? 'more than 50 other viewers' : `${viewers} other viewers`;
  const why = `Its uplink of ${words(rate(up))} could carry the picture to ${many}. Leeway sends when nothing else does, and gives way at once.`;
  return { use, tone: 'good', word: 'Can give', why };
}

function queue(figures: readonly Figure[]): Verdict | undefined {
  const idle = Math.min(...figures.filter(({ name }) => name === 'baseline_rtt').map(({ value }) => value));
  const loaded = figureOf(figures, 'loaded_rtt');
  if (!Number.isFinite(idle) || loaded === undefined) return undefined;
  const more = loaded - idle;
  const tone: Tone = more < 0.03 ? 'good' : more < 0.2 ? 'fair' : 'poor';
  const grows = `${words(time(idle))} while the line is idle, ${words(time(loaded))} while it is busy`;
  const asked = requests(figures);
  const why = pick(
    tone,
    `A round trip takes ${grows}.`,
    `A round trip takes ${grows}. Games and calls feel that.`,
    `A round trip takes ${grows}: data waits in a queue of the router ("bufferbloat"). A router with queue management mends that.`,
  );
  const word = pick(tone, 'Stays quick', 'Slows down', 'Gets stuck');
  return { use: 'While others use the line', tone, word, why: asked ? `${why} ${asked}` : why };
}

/** What a request on a connection that is busy itself waits for, both ends' buffers included: the worse direction. */
function requests(figures: readonly Figure[]): string | undefined {
  const all = figures.filter(({ name }) => name === 'request_responsiveness').map(({ value }) => value);
  if (all.length === 0) return undefined;
  const least = Math.min(...all);
  return `In the middle of a transfer a request is answered in ${words(time(60 / least))} (${Math.round(least).toLocaleString('en')} a minute).`;
}

/** What other traffic left of the line, which says nothing of the line where there was much of it. */
function beside(down: number, up: number | undefined): Verdict {
  const [enough, least] = streams.hd;
  const tone: Tone = down >= enough ? 'good' : down >= least ? 'fair' : 'poor';
  const ways = [`${words(rate(down))} down`, up !== undefined && `${words(rate(up))} up`].filter(Boolean).join(' and ');
  const why = `${ways} were free. That is what other traffic left; the line's capacity may be larger.`;
  return { use: 'Beside other traffic', tone, word: pick(tone, 'Room for HD', 'Just HD', 'Little room'), why };
}

/** What a mapping means for links to other viewers. */
const met: Record<Mapping, readonly [Tone, string, string]> = {
  untranslated: ['good', 'Directly', 'Packets arrive as they are sent, without a NAT.'],
  'endpoint-independent': ['good', 'Directly', 'All viewers reach this line at one address.'],
  unknown: ['fair', 'By UDP', 'UDP goes through; the kind of NAT is not known.'],
  dependent: [
    'fair',
    'Often',
    'A NAT gives each viewer another address (a "symmetric" one). Viewers behind another such NAT are met by a relay alone.',
  ],
  'no-answer': ['poor', 'Not by UDP', 'Nothing answers by UDP: a firewall blocks it, often on purpose.'],
};

/** By the better one of the two families. Without a NAT a browser may leave out what a server answers; then the data channel shows UDP. */
function reaching({ ipv4, ipv6 }: Reachability, figures: readonly Figure[]): Verdict {
  const best = (Object.keys(met) as Mapping[]).find((mapping) => mapping === ipv4 || mapping === ipv6)!;
  const opened = best === 'no-answer' && figureOf(figures, 'round_trip') !== undefined;
  const [tone, word, why] = met[opened ? 'unknown' : best];
  const family = ipv4 === ipv6 ? '' : best === ipv4 ? 'By IPv4: ' : 'By IPv6: ';
  return { use: 'Reaching other viewers', tone, word, why: family + why };
}

type Known = Pick<Results, 'figures' | 'channel' | 'reachability'>;

/** What a result means; of what was not measured nothing is said. */
export function verdicts(known: Known): Verdict[] {
  const { figures } = known;
  const down = figureOf(figures, 'throughput', 'down');
  const up = figureOf(figures, 'throughput', 'up');
  const all: (Verdict | undefined)[] = [];
  if (down !== undefined) {
    all.push(stream('HD video', streams.hd, down), stream('4K video', streams.uhd, down));
  }
  if (down !== undefined && up !== undefined) all.push(calls(figures, down, up));
  all.push(queue(figures));
  const free = figureOf(figures, 'free_capacity', 'down');
  if (free !== undefined) all.push(beside(free, figureOf(figures, 'free_capacity', 'up')));
  if (up !== undefined || known.channel === 'blocked') all.push(swarm(known, up ?? 0));
  if (known.reachability) all.push(reaching(known.reachability, figures));
  return all.filter((v) => v !== undefined);
}
