/**
 * What few pages ask for: files, the badge, the panel and the checks for developers, the log of `data-debug`, and what deletes what is kept
 * on the disk. One script, for one hash in the first.
 */

import { clear } from '../../../core/src/browser/disk.ts';
import { fetchFile } from '../../../file/src/file.ts';
import { showBadge } from '../../../panel/src/badge.ts';
import { showDebug } from '../../../panel/src/debug.ts';
import { examine } from '../../../panel/src/doctor/examine.ts';
import { logEvents } from '../../../panel/src/log.ts';
import type { PartScript } from '../load.ts';

const more = { clear, examine, fetchFile, logEvents, showBadge, showDebug };

/** What the part hands over. */
export type More = typeof more;

(document.currentScript as PartScript<More>).take(more);
