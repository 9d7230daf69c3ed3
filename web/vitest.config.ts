import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'apps/{bench,check,demo,doctor}/src/**/*.test.ts',
      'scripts/**/*.test.mjs',
    ],
    // Files compute, and wait for nothing: each processor has one. Vitest's own default leaves one out.
    maxWorkers: '100%',
    // Virtual time costs real time on a busy machine.
    testTimeout: 60_000,
    // A test that fails runs once more, and is named (decision 65).
    retry: 1,
    reporters: ['default', './scripts/again.mjs'],
  },
});
