// Builds the page of the network check, dist/check.html. The tests may be at another port, and run in workers of blobs.
import { buildPage } from '../../page/build.mjs';

await buildPage(import.meta.url, 'check', { connects: '*' });
