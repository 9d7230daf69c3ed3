/** The adapter of Shaka Player: hands what it has to the element that the first script made for it. */

import { attachShakaClass } from '../../shaka/src/attach.ts';
import type { AttachShaka, PartScript } from './load.ts';

(document.currentScript as PartScript<AttachShaka>).take(attachShakaClass);
