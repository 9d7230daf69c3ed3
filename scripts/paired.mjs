// Runs cases of a bench with two builds in turn, and prints what each figure is and how the two compare: what a change costs or brings is
// seen only by pairs, since machines differ by the hour. A build is a program that has `bench`: build/leeway-lab, or leeway of a commit
// before 2026-11-23. The results stay in FOLDER (old.jsonl, new.jsonl); another call adds rounds to them.
//
//   node scripts/paired.mjs OLD NEW FOLDER 3 transfer:path/25ms tracker:native transport:2-short
//
// Benches want root, and nothing beside them. The exit code is 1 if a run failed.
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [oldBuild, newBuild, folder, rounds, ...cases] = process.argv.slice(2);
if (!(Number(rounds) >= 0) || !existsSync(oldBuild) || !existsSync(newBuild)) {
  console.error('usage: node scripts/paired.mjs OLD NEW FOLDER ROUNDS BENCH:CASE... (0 rounds: print what is in FOLDER)');
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const builds = { old: oldBuild, new: newBuild };
const file = (which) => join(folder, `${which}.jsonl`);

const run = (which, bench, name) => {
  const begun = Date.now();
  const { status, stdout, stderr } = spawnSync(builds[which], ['bench', bench, '--case', name, '--runs', '1', '--json'], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (stdout) appendFileSync(file(which), stdout);
  const failed = status !== 0; // null: it was killed
  console.error(`${bench} ${name}, ${which}: ${failed ? `failed\n${stderr.slice(-2000)}` : `${Math.round((Date.now() - begun) / 1000)} s`}`);
  if (failed) process.exitCode = 1;
};

for (let round = 1; round <= rounds; round++) {
  for (const one of cases) {
    const [bench, ...name] = one.split(':');
    for (const which of round % 2 ? ['old', 'new'] : ['new', 'old']) run(which, bench, name.join(':'));
  }
}

/** The figures of a build, by bench, case and name: one value a run, unless its lab did not certify it. */
const figures = (which) => {
  const all = new Map();
  for (const line of existsSync(file(which)) ? readFileSync(file(which), 'utf8').split('\n').filter(Boolean) : []) {
    const result = JSON.parse(line);
    if (result.certified === 0) continue;
    for (const { name, median, unit } of result.figures ?? []) {
      if (typeof median !== 'number') continue;
      const key = `${result.bench} ${result.case} ${name}`;
      const is = all.get(key) ?? { unit, values: [] };
      is.values.push(median);
      all.set(key, is);
    }
  }
  return all;
};

const median = (values) => {
  const [sorted, middle] = [values.toSorted((a, b) => a - b), (values.length - 1) / 2];
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle)]) / 2;
};
const short = (x) => Number(x.toPrecision(4));
const [before, after] = [figures('old'), figures('new')];
console.log('| figure | old | new | new ÷ old | runs |\n| --- | --- | --- | --- | --- |');
for (const [key, { unit, values }] of after) {
  const was = before.get(key)?.values;
  if (!was) continue;
  const ratio = median(was) ? short(median(values) / median(was)) : '';
  console.log(`| ${key} | ${short(median(was))} ${unit} | ${short(median(values))} ${unit} | ${ratio} | ${was.length}, ${values.length} |`);
}
