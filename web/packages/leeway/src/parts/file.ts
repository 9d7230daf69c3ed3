/** Files: what `leeway.fetch` does. */

import { fetchFile } from '../../../file/src/file.ts';
import type { PartScript } from '../load.ts';

(document.currentScript as PartScript<typeof fetchFile>).take(fetchFile);
