/**
 * Vitest's reporter for tests that failed, those that passed when they ran once more among them, and for those that gave no verdict: a
 * line each in build/again.txt, which continuous integration prints at its end, where a long report is cut last. Decision 65.
 */

import { appendFileSync, mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';

const build = join(import.meta.dirname, '../../build');

export default class Again {
  onTestCaseResult(test) {
    const { state, note, errors } = test.result();
    const { flaky } = test.diagnostic() ?? {};
    if (!flaky && !note && state !== 'failed') return;
    const file = relative(process.cwd(), test.module.moduleId);
    const what = note
      ? `no verdict: ${note}`
      : `${flaky ? 'passed at the second try, after' : 'failed'}: ${errors?.[0]?.message ?? 'no error was kept'}`;
    mkdirSync(build, { recursive: true });
    appendFileSync(join(build, 'again.txt'), `${file} > ${test.fullName}: ${what}\n`);
  }
}
