// Fetches WebTorrent's bundle for browsers once and prints where it is. Not a dependency like others: the package wants Node 22 and
// 171 others beside it (41 MB), of which a page needs one file. npm's integrity of the archive is checked here, as a lockfile would.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const version = '3.0.21';
const integrity = 'PFgLphma0dsUWmbWrZ016Cja+j+3D3DXuhk09A5u9qVAzH1T4Vj1VZd8j+zb8sDwPv7NA7+qgPtDEN4iFd6wdw==';
const member = 'package/dist/webtorrent.min.js';

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'leeway');
const bundle = join(cache, `webtorrent-${version}.min.js`);

function fetchBundle() {
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'webtorrent-'));
  try {
    execFileSync('npm', ['pack', '--silent', '--ignore-scripts', `webtorrent@${version}`], {
      cwd: work,
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 120_000,
    });
    const archive = join(work, readdirSync(work)[0]);
    const digest = createHash('sha512').update(readFileSync(archive)).digest('base64');
    if (digest !== integrity)
      throw new Error(`webtorrent ${version}: the archive's SHA-512 is ${digest}, not ${integrity}`);
    execFileSync('tar', ['-xzf', archive, '-C', work, member]);
    renameSync(join(work, member), bundle);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (!existsSync(bundle)) fetchBundle();
console.log(bundle);
