/** Runs one cell, and says what came of it. */

import type { Adapter, BrowserName } from './adapter.ts';
import type { Bench } from './bench.ts';
import { cases, type Figures, playsPlain } from './cases/cases.ts';
import { Scene, type SceneOptions } from './cases/scene.ts';
import { reached } from './cases/view.ts';
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
/** How long a browser plays before its first cell, in seconds of film, and how long that may take. */
const warmSeconds = 1;
const warmPatienceSeconds = 60;

/** Why an adapter is not put to a case; undefined: it is. */
export function skipped(adapter: Adapter, name: CaseName, browser: BrowserName): string | undefined {
  return adapter.skips?.[name] ?? adapter.skips?.[`${name} in ${browser}`];
}

/** A path of its own on the origin, so that nothing of another cell is in a cache. */
const nextFolder = () => `/kit/${cells++}-${process.pid}/`;

/** Does something on a stage of its own: there a live presentation begins anew. */
async function staged<T>(
  bench: Bench,
  adapter: Adapter,
  options: SceneOptions,
  act: (scene: Scene) => Promise<T>,
): Promise<T> {
  const scene = await Scene.open(bench, adapter, nextFolder(), options);
  try {
    return await act(scene);
  } finally {
    await scene.close();
  }
}

/**
 * Has a browser play for a moment, without Leeway. Its first page starts processes for pages and for media, which takes the machine
 * for seconds: that is in no cell's time then, nor in that of a cell beside it. What does not play here is for a cell to say.
 */
export async function warmUp(bench: Bench, adapter: Adapter): Promise<void> {
  await staged(bench, adapter, { fixture: 'ts' }, async (scene) => {
    const view = await scene.view('host', true);
    await view.until(reached(warmSeconds), warmPatienceSeconds);
  });
}

/** Puts an adapter to one case. Rejects only if the bench itself fails. */
export async function runCell(bench: Bench, adapter: Adapter, name: CaseName): Promise<Verdict> {
  const one = cases.find((each) => each.name === name);
  if (!one) throw new TypeError(`conformance: there is no case ${name}.`);
  const cell = { adapter: adapter.name, case: name, browser: bench.browser.name };
  const why = skipped(adapter, name, bench.browser.name);
  if (why) return { ...cell, result: 'skipped', reason: why };
  const { wrong, figures } = await staged(bench, adapter, one.scene, (scene) => one.run(scene));
  if (wrong.length === 0) return { ...cell, result: 'passes', figures };
  const plain = (await staged(bench, adapter, one.scene, playsPlain)) ? 'plays' : 'does not play either';
  return { ...cell, result: 'fails', reason: [...wrong, `without Leeway it ${plain}`].join('; '), figures };
}
