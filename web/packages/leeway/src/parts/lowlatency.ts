/** The node of low-latency streams, for the engine. */

import { createStreams } from '../../../core/src/streams.ts';
import type { CreateStreams } from '../../../core/src/transfer/streams.ts';
import type { PartScript } from '../script.ts';

(document.currentScript as PartScript<CreateStreams>).take(createStreams);
