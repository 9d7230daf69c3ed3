// Builds the page of the network check: dist/check.html, one file with script and style in it, so that it can be served under any path.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));

async function bundled(entry, options = {}) {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    target: 'es2022',
    legalComments: 'none',
    write: false,
    ...options,
  });
  return outputFiles[0].text.trim();
}

const script = (await bundled('src/main.ts', { format: 'iife' })).replaceAll('</script', '<\\/script');
const style = await bundled('src/style.css');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// Nothing but this file's own script and style runs; the tests may be at another port, and run in workers of blobs.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; connect-src *; worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'`;

const page = readFileSync(`${here}index.html`, 'utf8')
  .replace('<!-- policy -->', () => `<meta http-equiv="Content-Security-Policy" content="${policy}" />`)
  .replace('<!-- logo -->', () => readFileSync(`${here}../../page/logo.svg`, 'utf8').trim())
  .replace('<!-- style -->', () => `<style>${style}</style>`)
  .replace('<!-- script -->', () => `<script type="module">${script}</script>`);
mkdirSync(`${here}dist`, { recursive: true });
writeFileSync(`${here}dist/check.html`, page);
console.log(`check.html: ${page.length} bytes, ${gzipSync(page).length} with gzip`);
