/** What the engine seldom needs. */

import { createStreams, createUnlisted } from '../../../core/src/seldom.ts';
import type { Seldom } from '../../../core/src/transfer/seldom.ts';
import type { PartScript } from '../script.ts';

(document.currentScript as PartScript<Seldom>).take({ createStreams, createUnlisted });
