import type { Source } from './delivery';
import { set } from './figures';
import { advance, paint, paintIdle, type Stream } from './flow';
import { arrange, detailed, fanned, type Participant, type Place } from './layout';

/** A participant with what its figure says. */
export interface Figure extends Participant {
  label: string;
  /** Second line: what flows, short. */
  detail: string;
  /** For pointer and assistive technology: the whole story in one sentence. */
  story: string;
  /** Colors the detail: the source of what flows in, or none. */
  source: Source | undefined;
  /** Picture of what a viewer shows, a data URL, or undefined. */
  thumbnail: string | undefined;
}

export interface FlowFigure {
  from: string;
  to: string;
  source: Source;
  /** Bytes per second. */
  rate: number;
  /** Neither end is this viewer. */
  faint: boolean;
}

export interface Scene {
  figures: Figure[];
  flows: FlowFigure[];
  /** Links on which nothing needs to flow, by participant IDs. */
  links: [string, string][];
}

const icons: Record<'origin' | 'seed', string> = {
  origin:
    '<svg viewBox="0 0 32 32" aria-hidden="true"><rect x="5" y="5" width="22" height="9" rx="2.5"/><rect x="5" y="18" width="22" height="9" rx="2.5"/><path d="M10 9.5h.01M10 22.5h.01M15 9.5h7M15 22.5h7"/></svg>',
  seed: '<svg viewBox="0 0 32 32" aria-hidden="true"><path d="M16 28V15"/><path d="M16 17c0-6 4-10 11-10 0 7-4 10-11 10Z"/><path d="M16 21c0-5-3-8-10-8 0 6 4 8 10 8Z"/></svg>',
};

/** Which peers serve which: figures are elements, so that text is crisp and focus works; what flows is on a canvas below them. */
export class Picture {
  private readonly root: HTMLElement;
  private readonly list: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private readonly nodes = new Map<string, HTMLElement>();
  private readonly streams = new Map<string, Stream>();
  private readonly calm = matchMedia('(prefers-reduced-motion: reduce)');
  private scene: Scene = { figures: [], flows: [], links: [] };
  private places = new Map<string, Place>();
  private width = 0;
  private height = 0;
  private drawnAt = 0;
  private dirty = true;
  private visible = true;

  constructor(root: HTMLElement) {
    this.root = root;
    this.list = root.querySelector('ul')!;
    this.canvas = document.createElement('canvas');
    this.canvas.setAttribute('aria-hidden', 'true');
    root.prepend(this.canvas);
    this.context = this.canvas.getContext('2d')!;
    new ResizeObserver(() => this.resize()).observe(root);
    new IntersectionObserver((entries) => {
      this.visible = entries.at(-1)?.isIntersecting ?? true;
    }).observe(root);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.update(this.scene);
    });
  }

  /** Takes a new scene: figures come, go and move; streams keep their particles. */
  update(scene: Scene): void {
    this.scene = scene;
    this.places = arrange(scene.figures, this.width, this.height);
    const others = scene.figures.filter((f) => f.kind === 'viewer').length;
    this.root.classList.toggle('crowd', others > fanned);
    this.root.classList.toggle('tight', !detailed(others, this.width, this.height));
    for (const figure of scene.figures) this.show(figure);
    for (const [id, node] of this.nodes) {
      if (this.places.has(id)) continue;
      node.remove();
      this.nodes.delete(id);
    }
    this.updateStreams();
    this.dirty = true;
  }

  /** Draws what flows, if something does; called at most ten times a second. */
  draw(now: number): void {
    const seconds = Math.min(0.5, (now - this.drawnAt) / 1000);
    this.drawnAt = now;
    if (!this.visible || this.width === 0) return;
    const moving = !this.calm.matches;
    let active = this.dirty;
    if (moving) for (const stream of this.streams.values()) active = advance(stream, seconds) || active;
    if (!active) return;
    this.dirty = false;
    this.paintAll(moving);
  }

  private paintAll(moving: boolean): void {
    const { context } = this;
    const scale = this.canvas.width / this.width;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const hairline = this.color('--hairline');
    for (const [a, b] of this.scene.links) {
      const from = this.places.get(a);
      const to = this.places.get(b);
      const flows = this.streams.has(`${a} ${b}`) || this.streams.has(`${b} ${a}`);
      if (from !== undefined && to !== undefined && !flows) paintIdle(context, from, to, hairline);
    }
    for (const stream of this.streams.values()) {
      if (stream.rate > 0 || stream.particles.length > 0) paint(context, stream, moving);
    }
    context.globalAlpha = 1;
  }

  private updateStreams(): void {
    const kept = new Set<string>();
    const you = this.places.get('you');
    for (const flow of this.scene.flows) {
      const from = this.places.get(flow.from);
      const to = this.places.get(flow.to);
      if (from === undefined || to === undefined) continue;
      const key = `${flow.from} ${flow.to}`;
      kept.add(key);
      const known = this.streams.get(key);
      const { particles, credit } = known ?? { particles: [], credit: 0 };
      const color = this.color(`--${flow.source}`);
      const around = flow.faint && flow.source !== 'peer' ? you : undefined;
      this.streams.set(key, { from, to, color, rate: flow.rate, faint: flow.faint, around, particles, credit });
    }
    for (const key of this.streams.keys()) if (!kept.has(key)) this.streams.delete(key);
  }

  private show(figure: Figure): void {
    const place = this.places.get(figure.id);
    if (place === undefined) return;
    let node = this.nodes.get(figure.id);
    if (node === undefined) {
      node = this.create(figure);
      this.nodes.set(figure.id, node);
      this.list.append(node);
    }
    const transform = `translate(${Math.round(place.x)}px, ${Math.round(place.y)}px)`;
    if (node.style.transform !== transform) node.style.transform = transform;
    node.style.setProperty('--w', `${place.w}px`);
    node.style.setProperty('--h', `${place.h}px`);
    set(node.querySelector('.name')!, figure.label);
    const detail = node.querySelector<HTMLElement>('.detail')!;
    set(detail, figure.detail);
    detail.dataset.source = figure.source ?? '';
    node.title = figure.story;
    node.setAttribute('aria-label', figure.story);
    const image = node.querySelector('img');
    if (image !== null && figure.thumbnail && image.getAttribute('src') !== figure.thumbnail) {
      image.src = figure.thumbnail;
      image.hidden = false;
    }
  }

  private create(figure: Figure): HTMLElement {
    const node = document.createElement('li');
    node.className = 'figure';
    node.dataset.kind = figure.kind;
    node.tabIndex = 0;
    const face =
      figure.kind === 'origin' || figure.kind === 'seed'
        ? `<div class="face icon">${icons[figure.kind]}</div>`
        : '<div class="face screen"><img alt="" hidden></div>';
    node.innerHTML = `${face}<div class="words"><span class="name"></span><span class="detail"></span></div>`;
    return node;
  }

  private color(name: string): string {
    return getComputedStyle(this.root).getPropertyValue(name).trim();
  }

  private resize(): void {
    const { width, height } = this.root.getBoundingClientRect();
    if (width === 0 || height === 0) return;
    this.width = width;
    this.height = height;
    const scale = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.update(this.scene);
    this.draw(performance.now());
  }
}
