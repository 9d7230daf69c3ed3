/** The adapter of dash.js. */

import { attachFound } from '../../../dashjs/src/attach.ts';
import type { Found } from '../../../dashjs/src/meet.ts';
import type { Attach, PartScript } from '../load.ts';

(document.currentScript as PartScript<Attach<Found>>).take(attachFound);
