/** The adapter of Video.js. */

import { attachVideojsAll } from '../../../videojs/src/attach.ts';
import type { VideojsNamespace } from '../../../videojs/src/videojs.ts';
import type { Attach, PartScript } from '../load.ts';

(document.currentScript as PartScript<Attach<VideojsNamespace>>).take(attachVideojsAll);
