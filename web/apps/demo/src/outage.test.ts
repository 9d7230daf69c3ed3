import { afterEach, describe, expect, it, vi } from 'vitest';
import { describeChart, describeSaved } from './chart';
import { describeOutage, Outages, type OutageView } from './outage';

const away: OutageView = { service: 'tracker', leftMs: 13_200, connected: false, viewers: 2, stalls: 0 };

describe('what the page says of an outage', () => {
  it.each<[Partial<OutageView>, string]>([
    [{}, 'The tracker is gone, back in 14 s. Watch: nothing stops.'],
    [{ service: 'seed', viewers: 0 }, 'The seed is gone, back in 14 s. The film plays on.'],
    [{ leftMs: 0, stalls: 1 }, 'The tracker is gone, and coming back. The film stalled once.'],
    [{ leftMs: undefined }, 'The tracker is back; this page will find it. Nothing stopped.'],
    [{ leftMs: undefined, connected: true }, 'The tracker is back. Nothing stopped.'],
    [{ leftMs: undefined, service: 'seed', stalls: 2 }, 'The seed is back. The film stalled 2 times.'],
  ])('%j', (change, text) => {
    expect(describeOutage({ ...away, ...change }).text).toBe(text);
  });

  it('is read out once, not with every second', () => {
    expect(describeOutage(away).key).toBe(describeOutage({ ...away, leftMs: 4000 }).key);
  });
});

describe('a stop that is refused', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  async function stopped(answer: (url: string, init: RequestInit) => Promise<Response>, by = false) {
    const button = Object.assign(new EventTarget(), { dataset: { service: 'seed' }, disabled: false });
    const root = { hidden: false, querySelectorAll: () => [button] };
    vi.stubGlobal('fetch', answer);
    const outages = new Outages(root as unknown as HTMLElement, false, 20);
    button.dispatchEvent(new Event('click'));
    await vi.waitFor(() => expect([button.disabled, outages.gaps.length]).toEqual([by, Number(by)]));
    const now = performance.now();
    const say = (at: number) => outages.look(at, { stalls: 0 }, true, 2)?.text;
    return [say(now), say(now + 10_000)];
  }

  it('is told of in the words of the server', async () => {
    const text = 'Only a browser on the machine that runs the demo may stop its services.';
    const headers = { 'content-type': 'text/plain; charset=utf-8' };
    const said = await stopped(async () => new Response(`${text}\n`, { status: 403, headers }));
    expect(said).toEqual([`The seed was not stopped: ${text}`, undefined]);
  });

  it('is told of where the server is gone', async () => {
    const said = await stopped(() => Promise.reject(new TypeError('failed')));
    expect(said).toEqual(['Whether the seed was stopped is not known: the server does not answer.', undefined]);
  });

  it.each([
    ['', false, 'The seed was not stopped: the connection broke.'],
    ['seed', true, 'The seed is gone, back in 20 s. Watch: nothing stops.'],
  ])('is none where the answer is lost and %j is away', async (service, by, text) => {
    const [said] = await stopped((_, { method }) => {
      if (method === 'POST') return Promise.reject(new TypeError('failed'));
      return Promise.resolve(Response.json({ may: true, service, left_ms: 20_000 }));
    }, by);
    expect(said).toBe(text);
  });
});

describe('the chart in words', () => {
  it('names each source and the whole', () => {
    const rates = { origin: 12_500, seed: 125_000, peer: 1_250_000 };
    expect(describeChart(rates, 4, 90)).toBe(
      'The last 90 s of all 4 viewers on this machine. Now 0.1 Mbit/s come from the origin, 1.0 Mbit/s from the seed and 10 Mbit/s from other viewers; without Leeway the origin would send 11 Mbit/s.',
    );
    expect(describeSaved({ origin: 1_000_000, seed: 0, peer: 9_000_000 })).toBe(
      'Sent to viewers by the origin so far: 1.0 MB; without Leeway: 10 MB.',
    );
    expect(describeSaved({ origin: 0, seed: 0, peer: 0 })).toBe('');
  });
});
