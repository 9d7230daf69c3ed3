import { CheckError, type Figure, figure, type Mapping } from '@leeway/netcheck';
import { expect, test } from 'vitest';
import { onScale, quantity, rate, time } from './format.ts';
import { plot, round } from './plot.ts';
import { missingOf, problemOf } from './problem.ts';
import { verdicts } from './verdict.ts';

const line = (down: number, up: number, idle: number, loaded: number, loss = 0) => ({
  figures: [
    figure('throughput', 'down', down),
    figure('throughput', 'up', up),
    figure('baseline_rtt', 'down', idle),
    figure('loaded_rtt', 'up', loaded),
    figure('loss', 'up', loss),
  ],
});
const said = (results: Parameters<typeof verdicts>[0]) =>
  Object.fromEntries(verdicts(results).map(({ use, tone, word }) => [use, `${tone}: ${word}`]));

test('lines and what they are good for', () => {
  expect(said(line(95e6, 40e6, 0.012, 0.025))).toEqual({
    'HD video': 'good: Good',
    '4K video': 'good: Good',
    'Video calls': 'good: Good',
    'While others use the line': 'good: Stays quick',
    'For other viewers': 'good: Can give',
  });
  expect(said(line(16e6, 1e6, 0.02, 0.3))).toEqual({
    'HD video': 'good: Good',
    '4K video': 'fair: Tight',
    'Video calls': 'fair: Fair',
    'While others use the line': 'poor: Gets stuck',
    'For other viewers': 'fair: Gives a little',
  });
  expect(said(line(3e6, 0.3e6, 0.06, 0.9))).toEqual({
    'HD video': 'poor: Too slow',
    '4K video': 'poor: Too slow',
    'Video calls': 'poor: Poor',
    'While others use the line': 'poor: Gets stuck',
    'For other viewers': 'poor: Takes only',
  });
  expect(said(line(95e6, 40e6, 0.012, 0.025, 0.2))).toMatchObject({
    'Video calls': 'poor: Poor',
    'For other viewers': 'poor: Takes only',
  });
  expect(said({ figures: [figure('throughput', 'down', 95e6)] })).toEqual({
    'HD video': 'good: Good',
    '4K video': 'good: Good',
  });
  expect(said({ ...line(95e6, 40e6, 0.012, 0.025), channel: 'blocked' })).toMatchObject({
    'Video calls': 'good: Good',
    'For other viewers': 'poor: Takes only',
  });
  expect(verdicts({ figures: [] })).toEqual([]);
  const free = (down: number, up: number) =>
    verdicts({ figures: [figure('free_capacity', 'down', down), figure('free_capacity', 'up', up)] });
  expect(free(9e6, 2e6)).toEqual([
    {
      use: 'Beside other traffic',
      tone: 'good',
      word: 'Room for HD',
      why: "9 Mbit/s down and 2 Mbit/s up were free. That is what other traffic left; the line's capacity may be larger.",
    },
  ]);
  expect([free(6e6, 1e6)[0]!.word, free(1e5, 1e6)[0]!.word]).toEqual(['Just HD', 'Little room']);
  expect(said({ figures: [], channel: 'blocked' })).toEqual({ 'For other viewers': 'poor: Takes only' });
  const reached = (ipv4: Mapping, ipv6: Mapping, figures: Figure[] = []) =>
    said({ figures, reachability: { candidates: ['host'], ipv4, ipv6 } })['Reaching other viewers'];
  expect(reached('dependent', 'no-answer')).toBe('fair: Often');
  expect(reached('dependent', 'untranslated')).toBe('good: Directly');
  expect(reached('endpoint-independent', 'no-answer')).toBe('good: Directly');
  expect(reached('unknown', 'dependent')).toBe('fair: By UDP');
  expect(reached('no-answer', 'no-answer')).toBe('poor: Not by UDP');
  expect(reached('no-answer', 'no-answer', [figure('round_trip', 'round-trip', 0.01)])).toBe('fair: By UDP');
  expect(verdicts(line(95e6, 40e6, 0.012, 0.025)).at(-1)!.why).toContain('6 other viewers');
});

test('the worse direction says how long a request takes in the middle of a transfer', () => {
  const { figures } = line(95e6, 40e6, 0.012, 0.025);
  const why = (more: Figure[]) =>
    verdicts({ figures: [...figures, ...more] }).find(({ use }) => use === 'While others use the line')!.why;
  const rpm = [figure('request_responsiveness', 'down', 1200), figure('request_responsiveness', 'up', 400)];
  expect(why(rpm)).toContain('answered in 150 ms (400 a minute)');
  expect(why([])).not.toContain('request');
});

test('each error says what to do next', () => {
  const say = (code: CheckError['code'], details = {}, gone = false) =>
    problemOf(new CheckError(code, 'as it says', details), 'p.test:8090', gone);
  expect(say('unreachable')).toEqual({ sentence: 'as it says', next: expect.stringContaining('p.test:8090') });
  expect(say('refused', { status: 401 }).next).toContain('link');
  expect(say('refused', { status: 403 }).next).toContain('new link');
  expect(say('refused', { status: 429, retryAfter: 3600 }).next).toContain('60 minutes');
  expect(say('refused', { status: 503, retryAfter: 15 }).next).toContain('restart. Try again in 15 seconds');
  expect(say('refused', { status: 503 }).next).toContain('few minutes');
  expect(say('refused', { status: 404 })).toMatchObject({
    sentence: expect.stringContaining('404'),
    next: expect.stringContaining('give way'),
  });
  expect(say('refused', { status: 418 }).sentence).toContain('418');
  expect(say('stopped').next).toContain('provider');
  expect(say('stopped', {}, true)).toEqual({
    sentence: expect.stringContaining('p.test:8090 has stopped'),
    next: expect.stringMatching(/the server has gone.*cable/),
  });
  expect(say('aborted').sentence).toContain('You stopped');
  for (const code of ['unreachable', 'refused', 'stopped', 'aborted'] as const) expect(say(code).next).not.toBe('');
  const results = {
    version: 1 as const,
    server: '',
    started_ms: 0,
    figures: [figure('throughput', 'down', 1)],
    scores: {},
  };
  expect(say('stopped', { results }).sentence).toContain('below');
});

test('a check that is complete says what it could not measure, and what to do', () => {
  const of = (results: Partial<Parameters<typeof missingOf>[0]>) =>
    missingOf({ version: 1, server: '', started_ms: 0, figures: [], scores: {}, ...results });
  const figures = [figure('throughput', 'down', 1)];
  expect(of({ figures })).toBe('');
  expect(of({ figures, channel: 'blocked' })).toMatch(/UDP .* loss was not measured.*another network/);
  expect(of({ channel: 'blocked' })).toMatch(/what is free of the line was not measured/);
  expect(of({ figures, channel: 'broken', channel_reason: 'enough for today (bytes)' })).toMatch(
    /broke off: enough for today \(bytes\)\. Check again/,
  );
});

test('figures have the digits that they deserve', () => {
  expect([rate(94.28e6), rate(1.234e9), rate(312_000), rate(5.04e6)].map((q) => q.join(' '))).toEqual([
    '94.3 Mbit/s',
    '1.23 Gbit/s',
    '312 kbit/s',
    '5 Mbit/s',
  ]);
  expect([time(0.0123), time(1.5), time(0.000004), time(0)].map((q) => q.join(' '))).toEqual([
    '12.3 ms',
    '1.50 s',
    '4 µs',
    '0 µs',
  ]);
  expect(quantity(figure('loss', 'up', 0.0123))).toEqual(['1.2', '%']);
  expect(quantity(figure('tcp_efficiency', 'down', 99.05))).toEqual(['99', '%']);
  expect(quantity(figure('transfer_time_ratio', 'down', 1.06))).toEqual(['1.1', '×']);
  expect(quantity(figure('path_mtu', 'down', 1500))).toEqual(['1500', 'bytes']);
  expect(quantity(figure('responsiveness', 'up', 1234.5))).toEqual(['1,235', 'a minute']);
  expect([onScale(1, 1e9), onScale(0.5, 1e9), onScale(0.5, 5e7), onScale(1, 2e5)]).toEqual(['1', '0.5', '25', '200']);
});

test('the timeline has an area for each direction, and lines that do not join phases', () => {
  const drawn = plot(
    [
      { at: 0, latency: 0.01 },
      { at: 500, latency: 0.02 },
      { at: 1000, direction: 'down', throughput: 50e6, latency: 0.05 },
      { at: 2000, direction: 'down', throughput: 100e6, latency: 0.1 },
      { at: 3000, direction: 'up', throughput: 10e6 },
    ],
    { width: 400, height: 100, span: 4000 },
  );
  expect(drawn.most).toEqual({ throughput: 100e6, latency: 0.1 });
  expect(drawn.down).toBe('M100.0 100L100.0 50.0L200.0 0.0L200.0 100Z');
  expect(drawn.up).toBe('');
  expect(drawn.latency).toBe('M0.0 90.0L50.0 80.0M100.0 50.0L200.0 0.0');
  expect([round(1), round(1.1), round(230), round(0.012)]).toEqual([1, 2, 500, 0.02]);
});
