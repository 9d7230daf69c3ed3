/** The cases of the suite. */
export const caseNames = [
  'vod',
  'live',
  'low-latency',
  'byte-ranges',
  'separate-audio',
  'aes-128',
  'key-rotation',
  'clear-key',
  'discontinuities',
  'cmcd',
  'cmcd-headers',
  'storms',
  'two-players',
  'origin-errors',
] as const;
export type CaseName = (typeof caseNames)[number];
