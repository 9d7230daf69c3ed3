import { describe, expect, it } from 'vitest';
import type { OriginResult } from '../ports.ts';
import { listOf, Signer } from '../simulation/film.ts';
import { createStats } from '../stats/stats.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { createLists } from './lists.ts';
import { type Load, newSegment, type Segment } from './segments.ts';
import type { Shared } from './shared.ts';

const playlist = 'https://cdn/index.m3u8';
const packager = new Signer(2);

/** Lists whose loads are answered when a test says so. */
const setUp = () => {
  const clock = new FakeClock();
  const stats = createStats();
  const use = { wanted: true, counts: true, came: 0 };
  const loads: { url: string; signal: AbortSignal; progress(loaded: number, total: number): void }[] = [];
  let answer: (data: Uint8Array | undefined) => Promise<void> = async () => {};
  const shared = {
    clock,
    line: createLine(clock),
    stats,
    off: null,
    stopped: false,
    settled() {},
    changed() {},
  } as unknown as Shared;
  const lists = createLists(shared, {
    counts: () => use.counts,
    useful: () => use.wanted,
    came: () => {
      use.came++;
    },
  });
  const segment = (n: number, from = playlist) => {
    const name = `/${n}.ts`;
    const s = newSegment(`${n}`, name, { url: `https://cdn${name}`, startMs: 0, durationMs: 4000 }, '480p', 0);
    s.playlist = from;
    return s;
  };
  const beside = (url: string, signal: AbortSignal, progress: (loaded: number, total: number) => void) =>
    new Promise<OriginResult>((resolve, reject) => {
      loads.push({ url, signal, progress });
      answer = (data) => {
        if (data) resolve({ data: data.slice().buffer as ArrayBuffer, status: 200, url });
        else reject(new Error('404'));
        return settle();
      };
    });
  const asked = (s: Segment) => lists.asked(s, { playlist: s.playlist, beside });
  const short = (n: number, issuedAt = 0) => packager.short(`/${n}.ts`, new Uint8Array(20_000 + n), issuedAt);
  return {
    clock,
    stats,
    use,
    loads,
    lists,
    asked,
    shared,
    segment,
    short,
    beside,
    answer: (d?: Uint8Array) => answer(d),
  };
};

describe('lists of packagers', () => {
  it('of a representation are beside its MPD', () => {
    const { loads, lists, segment, beside } = setUp();
    lists.asked(segment(1), { playlist: 'https://cdn/film.mpd?t=1', representation: 'video/1', beside });
    expect(loads.map(({ url }) => url)).toEqual(['https://cdn/film.mpd.video~2F1.leeway?t=1']);
  });

  it.each([
    ['?_HLS_msn=7&_HLS_part=2', ''],
    ['?a=%7E&_HLS_msn=8', '?a=%7E'],
    ['?_HLS_msn=8&_HLS_part=0&_HLS_skip=YES&a=1', '?a=1'],
    ['?_HLS_primary_id=1', '?_HLS_primary_id=1'],
    ['?CMCD=mtp%3D%281%29%2Csid%3D%22a%22&_HLS_msn=1', ''],
    ['?a=1&CMCD=sid%3D%22a%22', '?a=1'],
  ])('are one for all reloads of a playlist: %s', async (reload, rest) => {
    const { loads, lists, asked, segment, short, answer } = setUp();
    asked(segment(1, playlist + reload));
    await answer(listOf([short(1), short(2)]));
    asked(segment(2, playlist + reload.replace(/msn=|CMCD=/, '$&1')));
    expect(loads.map(({ url }) => url)).toEqual([`${playlist}.leeway${rest}`]);
    expect(lists.entry(segment(2))?.name).toBe('/2.ts');
  });

  it('are loaded once, and again for what they lack', async () => {
    const { clock, stats, use, loads, lists, asked, segment, short, answer } = setUp();
    const [a, b] = [segment(1), segment(2)];
    asked(a);
    asked(a);
    expect(loads.map(({ url }) => url)).toEqual([`${playlist}.leeway`]);
    await answer(listOf([short(1)]));
    expect([lists.entry(a)?.name, lists.entry(b), use.came]).toEqual(['/1.ts', undefined, 1]);
    asked(b);
    lists.lacks(b);
    expect(loads.length).toBe(1);
    await clock.advance(2_000);
    asked(b);
    expect(loads.length).toBe(1);
    lists.lacks(b);
    lists.lacks(b);
    expect(loads.length).toBe(2);
    await answer(listOf([short(1), short(2)]));
    expect(lists.entry(b)?.name).toBe('/2.ts');
    expect(stats.counters).toMatchObject({ lists: 2 });
    use.counts = false;
    expect(lists.entry(b)).toBeUndefined();
  });

  it('are asked for less and less where they are missing, none, too long or without the segment', async () => {
    const { clock, stats, loads, lists, asked, segment, answer } = setUp();
    const s = segment(1);
    asked(s);
    const answers = [undefined, new Uint8Array(9), new Uint8Array((2 << 20) + 1), listOf([])];
    let wait = 5_000;
    for (let n = 0; n < 12; n++) {
      expect(loads.length).toBe(n + 1);
      await answer(answers[n % 4]);
      await clock.advance(wait - 1);
      lists.lacks(s);
      asked(s);
      expect(loads.length).toBe(n + 1);
      await clock.advance(1);
      lists.lacks(s);
      wait = Math.min(2 * wait, 600_000);
    }
    expect(stats.counters).toMatchObject({ lists: 3, lists_failed: 9 });
  });

  it('are kept while they grow: that of a live stream lags behind its playlist', async () => {
    const { clock, loads, lists, asked, segment, short, answer } = setUp();
    const entries: Uint8Array[] = [];
    for (let n = 0; n < 20; n++) {
      const s = segment(n);
      s.ref.durationMs = 2_000;
      asked(s);
      lists.lacks(s);
      expect(loads.length).toBe(n + 1);
      await answer(listOf(entries));
      entries.push(short(n));
      // At first it is empty. A player's reloads come a little sooner or later.
      await clock.advance(n ? 1_900 : 6_900);
    }
    expect(lists.entry(segment(18))?.name).toBe('/18.ts');
  });

  it('spare seeds the questions ahead of the player while the first load runs, for two seconds', async () => {
    const { clock, loads, lists, asked, segment, short, answer } = setUp();
    const [a, b] = [segment(1), segment(2)];
    expect(lists.packaged(b)).toBe(false);
    asked(a);
    expect(lists.packaged(b)).toBe(true);
    b.loads.add({} as Load);
    expect(lists.packaged(b)).toBe(false);
    b.loads.clear();
    await clock.advance(1_999);
    expect(lists.packaged(b)).toBe(true);
    await clock.advance(1);
    expect(lists.packaged(b)).toBe(false);
    await answer(listOf([short(1)]));
    expect([lists.packaged(a), lists.packaged(b)]).toEqual([true, false]);
    await clock.advance(5_000);
    lists.lacks(b);
    expect([loads.length, lists.packaged(b)]).toEqual([2, false]);
  });

  it('are given up above the bound, and when delivery goes off', async () => {
    const { loads, lists, asked, segment, stats, answer, shared } = setUp();
    asked(segment(1));
    loads[0]!.progress(2 << 20, 0);
    expect(loads[0]!.signal.aborted).toBe(false);
    loads[0]!.progress((2 << 20) + 1, 0);
    expect(loads[0]!.signal.aborted).toBe(true);
    expect(stats.counters).toMatchObject({ lists_failed: 1 });
    asked(segment(1, `${playlist}?2`));
    expect(loads.length).toBe(2);
    lists.stop();
    expect(loads[1]!.signal.aborted).toBe(true);
    await answer(listOf([]));
    expect(stats.counters).toMatchObject({ lists_failed: 1 });
    shared.off = 'policy';
    asked(segment(1, `${playlist}?2`));
    expect(loads.length).toBe(2);
  });

  it('keep what was issued later, drop what does not verify, and are few', async () => {
    const { clock, lists, asked, segment, short, answer, loads, use } = setUp();
    const s = segment(1);
    asked(s);
    await answer(listOf([short(1, 1_000)]));
    await clock.advance(2_000);
    lists.lacks(s);
    await answer(listOf([short(1, 0)]));
    const entry = lists.entry(s)!;
    expect(entry.issuedAt).toBe(1_000);
    lists.refuse(entry);
    expect(lists.entry(s)).toBeUndefined();
    use.wanted = false;
    for (let n = 0; n < 8; n++) asked(segment(1, `${playlist}?${n}`));
    use.wanted = true;
    const before = loads.length;
    lists.lacks(s);
    expect(loads.length).toBe(before);
  });
});
