import type { Adapter } from '@leeway/conformance';
import { hlsjs15, hlsjs16, hlsjs17 } from './hlsjs.ts';
import { shakaHls } from './shaka.ts';

/** The rows of the kit. */
export const rows: readonly Adapter[] = [hlsjs17, hlsjs16, hlsjs15, shakaHls];
