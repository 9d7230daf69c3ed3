export {
  fromHex,
  hex,
  maxLength,
  maxObject,
  pieceCount,
  pieceLength,
  pieceSize,
  piecesOf,
  segmentId,
  virtualLength,
  virtualRanges,
} from './segment.ts';
export { type SiteConfig, SiteError, type SiteErrorCode, SiteRules } from './site.ts';
