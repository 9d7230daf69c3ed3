import type { DeliveryView, LinkView, Source } from './delivery';
import { formatBytes, formatRate } from './format';
import { maxOthers } from './layout';
import type { Neighbor } from './neighbors';
import type { Figure, FlowFigure, Scene } from './picture';

/** The library's figures with rates, bytes per second. */
export interface Rated {
  view: DeliveryView;
  links: (LinkView & { inRate: number; outRate: number })[];
  originRate: number;
}

const youId = 'you';
const originId = 'origin';

/** What comes in to this viewer, as its neighbors draw it. */
export function incoming({ links, originRate }: Rated): Neighbor['flows'] {
  const flows: Neighbor['flows'] = links
    .filter((l) => l.inRate > 0)
    .map((l) => ({ from: l.peer, source: l.role === 'seed' ? 'seed' : 'peer', rate: Math.round(l.inRate) }));
  if (originRate > 0) flows.push({ from: originId, source: 'origin', rate: Math.round(originRate) });
  return flows;
}

/** The picture of which peers serve which, from this viewer's own links and from what its neighbors tell of theirs. */
export function buildScene(rated: Rated, neighbors: Neighbor[], viewer: number, thumbnail: string): Scene {
  const { view, links } = rated;
  const self = view.self;
  const viewers = links.filter((l) => l.role === 'viewer');
  const near = neighbors.filter((n) => n.peer !== self);
  const numbers = new Map(near.map((n) => [n.peer, n]));
  const strangers = viewers.filter((l) => !numbers.has(l.peer)).map((l) => l.peer);
  const others = [...near.map((n) => n.peer), ...strangers.sort()].slice(0, maxOthers);

  const figures: Figure[] = [originFigure(rated)];
  for (const seed of links.filter((l) => l.role === 'seed')) figures.push(seedFigure(seed));
  figures.push(youFigure(rated, viewer, thumbnail));
  for (const peer of others) {
    const link = viewers.find((l) => l.peer === peer);
    figures.push(viewerFigure(peer, link, numbers.get(peer)));
  }

  const flows: FlowFigure[] = [];
  const flow = (from: string, to: string, source: Source, rate: number, faint: boolean) => {
    if (rate > 0) flows.push({ from, to, source, rate, faint });
  };
  for (const neighbor of near) {
    for (const f of neighbor.flows) if (f.from !== self) flow(f.from, neighbor.peer, f.source, f.rate, true);
  }
  flow(originId, youId, 'origin', rated.originRate, false);
  for (const l of links) {
    flow(l.peer, youId, l.role === 'seed' ? 'seed' : 'peer', l.inRate, false);
    flow(youId, l.peer, 'peer', l.outRate, false);
  }
  return { figures, flows, links: links.map((l) => [l.peer, youId]) };
}

function originFigure({ view, originRate }: Rated): Figure {
  const detail = originRate > 0 ? formatRate(originRate) : view.bytes.origin > 0 ? 'idle' : '';
  return {
    id: originId,
    kind: 'origin',
    label: 'Origin',
    detail,
    story: `Origin: the site’s own server. ${formatBytes(view.bytes.origin)} came from it.`,
    source: originRate > 0 ? 'origin' : undefined,
    thumbnail: undefined,
  };
}

function seedFigure(seed: Rated['links'][number]): Figure {
  return {
    id: seed.peer,
    kind: 'seed',
    label: 'Seed',
    detail: seed.inRate > 0 ? formatRate(seed.inRate) : 'idle',
    story: `Seed: the site’s own helper, which hands each part to the first viewer. ${formatBytes(seed.downloaded)} came from it; it answers in ${ms(seed.rttMs)}.`,
    source: seed.inRate > 0 ? 'seed' : undefined,
    thumbnail: undefined,
  };
}

function youFigure({ view }: Rated, viewer: number, thumbnail: string): Figure {
  const total = view.bytes.origin + view.bytes.seed + view.bytes.peer;
  return {
    id: youId,
    kind: 'you',
    label: 'You',
    detail: '',
    story: `You, viewer ${viewer}: ${formatBytes(total)} received, ${formatBytes(view.given)} given.`,
    source: undefined,
    thumbnail: thumbnail || undefined,
  };
}

function viewerFigure(peer: string, link: Rated['links'][number] | undefined, neighbor: Neighbor | undefined): Figure {
  const label = neighbor === undefined ? peer.slice(0, 4) : `Viewer ${neighbor.viewer}`;
  const who = neighbor === undefined ? `Viewer ${label}` : label;
  const base = { id: peer, kind: 'viewer' as const, label, thumbnail: neighbor?.thumbnail || undefined };
  if (link === undefined)
    return { ...base, detail: 'no link', story: `${who}: not connected to you.`, source: undefined };
  const parts: string[] = [];
  if (link.inRate > 0) parts.push(`gives ${formatRate(link.inRate)}`);
  else if (link.outRate > 0) parts.push(`takes ${formatRate(link.outRate)}`);
  const story =
    `${who}: gave you ${formatBytes(link.downloaded)}, took ${formatBytes(link.uploaded)}, ` +
    `${link.path === 'relay' ? 'by way of a server; ' : ''}it answers in ${ms(link.rttMs)}.`;
  const flowing = link.inRate > 0 || link.outRate > 0;
  return { ...base, detail: parts[0] ?? 'linked', story, source: flowing ? 'peer' : undefined };
}

function ms(value: number): string {
  return value > 0 ? `${Math.max(1, Math.round(value))} ms` : 'a time not measured yet';
}
