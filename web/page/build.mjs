// Builds a page of one file, with its script and style in it, so that it can be served under any path.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const logo = readFileSync(fileURLToPath(new URL('logo.svg', import.meta.url)), 'utf8').trim();

async function bundled(folder, entry, options = {}) {
  const { outputFiles } = await build({
    absWorkingDir: folder,
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

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Writes dist/NAME.html of a folder with index.html, src/main.ts and src/style.css. `scripts` and `connects` are what its policy allows beside its own. */
export async function buildPage(base, name, { scripts = '', connects }) {
  const folder = fileURLToPath(new URL('.', base));
  const script = (await bundled(folder, 'src/main.ts', { format: 'iife' })).replaceAll('</script', '<\\/script');
  const style = await bundled(folder, 'src/style.css');
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)} ${scripts}`.trim(),
    `style-src ${hash(style)}`,
    `connect-src ${connects}`,
    'worker-src blob:',
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const page = readFileSync(`${folder}index.html`, 'utf8')
    .replace('<!-- policy -->', () => `<meta http-equiv="Content-Security-Policy" content="${policy}" />`)
    .replace('<!-- logo -->', () => logo)
    .replace('<!-- style -->', () => `<style>${style}</style>`)
    .replace('<!-- script -->', () => `<script type="module">${script}</script>`);
  mkdirSync(`${folder}dist`, { recursive: true });
  writeFileSync(`${folder}dist/${name}.html`, page);
  console.log(`${name}.html: ${page.length} bytes, ${gzipSync(page).length} with gzip`);
}
