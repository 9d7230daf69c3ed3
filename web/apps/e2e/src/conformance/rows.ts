import type { Adapter } from '@leeway/conformance';
import { dashjs52 } from './dashjs.ts';
import { hlsjs15, hlsjs16, hlsjs17 } from './hlsjs.ts';
import { plyr } from './plyr.ts';
import { shakaDash, shakaHls } from './shaka.ts';
import { videojs8 } from './videojs.ts';
import { videojs10 } from './videojs10.ts';
import { vidstack } from './vidstack.ts';

/** The rows of the kit. */
export const rows: readonly Adapter[] = [
  hlsjs17,
  hlsjs16,
  hlsjs15,
  shakaHls,
  shakaDash,
  dashjs52,
  videojs8,
  videojs10,
  vidstack,
  plyr,
];
