/** The table of a run. */

import type { BrowserName } from './adapter.ts';
import { cases } from './cases/cases.ts';
import type { Result, Verdict } from './run.ts';

const marks: Record<Result, string> = { passes: 'passes', skipped: 'skipped', fails: '**fails**' };

/** One table a browser, rows are cases, columns adapters; what did not pass follows with its reasons. */
export function table(verdicts: readonly Verdict[]): string {
  const parts: string[] = [];
  const adapters = [...new Set(verdicts.map(({ adapter }) => adapter))];
  for (const browser of new Set(verdicts.map((one) => one.browser)))
    parts.push(browserTable(verdicts, browser, adapters));
  const reasons = new Map<string, string[]>();
  for (const { adapter, case: name, browser, result, reason } of verdicts) {
    if (result === 'passes') continue;
    const text = `${result}: ${reason}`;
    reasons.set(text, [...(reasons.get(text) ?? []), `${adapter}, ${name}, ${browser}`]);
  }
  const lines = [...reasons].map(([text, where]) => `- ${where.join('; ')}: ${text}`);
  return [...parts, ...(lines.length > 0 ? [lines.join('\n')] : [])].join('\n\n');
}

function browserTable(verdicts: readonly Verdict[], browser: BrowserName, adapters: string[]): string {
  const row = (cells: string[]) => `| ${cells.join(' | ')} |`;
  const rows = cases.map(({ name, title }) => {
    const marked = adapters.map((adapter) => {
      const found = verdicts.find((v) => v.adapter === adapter && v.case === name && v.browser === browser);
      return found ? marks[found.result] : '';
    });
    return row([title, ...marked]);
  });
  return [row([browser, ...adapters]), row(['---', ...adapters.map(() => '---')]), ...rows].join('\n');
}
