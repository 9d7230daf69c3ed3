import { describe, expect, it } from 'vitest';
import { parseCertificate } from '../certificate/index.ts';
import type { Content } from '../parts/shelf.ts';
import type { OriginResult, SegmentRequest } from '../ports.ts';
import { idOf, Signer } from '../simulation/film.ts';
import { createStats } from '../stats/stats.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { createPartCertificates } from './partcerts.ts';
import type { Followed, PartLoad } from './partload.ts';
import type { Shared } from './shared.ts';

const name = '/live/41.2.m4s';
const data = new Uint8Array(40_000);
const packager = new Signer(2);

/** Loads that are answered when a test says so. What can be parsed verifies. */
const setUp = () => {
  const stats = createStats();
  const loads: { url: string; signal: AbortSignal; progress(loaded: number): void }[] = [];
  let answer: (raw: Uint8Array | undefined) => Promise<void> = async () => {};
  const shared = {
    line: createLine(new FakeClock()),
    stats,
    segments: { idOf: async (n: string) => idOf(n) },
    settled() {},
  };
  const keys = [packager.verifyKey];
  const certificates = createPartCertificates(shared as unknown as Shared, {
    verification: {
      keys,
      async judge(_peer, raw) {
        const c = parseCertificate(raw);
        return typeof c === 'string' ? undefined : c;
      },
    },
  });
  const beside = (url: string, signal: AbortSignal, progress: (loaded: number) => void) =>
    new Promise<OriginResult>((resolve, reject) => {
      loads.push({ url, signal, progress });
      signal.addEventListener('abort', () => reject(new Error('AbortError')));
      answer = (raw) => {
        if (raw) resolve({ data: raw.slice().buffer as ArrayBuffer, status: 200, url });
        else reject(new Error('404'));
        return settle();
      };
    });
  const f = {} as Followed;
  const part = (range?: { first: number; last: number }) => {
    const request = { url: `https://cdn${name}?t=1`, range, beside } as unknown as SegmentRequest;
    return { request, id: idOf(name) } as PartLoad;
  };
  /** Loads a certificate, and says what comes of it. */
  const load = (range?: { first: number; last: number }) => {
    const came: (Content | undefined)[] = [];
    certificates.load(f, part(range), (content) => came.push(content));
    return came;
  };
  return { stats, loads, keys, certificates, f, load, answer: (raw?: Uint8Array) => answer(raw) };
};

describe('the certificate of a part', () => {
  it('is beside the part, and counts', async () => {
    const { load, f, loads, answer, stats } = setUp();
    const came = load();
    await answer(packager.certify(name, data, 0));
    expect(came).toMatchObject([{ segment: idOf(name), length: 40_000, alg: 2 }]);
    expect(loads[0]!.url).toBe(`https://cdn${name}.leeway?t=1`);
    load({ first: 1600, last: 4799 });
    expect(loads[1]!.url).toBe(`https://cdn${name}.1600-4799.leeway?t=1`);
    expect([stats.counters.part_certificates, f.certifying?.signal.aborted]).toEqual([1, false]);
  });

  it.each([
    ['that is not there', undefined],
    ['that is a page', new TextEncoder().encode('<html>')],
    ['of a seed', new Signer(1).certify(name, data, 0)],
    ['of another part', packager.certify('/live/41.1.m4s', data, 0)],
    ['that is too long', new Uint8Array([...packager.certify(name, data, 0), ...new Uint8Array(17_837)])],
  ])('%s does not count', async (_what, raw) => {
    const { load, answer, stats } = setUp();
    const came = load();
    await answer(raw);
    expect([came, stats.counters.part_certificates_missed]).toEqual([[undefined], 1]);
  });

  it('is given up above 17,837 bytes, with the stream, and when it takes too long', async () => {
    const { certificates, f, load, loads, stats } = setUp();
    const long = load();
    loads[0]!.progress(17_837);
    expect(loads[0]!.signal.aborted).toBe(false);
    loads[0]!.progress(17_838);
    expect(loads[0]!.signal.aborted).toBe(true);
    await settle();
    expect(long).toEqual([undefined]);
    const first = load();
    certificates.giveUp(f);
    const second = load();
    certificates.late(f);
    await settle();
    expect([first, second]).toEqual([[], []]);
    expect(loads.every(({ signal }) => signal.aborted)).toBe(true);
    expect(stats.counters.part_certificates_missed).toBe(2);
  });

  it('is wanted where a packager’s key is known', () => {
    const { certificates, keys } = setUp();
    expect(certificates.wanted()).toBe(true);
    keys.pop();
    expect(certificates.wanted()).toBe(false);
  });
});
