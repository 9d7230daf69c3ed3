// What the viewers of test/kube/test say of themselves, as one verdict: judge.mjs HOW_MANY FILE…. Exit code 1 where one is missing,
// failed, had left before the end or had no link in all that time, or where Chromium, which is alone at home, had nothing from viewers (homes
// do not meet then): a slow machine is no excuse for that. Exit code 3 where one stalled or did not start, or where less than half came from
// seeds and viewers: a slow machine can be the cause of it.
import { readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';

const [expected, ...files] = argv.slice(2);
const viewers = files.flatMap((file) => {
  const name = file.replace(/^.*\/|\.json$/g, '');
  const lines = readFileSync(file, 'utf8').trim().split('\n').filter(Boolean);
  return lines.map((line, n) => ({ name: lines.length > 1 ? `${name}-${n + 1}` : name, ...JSON.parse(line) }));
});
const kB = (bytes = 0) => `${Math.round(bytes / 1000)} kB`;
const sum = (list) => list.reduce((total, n) => total + (n ?? 0), 0);
const line = ({ name, watched_ms, ended, links_opened, reconnects, stats: { bytes, stalls = 0, startup_ms } }) =>
  `${name}: ${Math.round(watched_ms / 1000)} s, ${ended}, startup ${startup_ms} ms, stalls ${stalls}, links ${links_opened}, reconnects ${reconnects}, ` +
  `origin ${kB(bytes.origin)}, seeds ${kB(bytes.seed)}, viewers ${kB(bytes.peer)}`;

const faults = [];
const late = []; // faults that a slow machine can be the cause of
for (const v of viewers) {
  const failed = v.errors > 0 || v.ended !== 'left' || !v.links_opened;
  const slow = v.stats.stalls > 0 || v.stall_ratio > 0 || !v.stats.startup_ms;
  if (failed) faults.push(v.name);
  else if (slow) late.push(v.name);
  if (failed || slow || v.name === 'chromium') console.log(line(v));
  if (v.last_error) console.log(`  ${v.last_error}`);
}
if (viewers.length !== Number(expected)) faults.push(`${viewers.length} viewers of ${expected} said how it was`);
const of = (source) => sum(viewers.map((v) => v.stats.bytes?.[source]));
const others = of('seed') + of('peer') + of('seed_relay') + of('peer_relay');
if (!(others > of('origin'))) late.push('less than half came from seeds and viewers');
if (viewers.some((v) => v.name === 'chromium' && !v.stats.bytes?.peer)) faults.push('nothing came to chromium from viewers');
const startups = viewers.map((v) => v.stats.startup_ms ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
console.log(
  `${viewers.length} viewers, ${sum(viewers.map((v) => v.stats.stalls))} stalls, startup ${startups[startups.length >> 1]} ms (to ${startups.at(-1)} ms), ` +
    `${sum(viewers.map((v) => v.reconnects))} reconnects, origin ${kB(of('origin'))}, seeds ${kB(of('seed'))}, viewers ${kB(of('peer'))}, ` +
    `by relay ${kB(of('seed_relay') + of('peer_relay'))}`,
);
if (faults.length + late.length > 0) console.log(`not as it should be: ${[...faults, ...late].join(', ')}`);
exit(faults.length > 0 ? 1 : late.length > 0 ? 3 : 0);
