/** The badge and the panel. */

import { showBadge } from '../../../panel/src/badge.ts';
import { showDebug } from '../../../panel/src/debug.ts';
import type { PartScript } from '../load.ts';

const panel = { showBadge, showDebug };

/** What the part hands over. */
export type Panel = typeof panel;

(document.currentScript as PartScript<Panel>).take(panel);
