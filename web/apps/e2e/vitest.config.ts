import { defineConfig } from 'vitest/config';

const root = import.meta.dirname;
const base = { root, pool: 'forks' as const, testTimeout: 240_000, hookTimeout: 320_000, retry: 1 };

const alone = [
  'src/swarm.test.ts',
  'src/startup.test.ts',
  'src/bitrate.test.ts',
  'src/waiting.test.ts',
  'src/lowlatency.test.ts',
];

const kit = 'src/conformance.test.ts';

// First what is compared with a clock, alone; then the rest, two files at a time: they wait more than they work; last the conformance kit, two cells at a time.
export default defineConfig({
  test: {
    root,
    globalSetup: ['src/setup.ts'],
    reporters: ['verbose', '../../scripts/again.mjs'], // a test that fails runs once more, and is named (decision 65)
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
