/** What keeps segments on the viewer's disk. */

import type { OpenDisk } from '../../../core/src/disk/disk.ts';
import { openDisk } from '../../../core/src/disk.ts';
import type { PartScript } from '../script.ts';

(document.currentScript as PartScript<OpenDisk>).take(openDisk);
