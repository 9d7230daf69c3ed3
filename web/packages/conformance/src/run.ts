/** Runs one cell, and says what came of it. */

import type { Adapter, BrowserName } from './adapter.ts';
import type { Bench } from './bench.ts';
import { cases, type Figures, playsPlain } from './cases/cases.ts';
import { Scene } from './cases/scene.ts';
import type { CaseName } from './names.ts';

export type Result = 'passes' | 'skipped' | 'fails';

export interface Verdict {
  adapter: string;
  case: CaseName;
  browser: BrowserName;
  result: Result;
  /** Why it is skipped, or what failed. */
  reason?: string;
  figures?: Figures;
}

let cells = 0;

/** Why an adapter is not put to a case; undefined: it is. */
export function skipped(adapter: Adapter, name: CaseName, browser: BrowserName): string | undefined {
  return adapter.skips?.[name] ?? adapter.skips?.[`${name} in ${browser}`];
}

/** Puts an adapter to one case. Rejects only if the bench itself fails. */
export async function runCell(bench: Bench, adapter: Adapter, name: CaseName): Promise<Verdict> {
  const one = cases.find((each) => each.name === name);
  if (!one) throw new TypeError(`conformance: there is no case ${name}.`);
  const cell = { adapter: adapter.name, case: name, browser: bench.browser.name };
  const why = skipped(adapter, name, bench.browser.name);
  if (why) return { ...cell, result: 'skipped', reason: why };
  const scene = await Scene.open(bench, adapter, `/kit/${cells++}-${process.pid}/`, one.scene);
  try {
    const { wrong, figures } = await one.run(scene);
    if (wrong.length === 0) return { ...cell, result: 'passes', figures };
    await scene.clear();
    const plain = (await playsPlain(scene)) ? 'plays' : 'does not play either';
    return { ...cell, result: 'fails', reason: [...wrong, `without Leeway it ${plain}`].join('; '), figures };
  } finally {
    await scene.close();
  }
}
