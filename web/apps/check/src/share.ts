/** A result in the fragment of a link: nothing is stored at a server. */
import {
  type CandidateType,
  type Direction,
  type FigureName,
  figure,
  kinds,
  type Mapping,
  type Reachability,
  type Results,
  scoresOf,
} from '@leeway/netcheck';

const longest = 8192;
const most = 100; // figures
const short: Record<Direction, string> = { up: 'u', down: 'd', 'round-trip': 'r' };

/** What a result says besides figures: a bit each. */
const flags = { clock: 1, blocked: 2, broken: 4 };

/** version, server, started, flags, figures, and what is reached: IPv4, IPv6 and the types of candidates. */
type Packed = [1, string, number, number, [string, string, number][], [Mapping, Mapping, CandidateType[]]?];

const mappings: readonly string[] = ['no-answer', 'untranslated', 'dependent', 'endpoint-independent', 'unknown'];
const types: readonly string[] = ['host', 'srflx', 'relay'];

/** A result as precise as its link: a page that shows this says what its link says. */
export function shareable(results: Results): Results {
  const figures = results.figures.map((f) => ({ ...f, value: Number(f.value.toPrecision(6)) }));
  return { ...results, figures, scores: scoresOf(figures) };
}

/** The fragment of a shareable result, without the #. */
export function pack(results: Results): string {
  const figures = results.figures.map(({ name, direction, value }): Packed[4][number] => [
    name,
    short[direction],
    value,
  ]);
  const packed: Packed = [
    1,
    results.server,
    results.started_ms,
    (results.one_way ? flags.clock : 0) + (results.channel ? flags[results.channel] : 0),
    figures,
  ];
  const { reachability: r } = results;
  if (r) packed.push([r.ipv4, r.ipv6, r.candidates]);
  const bytes = new TextEncoder().encode(JSON.stringify(packed));
  const text = btoa(String.fromCharCode(...bytes));
  return `r=${text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
}

/** A result of a fragment; undefined if there is none in it that makes sense. */
export function unpack(fragment: string): Results | undefined {
  const text = /^#?r=([\w-]+)$/.exec(fragment)?.[1];
  if (!text || text.length > longest) return undefined;
  let packed: unknown;
  try {
    const raw = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    packed = JSON.parse(new TextDecoder().decode(Uint8Array.from(raw, (c) => c.charCodeAt(0))));
  } catch {
    return undefined;
  }
  if (!Array.isArray(packed) || packed[0] !== 1) return undefined;
  const [, server, started, said, figures, reached] = packed as unknown[];
  if (typeof server !== 'string' || server.length > 300) return undefined;
  if (
    typeof started !== 'number' ||
    !(Math.abs(started) < 8.64e15) ||
    !Array.isArray(figures) ||
    figures.length > most
  ) {
    return undefined;
  }
  const read = figures.map(figureFrom);
  if (!read.every((f) => f !== undefined)) return undefined;
  const reachability = reachabilityFrom(reached);
  return {
    ...(reachability && { reachability }),
    ...{ version: 1, server, started_ms: started, figures: read, scores: scoresOf(read) },
    ...(has(said, flags.clock) && { one_way: 'clock' as const }),
    ...(has(said, flags.blocked)
      ? { channel: 'blocked' as const }
      : has(said, flags.broken) && { channel: 'broken' as const }),
  };
}

const has = (said: unknown, flag: number) => typeof said === 'number' && (said & flag) !== 0;

/** Of a result that has none, and of one that makes no sense: undefined. */
function reachabilityFrom(from: unknown): Reachability | undefined {
  if (!Array.isArray(from)) return undefined;
  const [ipv4, ipv6, candidates] = from as unknown[];
  const known =
    Array.isArray(candidates) && candidates.every((c, n) => types.includes(c) && candidates.indexOf(c) === n);
  if (!known || !mappings.includes(ipv4 as string) || !mappings.includes(ipv6 as string)) return undefined;
  return { candidates, ipv4, ipv6 } as Reachability;
}

function figureFrom(from: unknown) {
  if (!Array.isArray(from)) return undefined;
  const [name, way, value] = from as unknown[];
  const direction = (Object.keys(short) as Direction[]).find((d) => short[d] === way);
  const known = typeof name === 'string' && Object.hasOwn(kinds, name);
  if (!known || !direction || typeof value !== 'number' || !Number.isFinite(value) || value < 0) return undefined;
  return figure(name as FigureName, direction, value);
}
