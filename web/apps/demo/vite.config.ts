import { readFileSync } from 'node:fs';
import { defineConfig } from 'vite';

/** The running `leeway up` that `npm run dev` borrows film, script and tracker from. */
const upstream = process.env.LEEWAY_DEMO_UPSTREAM ?? 'http://localhost:8080';

const logo = readFileSync(new URL('../../page/logo.svg', import.meta.url), 'utf8').trim();

export default defineConfig({
  plugins: [{ name: 'logo', transformIndexHtml: (html) => html.replace('<!-- logo -->', () => logo) }],
  // Relative, so that the page works under any path a person mounts it at.
  base: './',
  build: { target: 'es2022', modulePreload: { polyfill: false }, chunkSizeWarningLimit: 800 },
  server: { proxy: { '/media': upstream, '/leeway': upstream } },
});
