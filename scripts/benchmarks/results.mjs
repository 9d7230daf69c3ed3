// Newer results in the form of docs/benchmarks/results.jsonl: one a case, with figures as `leeway-lab bench --json` prints them.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { brotliCompressSync } from 'node:zlib';

const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8' }).trim();
const latest = (results, name) => [...new Map(results.map((result) => [name(result), result])).values()];

/** Of the lines of build/bench.jsonl the latest of each case. */
export const ofBenches = (lines) => latest(lines, (result) => `${result.bench} ${result.case}`);

const figure = (name, value, { unit = '', goal = null, met = null, range = [] } = {}) => ({
  name,
  unit,
  ...(value === undefined ? {} : { median: value }),
  ...(range.length > 0 ? { min: Math.min(...range), max: Math.max(...range) } : {}),
  goal,
  met,
});
const atLeast = (name, value, bound) => figure(name, value, { goal: `>= ${bound}`, met: value >= bound });
const atMost = (name, value, bound, unit = '') => figure(name, value, { unit, goal: `<= ${bound}`, met: value <= bound });

const both = (name, pair, of) => [figure(name, of(pair.with)), figure(`${name}_without`, of(pair.without))];

const tests = {
  swarm: ({ viewers, fromViewers, requestsPerSegment }) => [
    atLeast('offload_ratio', fromViewers, 0.66),
    atMost('origin_requests_per_segment', requestsPerSegment, 1.4),
    atLeast('not_from_origin_after_two_segments_lowest', Math.min(...viewers.map((v) => v.othersAfterTwo)), 0.9),
    atMost('stalls', viewers.reduce((n, v) => n + v.stalls.length, 0), 0),
  ],
  startup: ({ with: ours, without, ratio, times }) => [
    figure('startup_delay', ours, { unit: 'ms', range: times.with }),
    figure('startup_delay_without', without, { unit: 'ms', range: times.without }),
    atMost('startup_delay_vs_without', ratio, 1.05),
  ],
  bitrate: ({ ratio, switches, pairs }) => [
    ...pairs.flatMap(({ line, estimate, bitrate, switches: made, others, stalls }) => {
      const seen = estimate.with.slice(2); // the first two looks still hold the player's own guess
      const rate = line / 1e6;
      return [
        figure(`estimate_vs_line_${rate}`, undefined, { range: seen, goal: '0.7 to 1.3', met: seen.every((v) => v >= 0.7 && v <= 1.3) }),
        figure(`estimate_vs_line_${rate}_without`, undefined, { range: estimate.without.slice(2) }),
        ...both(`mean_bitrate_${rate}`, bitrate, (bits) => bits / 1e6).map((f) => ({ ...f, unit: 'Mbit/s' })),
        ...both(`switches_${rate}`, made, (n) => n),
        figure(`from_others_${rate}`, others),
        ...both(`stalls_${rate}`, stalls, (n) => n),
      ];
    }),
    atLeast('mean_bitrate_vs_without', ratio, 0.98),
    ...both('switches', switches, (n) => n),
  ],
  outage: ({ viewers, links, readyMs, seedBackMs }) => [
    figure('links_before_tracker_is_killed', links[0]),
    figure('links_while_tracker_is_gone', links[1]),
    figure('back_in_swarm_after_return', Math.round(Math.max(...[readyMs].flat())), { unit: 'ms' }),
    figure('new_seed_serves_after', Math.round(seedBackMs), { unit: 'ms' }),
    atMost('stalls', viewers.reduce((n, v) => n + v.stalls.length, 0), 0),
  ],
};

/** Of the lines of build/e2e.json the latest of each test that has figures here. */
export function ofTests(lines) {
  const made = latest(lines, ({ test }) => test).filter(({ test }) => test in tests);
  if (made.length === 0) return [];
  const machine = {
    commit: run('git', 'rev-parse', '--short=12', 'HEAD'),
    cpu: cpus()[0].model,
    cores: cpus().length,
    memory_bytes: totalmem(),
    kernel: release(),
    browsers: [run('chromium', '--version')],
  };
  return made.map((line) => {
    const runs = line.loads ?? 1;
    return { bench: 'e2e', case: line.test, runs, certified: runs, machine, figures: tests[line.test](line) };
  });
}

/** What the drop-in's two scripts weigh after brotli, where they are built. */
export function sizes(folder) {
  if (!existsSync(folder)) return [];
  const packed = (name) => brotliCompressSync(readFileSync(new URL(name, folder))).length;
  const [script, engine] = [packed('leeway.js'), packed(readdirSync(folder).find((name) => name.endsWith('-engine.js')))];
  const figures = [atMost('script_bytes', script, 20_000, 'bytes'), atMost('engine_bytes', engine, 32_000, 'bytes'), figure('both_bytes', script + engine, { unit: 'bytes' })];
  return [{ bench: 'size', case: 'scripts', runs: 1, certified: 1, machine: { commit: run('git', 'rev-parse', '--short=12', 'HEAD') }, figures }];
}
