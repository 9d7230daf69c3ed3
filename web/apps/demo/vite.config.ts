import { defineConfig } from 'vite';

/** The running `leeway up` that `npm run dev` borrows film, script and tracker from. */
const upstream = process.env.LEEWAY_DEMO_UPSTREAM ?? 'http://localhost:8080';

export default defineConfig({
  // Relative, so that the page works under any path a person mounts it at.
  base: './',
  build: { target: 'es2022', modulePreload: { polyfill: false }, chunkSizeWarningLimit: 800 },
  server: { proxy: { '/media': upstream, '/leeway': upstream } },
});
