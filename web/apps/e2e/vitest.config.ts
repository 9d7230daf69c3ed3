import { basename } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = import.meta.dirname;
const base = { root, pool: 'forks' as const, testTimeout: 240_000, hookTimeout: 320_000, retry: 1 };

/** What is compared with a clock. */
const alone = ['src/startup.test.ts', 'src/bitrate.test.ts', 'src/waiting.test.ts', 'src/lowlatency.test.ts'];

const kit = 'src/conformance.test.ts';

/**
 * Files that take more than a minute come first: one of them that began last would end alone. Of two that run beside each other one has
 * several pages that play, and one waits more.
 */
const long = ['firefox', 'sleep', 'disk', 'leaks', 'swarm', 'headless', 'packaged', 'off', 'origin', 'check', 'share'];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = long.indexOf(basename(moduleId, '.test.ts'));
      return at < 0 ? long.length : at;
    };
    return [...files].sort((a, b) => place(a) - place(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

// First the cases, two files at a time, then the conformance kit, two cells at a time; last what is compared with a clock, alone: Vitest
// puts what has one worker in the first group behind all others.
export default defineConfig({
  test: {
    root,
    globalSetup: ['src/setup.ts'],
    reporters: ['verbose', '../../scripts/again.mjs'], // a test that fails runs once more, and is named (decision 65)
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          ...base,
          name: 'alone',
          include: alone,
          maxWorkers: 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...base,
          name: 'cases',
          include: ['src/*.test.ts'],
          exclude: [...alone, kit],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...base,
          name: 'conformance',
          include: [kit],
          maxWorkers: 1,
          maxConcurrency: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
