export {
  type Certificate,
  type CertificateOutcome,
  checkPiece,
  completeCertificate,
  counts,
  joinBytes,
  maxCertificate,
  parseCertificate,
  parseShort,
  sameBytes,
  sameContent,
  standsFor,
  verifyCertificate,
  withdraws,
} from './certificate.ts';
export { listUrl, parseList, partUrl, representationUrl } from './list.ts';
