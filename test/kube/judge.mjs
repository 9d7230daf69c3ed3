// What the viewers of test/kube/test say of themselves: a line each, and exit code 1 where one stalled, failed or had no seed.
import { readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';

const viewers = argv.slice(2).flatMap((file) => readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line)));
const kB = (bytes = 0) => `${Math.round(bytes / 1000)} kB`;
let total = 0;
let others = 0;
const bad = [];
for (const [n, v] of viewers.entries()) {
  const { bytes = {}, stalls = 0, startup_ms: startup } = v.stats;
  total += (bytes.origin ?? 0) + (bytes.seed ?? 0) + (bytes.peer ?? 0);
  others += (bytes.seed ?? 0) + (bytes.peer ?? 0);
  console.log(
    `viewer ${n + 1}: ${Math.round(v.watched_ms / 1000)} s, startup ${startup} ms, stalls ${stalls}, links ${v.links_opened}, reconnects ${v.reconnects}, ` +
      `origin ${kB(bytes.origin)}, seed ${kB(bytes.seed)}, viewers ${kB(bytes.peer)}`,
  );
  if (stalls > 0 || v.stall_ratio > 0 || v.errors > 0 || v.ended !== 'left' || v.links_opened === 0) bad.push(n + 1);
}
console.log(`${viewers.length} viewers, ${Math.round((100 * others) / total)} % from seed and viewers`);
if (viewers.length === 0 || others < total / 2) bad.push('all: less than half came from seed and viewers');
if (bad.length > 0) console.log(`failed: ${bad.join(', ')}`);
exit(bad.length > 0 ? 1 : 0);
