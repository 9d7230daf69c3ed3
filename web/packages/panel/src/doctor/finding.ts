/** What `leeway.doctor()` says: the same form, and for the same faults the same codes and fixes, as `leeway doctor --json`. */

/** `ok`; `warning`: works, and costs something; `error`: keeps this page from sharing; `skipped`: the check could not run. */
export type FindingStatus = 'ok' | 'warning' | 'error' | 'skipped';

export interface Finding {
  /** What was looked at. */
  check: string;
  status: FindingStatus;
  /** Stable, for programs; `ok` and `skipped` of what has no code of its own. */
  code: string;
  /** What was seen. */
  text: string;
  /** What to do, with the name of the key, attribute or command. */
  fix?: string;
  took_ms: number;
}

/** What one check found, before it is known how long it took. */
export type Found = Omit<Finding, 'check' | 'took_ms'>;

export const ok = (text: string): Found => ({ status: 'ok', code: 'ok', text });
export const skipped = (text: string, fix?: string): Found => ({ status: 'skipped', code: 'skipped', text, fix });
export const warn = (code: string, text: string, fix: string): Found => ({ status: 'warning', code, text, fix });
export const fail = (code: string, text: string, fix: string): Found => ({ status: 'error', code, text, fix });

const colors: Record<FindingStatus, string> = { ok: '#2a9d5c', warning: '#c77700', error: '#d33', skipped: '#888' };

/** A line on the console, and below it what to do. */
export function tell({ check, status, code, text, fix }: Finding): void {
  const named = /^(ok|skipped)$/.test(code) ? text : `${text} [${code}]`;
  console.info(
    `%c${status.padEnd(8)}%c ${check.padEnd(8)} %s`,
    `color: ${colors[status]}; font-weight: bold`,
    '',
    fix ? `${named}\n${' '.repeat(18)}fix: ${fix}` : named,
  );
}
