import type { Gap } from './chart';
import type { Sentence } from './sentence';

export type Service = 'tracker' | 'seed';

/** What /demo/outage answers. */
interface Answer {
  may: boolean;
  service: Service | '';
  left_ms: number;
}

/** All that the sentence about an outage depends on. */
export interface OutageView {
  service: Service;
  /** Milliseconds until it comes back; undefined: it is back. */
  leftMs: number | undefined;
  /** Whether this page's session is up. */
  connected: boolean;
  /** Viewers linked to this one. */
  viewers: number;
  /** Times that the film stood still since the outage began. */
  stalls: number;
}

/** What is going on while a service is away on purpose, and what is to be seen. */
export function describeOutage({ service, leftMs, connected, viewers, stalls }: OutageView): Sentence {
  const tone = stalls === 0 ? 'good' : 'warn';
  const stalled = `The film stalled ${stalls === 1 ? 'once' : `${stalls} times`}.`;
  if (leftMs === undefined) {
    const found = service === 'seed' || connected;
    const back = found ? `The ${service} is back.` : 'The tracker is back; this page will find it.';
    return { key: `back ${service} ${found}`, tone, text: `${back} ${stalls === 0 ? 'Nothing stopped.' : stalled}` };
  }
  const seconds = Math.ceil(leftMs / 1000);
  const when = seconds > 0 ? `back in ${seconds} s` : 'and coming back';
  const watch = stalls > 0 ? stalled : viewers > 0 ? 'Watch: nothing stops.' : 'The film plays on.';
  return { key: `away ${service}`, tone, text: `The ${service} is gone, ${when}. ${watch}` };
}

/**
 * How long the page says that a service is back, or was not stopped. A session may take as long as its longest pause between two
 * attempts.
 */
const saidMs = 6000;
const soughtMs = 35_000;

/** The outage that goes on, its buttons, and what this page says of it. Times are milliseconds since the page was opened. */
export class Outages {
  /** Tells the other windows of an outage that was begun here. */
  tell: ((service: Service, leftMs: number) => void) | undefined;
  readonly gaps: Gap[] = [];
  private readonly root: HTMLElement;
  private readonly seconds: number;
  private current: { service: Service; until: number; backAt?: number; stalls: number; asking: boolean } | undefined;
  private refused: { sentence: Sentence; at: number } | undefined;
  private stallsNow = 0;

  /** `offered`: the page's server can stop services; whether this browser may, it answers. */
  constructor(root: HTMLElement, offered: boolean, seconds: number) {
    this.root = root;
    this.seconds = seconds;
    for (const button of this.buttons())
      button.addEventListener('click', () => this.stop(button.dataset.service as Service));
    if (offered) void this.ask();
  }

  /** Another window began one. */
  hear(service: Service, leftMs: number): void {
    this.begin(service, leftMs);
  }

  /** What to say at `now`, or undefined: nothing special. */
  look(now: number, felt: { stalls: number }, connected: boolean, viewers: number): Sentence | undefined {
    this.stallsNow = felt.stalls;
    const { current } = this;
    if (current === undefined) {
      return this.refused !== undefined && now - this.refused.at <= saidMs ? this.refused.sentence : undefined;
    }
    if (current.backAt === undefined && now >= current.until && !current.asking) void this.askAgain(current);
    const sought = current.service === 'tracker' && !connected;
    if (current.backAt !== undefined && now - current.backAt > (sought ? soughtMs : saidMs)) {
      this.current = undefined;
      return undefined;
    }
    return describeOutage({
      service: current.service,
      leftMs: current.backAt === undefined ? Math.max(0, current.until - now) : undefined,
      connected,
      viewers,
      stalls: felt.stalls - current.stalls,
    });
  }

  private buttons(): HTMLButtonElement[] {
    return [...this.root.querySelectorAll('button')];
  }

  private async stop(service: Service): Promise<void> {
    for (const button of this.buttons()) button.disabled = true;
    const taken = await request(`?service=${service}&seconds=${this.seconds}`, 'POST');
    // A connection that broke says nothing of the stop. The state does.
    const answer = taken ?? (await request('', 'GET'));
    if (typeof answer === 'object' && answer.service) {
      this.begin(answer.service, answer.left_ms);
      this.tell?.(answer.service, answer.left_ms);
      return;
    }
    const why = typeof answer === 'string' ? answer : taken ? 'the server is about to end.' : 'the connection broke.';
    const text =
      answer === undefined
        ? `Whether the ${service} was stopped is not known: the server does not answer.`
        : `The ${service} was not stopped: ${why}`;
    this.refused = { sentence: { key: `refused ${service}`, tone: 'warn', text }, at: performance.now() };
    for (const button of this.buttons()) button.disabled = false;
  }

  private begin(service: Service, leftMs: number): void {
    const now = performance.now();
    this.current = { service, until: now + leftMs, stalls: this.stallsNow, asking: false };
    this.gaps.push({ service, from: now, to: undefined });
    for (const button of this.buttons()) button.disabled = true;
  }

  private async ask(): Promise<void> {
    const answer = await request('', 'GET');
    if (typeof answer !== 'object') return;
    this.root.hidden = !answer.may;
    if (answer.service) this.begin(answer.service, answer.left_ms);
  }

  private async askAgain(current: NonNullable<typeof this.current>): Promise<void> {
    current.asking = true;
    const answer = await request('', 'GET');
    const back = typeof answer === 'object' && answer.service === '';
    await new Promise((resolve) => setTimeout(resolve, back ? 0 : 500));
    current.asking = false;
    if (!back) return;
    current.backAt = performance.now();
    const gap = this.gaps.at(-1);
    if (gap !== undefined) gap.to = current.backAt;
    for (const button of this.buttons()) button.disabled = false;
  }
}

/** The state, or a refusal in words; undefined: there was no answer. */
async function request(query: string, method: 'GET' | 'POST'): Promise<Answer | string | undefined> {
  try {
    const response = await fetch(`/demo/outage${query}`, { method, cache: 'no-store' });
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/plain')) return (await response.text()).trim();
    return (await response.json()) as Answer;
  } catch {
    return undefined;
  }
}
