import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { defineConfig } from 'vite';

/** The running `leeway up` that `npm run dev` borrows film, script and tracker from. */
const upstream = process.env.LEEWAY_DEMO_UPSTREAM ?? 'http://localhost:8080';

const logo = readFileSync(new URL('../../page/logo.svg', import.meta.url), 'utf8').trim();

/** What the built page holds of others, with the words that they want to go with it. */
function licenses(): string {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
  const { resolve } = createRequire(import.meta.url);
  const texts = Object.keys(dependencies).flatMap((name) => {
    const folder = join(resolve.paths(name)!.find((path) => path.endsWith('web/node_modules'))!, name);
    const files = readdirSync(folder).filter((file) => /^licen[cs]e/i.test(file));
    return files.map((file) => `${name}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`);
  });
  return texts.join(`\n${'-'.repeat(72)}\n\n`);
}

export default defineConfig({
  plugins: [
    { name: 'logo', transformIndexHtml: (html) => html.replace('<!-- logo -->', () => logo) },
    {
      name: 'licenses',
      generateBundle() {
        this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: licenses() });
      },
    },
  ],
  // Relative, so that the page works under any path a person mounts it at.
  base: './',
  build: { target: 'es2022', modulePreload: { polyfill: false }, chunkSizeWarningLimit: 900 },
  server: { proxy: { '/media': upstream, '/leeway': upstream } },
});
