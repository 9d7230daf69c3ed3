// Writes docs/benchmarks.md, docs/benchmarks/appendix.md, docs/papers.md with its pictures and the sizing figures of docs/operations/sizing.md from docs/benchmarks/results.jsonl,
// after it has put newer results into that file: those of build/bench.jsonl (`leeway-lab bench NAME --json >>build/bench.jsonl`), of
// build/e2e.json (`make e2e` leaves it behind) and the sizes of the scripts that are built. A case that was not run again keeps its line.
// With --check it writes nothing, reads only the committed results, and fails where a page is not what they give.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { appendix, page } from './benchmarks/pages.mjs';
import { papers } from './benchmarks/papers.mjs';
import { ofBenches, ofTests, sizes } from './benchmarks/results.mjs';
import { fill } from './benchmarks/sizing.mjs';

const at = (path) => new URL(`../${path}`, import.meta.url);
const read = (path) => (existsSync(at(path)) ? readFileSync(at(path), 'utf8') : '');
const linesOf = (path) => read(path).split('\n').filter(Boolean).map((line) => JSON.parse(line));
const nameOf = (result) => `${result.bench} ${result.case}`;

const check = process.argv.includes('--check');
const results = new Map(linesOf('docs/benchmarks/results.jsonl').map((result) => [nameOf(result), result]));
if (!check) {
  const today = new Date().toISOString().slice(0, 10);
  const ours = linesOf('build/bench.jsonl').filter((line) => !line.machine?.measured); // the others are of another commit's leeway
  for (const result of [...ofBenches(ours), ...ofTests(linesOf('build/e2e.json')), ...sizes(at('web/packages/leeway/dist/'))]) {
    const standing = results.get(nameOf(result));
    if (JSON.stringify(standing?.figures) === JSON.stringify(result.figures)) continue; // put in by an earlier call
    results.set(nameOf(result), { ...result, recorded: { date: today } });
  }
}
const sorted = [...results.values()].sort((a, b) => nameOf(a).localeCompare(nameOf(b), 'en', { numeric: true }));
const sizing = 'docs/operations/sizing.md';
const uncounted = (row) => console.error(`${sizing}: no run of ${row} counts; the old figure stays`);
const files = new Map([
  ['docs/benchmarks/results.jsonl', sorted.map((result) => `${JSON.stringify(result)}\n`).join('')],
  ['docs/benchmarks/appendix.md', appendix(sorted)],
  ['docs/benchmarks.md', page(results, JSON.parse(read('docs/benchmarks/headlines.json')))],
  [sizing, fill(read(sizing), results, uncounted)],
  ...papers(results, JSON.parse(read('internal/lab/bench/peersbench/papers.json')), JSON.parse(read('docs/benchmarks/papers.json'))),
]);
const stale = [...files].filter(([path, text]) => read(path) !== text);
if (!check) for (const [path, text] of stale) writeFileSync(at(path), text);
else if (stale.length > 0) {
  console.error(`not what docs/benchmarks/ gives (node scripts/benchmarks.mjs writes them): ${stale.map(([path]) => path).join(', ')}`);
  process.exitCode = 1;
}
