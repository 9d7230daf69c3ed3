export {
  type Certificate,
  type CertificateOutcome,
  checkPiece,
  completeCertificate,
  parseCertificate,
  parseShort,
  sameContent,
  verifyCertificate,
  withdraws,
} from './certificate.ts';
export { parseList } from './list.ts';
