/** The adapter of Shaka Player. */

import { attachShakaClass } from '../../../shaka/src/attach.ts';
import type { ShakaNamespace } from '../../../shaka/src/shaka.ts';
import type { Attach, PartScript } from '../load.ts';

(document.currentScript as PartScript<Attach<ShakaNamespace>>).take(attachShakaClass);
