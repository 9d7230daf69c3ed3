// The API report: what each public package lets its users see, as text that a review of a change reads.
// node scripts/api.mjs writes docs/api/*.md; with --check it tells whether they are what the sources say.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { declarations, packages, web } from './declarations.mjs';

const folder = join(web, '../docs/api');

function report({ name, entries }, types) {
  const parts = [
    `# ${name}`,
    'The public API, made by `npm run api` in `web/`. What has no `export` is mentioned, but cannot be imported.',
  ];
  for (const { file } of entries) {
    const path = file === 'index' ? name : `${name}/${file}.js`;
    const text = types[file].replace(/\n+export \{\};\n*$/, '').replaceAll('\t', '  ');
    parts.push(`## \`${path}\``, `\`\`\`ts\n${text}\n\`\`\``);
  }
  return `${parts.join('\n\n')}\n`;
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The first line in which two texts differ. */
function difference(before, after) {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const at = now.findIndex((line, i) => line !== old[i]);
  return at < 0 ? `line ${now.length + 1} and on are gone` : `line ${at + 1} would be: ${now[at]}`;
}

const check = process.argv.includes('--check');
const types = declarations();
mkdirSync(folder, { recursive: true });
for (const entry of packages) {
  const path = join(folder, `${entry.folder}.md`);
  const now = report(entry, types[entry.folder]);
  const before = read(path);
  if (now === before) continue;
  if (check) {
    console.error(
      `docs/api/${entry.folder}.md: the public API of ${entry.name} has changed; ${difference(before, now)}`,
    );
    console.error('If that is meant, run "npm run api" in web/ and commit the report with the change.');
    process.exitCode = 1;
  } else writeFileSync(path, now);
}
