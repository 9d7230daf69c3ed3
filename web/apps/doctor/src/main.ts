/** The page of the doctor: `leeway.doctor()` by the tracker's own scripts, as a page of another origin would have it. */
import type { LeewayGlobal } from '../../../packages/leeway/src/dropin.ts';
import type { Finding } from '../../../packages/panel/src/index.ts';
import { byId, element } from '../../../page/elements.ts';
import { fragmentOf, originOf, sentenceOf, shown, type Wanted } from './words.ts';

const fields = ['page', 'manifest', 'site', 'title', 'token'] as const;
const input = (name: (typeof fields)[number]) => byId<HTMLInputElement>(name);
const main = byId('main');
const list = byId('findings');
const marks = { ok: '✓', warning: '!', error: '✕', skipped: '–' } as const;
const loadMs = 15_000;

function show({ check, status, code, text, fix }: Finding): void {
  const named = /^(ok|skipped)$/.test(code) ? '' : ` ${code}`;
  list.append(
    element(
      'li',
      { 'data-status': status, 'data-check': check, 'data-code': code },
      element('span', { class: 'mark', 'aria-label': status, role: 'img' }, marks[status]),
      element('span', {}, element('b', {}, check), text, element('small', {}, named)),
      ...(fix ? [element('span', { class: 'fix' }, fix)] : []),
    ),
  );
}

/** Has the tracker's script run as on a page of the origin that is asked for. */
async function load({ page, site, title, token }: Wanted): Promise<LeewayGlobal> {
  window.leeway?.stop();
  delete window.leeway;
  const tracker = new URL('/', location.href.replace(/^http/, 'ws'));
  if (page && page !== location.origin) tracker.searchParams.set('page', page);
  const script = element('script', { src: '/leeway.js', 'data-tracker': tracker.href });
  for (const [name, value] of Object.entries({ site, title, token })) if (value) script.dataset[name] = value;
  await new Promise((resolve, reject) => {
    script.onload = resolve;
    script.onerror = reject;
    setTimeout(reject, loadMs);
    document.head.append(script);
  });
  script.remove();
  return window.leeway!;
}

async function examine(wanted: Wanted): Promise<Finding[]> {
  const leeway = await load(wanted);
  leeway.start();
  if (wanted.manifest) leeway.open(wanted.manifest);
  const findings: Finding[] = [];
  // What this page says of players and pieces says nothing of another: it is done before the last check waits for one.
  await new Promise<void>((resolve, reject) => {
    const heard = (finding: Finding) => {
      if (finding.check === 'signed') resolve();
      if (!shown(finding.check, Boolean(wanted.manifest))) return;
      findings.push(finding);
      show(finding);
    };
    leeway.doctor(heard).then(() => resolve(), reject);
  });
  leeway.stop();
  return findings;
}

function say(text: string): void {
  byId('sentence').textContent = text;
}

async function run(): Promise<void> {
  const wanted = Object.fromEntries(fields.map((name) => [name, input(name).value.trim()])) as unknown as Wanted;
  wanted.page = originOf(wanted.page);
  input('page').value = wanted.page;
  history.replaceState(null, '', fragmentOf(wanted));
  list.replaceChildren();
  byId('keep').hidden = true;
  byId<HTMLButtonElement>('go').disabled = true;
  main.dataset.state = 'running';
  say('Looking …');
  let findings: Finding[] = [];
  try {
    findings = await examine(wanted);
    say(sentenceOf(findings, wanted));
  } catch {
    say('The scripts of this tracker do not load. Is it up?');
  }
  const healthy = findings.length > 0 && findings.every(({ status }) => status !== 'error');
  byId<HTMLTextAreaElement>('json').value = JSON.stringify({ healthy, findings }, null, 2);
  byId('keep').hidden = findings.length === 0;
  byId<HTMLButtonElement>('go').disabled = false;
  main.dataset.state = 'done';
}

byId('server').textContent = location.host;
const given = new URLSearchParams(location.hash.slice(1));
for (const name of fields) if (name !== 'token') input(name).value = given.get(name) ?? '';
byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  void run();
});
byId('copy').addEventListener('click', async () => {
  const done = await navigator.clipboard?.writeText(byId<HTMLTextAreaElement>('json').value).then(
    () => true,
    () => false,
  );
  byId('copy').textContent = done ? 'Copied' : 'Select it below';
});
