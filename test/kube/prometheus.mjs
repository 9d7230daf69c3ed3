// Whether a Prometheus sees all there is: prometheus.mjs PODS TARGETS RULES ALERTS, files with what kubectl says of pods, what
// Prometheus says of its active targets and rules, and the rules' own file. Exit code 1 and what is wrong where something is missing.
import { readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';

const [pods, targets, rules, alerts] = argv.slice(2).map((file) => readFileSync(file, 'utf8'));
const faults = [];

const wanted = JSON.parse(pods)
  .items.filter(
    ({ metadata, status }) =>
      metadata.annotations?.['prometheus.io/scrape'] === 'true' && !metadata.deletionTimestamp && status.podIP,
  )
  .map(({ metadata, status }) => ({
    name: metadata.name,
    service: metadata.labels['app.kubernetes.io/name'],
    address: `${status.podIP}:${metadata.annotations['prometheus.io/port']}`,
  }));
const active = JSON.parse(targets).data.activeTargets;
for (const { name, service, address } of wanted) {
  const found = active.filter(({ labels }) => labels.instance === name);
  const [one] = found;
  if (found.length !== 1) faults.push(`${name}: ${found.length} targets`);
  else if (one.health !== 'up') faults.push(`${name}: ${one.health} ${one.lastError}`);
  else if (new URL(one.scrapeUrl).host !== address || one.labels.service !== service)
    faults.push(`${name}: ${one.scrapeUrl} as ${one.labels.service}`);
}
if (active.length !== wanted.length) faults.push(`${active.length} targets for ${wanted.length} pods`);
for (const service of ['tracker', 'seed', 'turn', 'origin']) {
  if (!wanted.some((pod) => pod.service === service)) faults.push(`no pod of ${service} asks to be scraped`);
}

const expected = [...alerts.matchAll(/^\s*- (?:alert|record): (\S+)/gm)].map(([, name]) => name).sort();
const loaded = JSON.parse(rules).data.groups.flatMap((group) => group.rules);
if (expected.length === 0 || expected.join() !== loaded.map(({ name }) => name).sort().join())
  faults.push(`the ${loaded.length} rules that are loaded are not the file's ${expected.length}`);
for (const { name, health, lastError } of loaded)
  if (health !== 'ok') faults.push(`${name}: ${health} ${lastError ?? ''}`);

console.log(
  faults.length > 0 ? faults.join('; ') : `${active.length} targets are up, ${loaded.length} rules are evaluated`,
);
exit(faults.length > 0 ? 1 : 0);
