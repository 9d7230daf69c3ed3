/** The engine: hands what it has to the element that the first script made for it. */

import { composeEngine } from '../../../core/src/compose.ts';
import type { CreateEngine } from '../../../core/src/title/options.ts';
import type { PartScript } from '../load.ts';

(document.currentScript as PartScript<CreateEngine>).take(composeEngine);
