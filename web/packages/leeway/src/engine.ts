/** The second script: hands what it has to the element that the first one made for it. */

import { composeEngine } from '../../core/src/compose.ts';
import type { EngineScript } from './load.ts';

(document.currentScript as EngineScript).take(composeEngine);
