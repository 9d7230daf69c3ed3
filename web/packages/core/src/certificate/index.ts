export {
  type Certificate,
  type CertificateOutcome,
  checkPiece,
  parseCertificate,
  sameContent,
  verifyCertificate,
  withdraws,
} from './certificate.ts';
