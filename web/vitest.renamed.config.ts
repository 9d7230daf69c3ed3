// The tests with the properties renamed that the drop-in's scripts call by short names (docs/decisions/0117-internal-names-are-short.md).
import { readdirSync, readFileSync } from 'node:fs';
import { transform } from 'esbuild';
import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** Tests have these as strings, or hand them to a player. */
const inTests = /^(without|withdrawn|events)$/;
const folder = new URL('../spec/vectors/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
const vectors = files.map((name) => readFileSync(new URL(name, folder), 'utf8')).join();
const list: string[] = JSON.parse(readFileSync(new URL('packages/leeway/renamed.json', import.meta.url), 'utf8'));
const names = list.filter((name) => !inTests.test(name) && !vectors.includes(`"${name}"`));
const mangleProps = new RegExp(`^(${names.join('|')})$`);

export default mergeConfig(
  base,
  defineConfig({
    plugins: [
      {
        name: 'renamed',
        enforce: 'pre',
        async transform(code, id) {
          if (!/\/web\/(packages|apps)\/.*\.ts$/.test(id) || id.includes('node_modules')) return undefined;
          const { code: out, map } = await transform(code, {
            loader: 'ts',
            format: 'esm',
            target: 'es2022',
            tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
            mangleProps,
            mangleCache: Object.fromEntries(names.map((name) => [name, `${name}_`])),
            sourcemap: true,
            sourcefile: id,
          });
          return { code: out, map };
        },
      },
    ],
  }),
);
