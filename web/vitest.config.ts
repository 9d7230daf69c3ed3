import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['packages/*/src/**/*.test.ts', 'apps/demo/src/**/*.test.ts'], testTimeout: 10_000 },
});
