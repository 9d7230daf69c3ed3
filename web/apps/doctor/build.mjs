// Builds the page of the doctor, dist/doctor.html. It loads the tracker's own scripts, and asks the tracker and its relays.
import { buildPage } from '../../page/build.mjs';

await buildPage(import.meta.url, 'doctor', { scripts: "'self'", connects: "'self' ws: wss:" });
