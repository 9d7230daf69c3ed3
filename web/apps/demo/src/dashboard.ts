import { Chart } from './chart';
import type { Delivery, DeliveryView, SegmentView } from './delivery';
import { Figures } from './figures';
import { History } from './history';
import { Neighbors } from './neighbors';
import { Outages } from './outage';
import { Picture } from './picture';
import type { Player } from './player';
import type { PlayedSegment } from './players/driver';
import { RateMeters } from './rates';
import { buildScene, incoming, type Rated } from './scene';
import { describe, type Sentence } from './sentence';
import { Thumbnail } from './thumbnail';
import { type Delivered, Timeline } from './timeline';

/** Segments of a live stream that the page remembers at least: tests look at them. */
const kept = 300;
/** Milliseconds between drawings of the streams, and between looks at the figures. */
const drawEveryMs = 100;
const lookEveryMs = 500;
/** How long an added viewer may take before the page offers its address. */
const expectMs = 6000;

export interface DashboardParts {
  player: Player;
  delivery: Delivery;
  viewer: number;
  film: string;
  /** The page's server can stop tracker and seed for so many seconds. */
  outages: boolean;
  outageSeconds: number;
}

/** Everything on the page but the player: looks twice a second, draws ten times, rests while the page is hidden. */
export class Dashboard {
  private readonly parts: DashboardParts;
  private readonly neighbors: Neighbors;
  private readonly picture = new Picture(document.querySelector<HTMLElement>('#scene')!);
  private readonly timeline = new Timeline(document.querySelector<HTMLElement>('#timeline')!);
  private readonly figures = new Figures();
  private readonly history = new History();
  private readonly chart = new Chart(document.querySelector<HTMLElement>('#rates')!);
  private readonly outages: Outages;
  private readonly thumbnail: Thumbnail;
  private readonly meters = new RateMeters();
  private readonly delivered = new Map<string, SegmentView>();
  private readonly sentence = document.querySelector<HTMLElement>('#sentence')!;
  private readonly status = document.querySelector<HTMLElement>('#status')!;
  private apartSince: number | undefined;
  private expected: { url: string; viewers: number; at: number } | undefined;
  private lookedAt = 0;
  private toldAt = 0;
  private said: Sentence | undefined;

  constructor(parts: DashboardParts) {
    this.parts = parts;
    this.neighbors = new Neighbors(parts.film, parts.viewer);
    this.thumbnail = new Thumbnail(parts.player.video);
    this.outages = new Outages(document.querySelector<HTMLElement>('#outages')!, parts.outages, parts.outageSeconds);
    this.outages.tell = (service, leftMs) => this.neighbors.tellOutage(service, leftMs);
    this.neighbors.onOutage = (service, leftMs) => this.outages.hear(service, leftMs);
    parts.delivery.onSegment = (segment) => this.arrived(segment);
    parts.player.onSegment = (segment) => this.fetched(segment);
  }

  start(): void {
    setInterval(() => this.tick(), drawEveryMs);
    document.addEventListener('visibilitychange', () => this.tick());
    addEventListener('pagehide', () => {
      this.neighbors.leave();
    });
    this.tick();
  }

  /** How a segment came, by its URL; undefined where the library said nothing. */
  deliveredAs(url: string): SegmentView | undefined {
    return this.delivered.get(url);
  }

  /** The number for the next window. */
  nextViewer(): number {
    return this.neighbors.nextNumber(performance.now());
  }

  /** A window was asked for; if none shows up, the page says what to do. */
  expect(url: string): void {
    const at = performance.now();
    this.expected = { url, viewers: this.neighbors.list(at).length, at };
  }

  private tick(): void {
    const now = performance.now();
    const { hidden } = document;
    // A hidden page still tells the others, once a second, what flows to it.
    if (now - this.lookedAt >= (hidden ? 1000 : lookEveryMs) - 20) {
      this.lookedAt = now;
      this.look(now, hidden);
    }
    if (!hidden) this.picture.draw(now);
  }

  private look(now: number, hidden: boolean): void {
    const { delivery, player, viewer } = this.parts;
    const view = delivery.view();
    if (view.script !== 'present') view.bytes.origin = player.received;
    const rated = this.rate(view, now);
    const others = this.neighbors.list(now);
    if (now - this.toldAt >= 950) {
      this.toldAt = now;
      if (!hidden) this.thumbnail.take();
      const told = { peer: view.self ?? '', viewer, ageMs: now, flows: incoming(rated), bytes: view.bytes };
      this.neighbors.tell({ ...told, thumbnail: this.thumbnail.url });
    }
    const machine = [{ id: this.neighbors.id, ageMs: now, bytes: view.bytes }, ...this.neighbors.all(now)];
    this.history.take(now, machine);
    if (hidden) return;
    this.picture.update(buildScene(rated, others, viewer, this.thumbnail.url));
    this.figures.show(view, player.experience());
    this.figures.showLag(player.lag());
    this.figures.showAll([view.bytes, ...others.map((n) => n.bytes)]);
    this.chart.show(now, this.history.points(now), this.history.total, machine.length, this.outages.gaps);
    this.follow();
    this.say(view, others.length, now);
  }

  private rate(view: DeliveryView, now: number): Rated {
    const links = view.links.map((link) => ({
      ...link,
      inRate: this.meters.take(`in ${link.peer}`, link.downloaded, now),
      outRate: this.meters.take(`out ${link.peer}`, link.uploaded, now),
    }));
    const originRate = this.meters.take('origin', view.bytes.origin, now);
    this.meters.sweep(now - 10_000);
    return { view, links, originRate };
  }

  private follow(): void {
    const { player } = this.parts;
    const positionMs = player.video.currentTime * 1000;
    const slots = player.slots();
    this.timeline.layOut(slots, positionMs, player.live());
    if (player.live()) this.forget(slots[0]?.startMs ?? 0);
    const { buffered, currentTime } = player.video;
    let end = currentTime;
    for (let i = 0; i < buffered.length; i++) {
      if (buffered.start(i) <= currentTime + 0.1) end = Math.max(end, buffered.end(i));
    }
    this.timeline.follow(positionMs, end * 1000);
  }

  private say(view: DeliveryView, neighbors: number, now: number): void {
    const viewers = view.links.filter((l) => l.role === 'viewer');
    const others = Math.max(neighbors, view.struggling ? 1 : 0);
    const apart = view.state === 'connected' && others > 0 && viewers.length === 0;
    this.apartSince = apart ? (this.apartSince ?? now) : undefined;
    const sentence = describe({
      script: view.script,
      state: view.state,
      notice: view.notice,
      reason: view.reason,
      others,
      linkedViewers: viewers.length,
      linkedSeeds: view.links.length - viewers.length,
      serving: viewers.filter((l) => l.downloaded > 0).length,
      served: viewers.filter((l) => l.uploaded > 0).length,
      bytes: view.bytes,
      given: view.given,
      waitedMs: this.apartSince === undefined ? 0 : now - this.apartSince,
      failure: this.parts.player.failure,
    });
    if (this.offerAddress(neighbors, now)) return;
    const { player } = this.parts;
    const planned = this.outages.look(now, player.experience(), view.state === 'connected', viewers.length);
    this.write(planned !== undefined && player.failure === undefined ? planned : sentence);
  }

  private write(sentence: Sentence): void {
    if (sentence.text !== this.said?.text) {
      this.sentence.textContent = sentence.text;
      this.sentence.dataset.tone = sentence.tone;
    }
    // Read out only when the situation changes, not with every figure.
    if (sentence.key !== this.said?.key) this.status.textContent = sentence.text;
    this.said = sentence;
  }

  /** True while the sentence's place is taken by the address of a window that did not come up. */
  private offerAddress(neighbors: number, now: number): boolean {
    const { expected } = this;
    if (expected === undefined || now - expected.at < expectMs) return false;
    if (neighbors > expected.viewers || now - expected.at > expectMs + 15_000) {
      this.expected = undefined;
      return false;
    }
    if (this.said?.key !== 'blocked') {
      const link = document.createElement('a');
      link.href = expected.url;
      link.target = '_blank';
      link.rel = 'noopener';
      link.textContent = 'Open this one';
      this.sentence.replaceChildren('No new window came up. ', link, ' in a window beside this one.');
      this.sentence.dataset.tone = 'calm';
      this.status.textContent = this.sentence.textContent;
      this.said = { key: 'blocked', tone: 'calm', text: '' };
    }
    return true;
  }

  private arrived(segment: SegmentView): void {
    this.delivered.set(segment.url, segment);
    const { source, reason, bytes } = segment;
    const rendition = this.parts.player.rendition(segment.url);
    this.timeline.record(segment, { source, reason, bytes, early: false, rendition });
  }

  private fetched(segment: PlayedSegment): void {
    if (this.delivered.has(segment.url)) return;
    const bytes = { origin: segment.bytes, seed: 0, peer: 0 };
    const rendition = this.parts.player.rendition(segment.url);
    // The library tells of segments once it has joined; until then it counts them for no peer.
    const view = this.parts.delivery.view();
    const reason = view.script === 'present' ? (view.reason ?? 'no-holder') : undefined;
    const plain: Delivered = { source: 'origin', reason, bytes, early: reason === 'no-holder', rendition };
    this.timeline.record(segment, plain);
  }

  /** Segments that have left a live stream do not come back. */
  private forget(beforeMs: number): void {
    const { segments } = this.parts.player;
    while (segments.length > kept && segments[0]!.startMs < beforeMs) this.delivered.delete(segments.shift()!.url);
  }
}
