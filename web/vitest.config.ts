import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'apps/{bench,check,demo,doctor}/src/**/*.test.ts'],
    testTimeout: 10_000,
  },
});
