"""Certificates: layout and verification (spec/certificate.md)."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from .names import PIECE, pieces_of

MAX_SEGMENT = 8_388_608  # bytes
_MAX_NUMBER = 2**53 - 1
_FUTURE = 5 * 60 * 1000  # ms
_CONTEXT = b"leeway certificate v1\0"
_SEED, _PACKAGER = 1, 2
_LONGEST_LIFE = 31 * 24 * 60 * 60 * 1000  # ms, of a packager's


class Refused(ValueError):
    """A certificate that does not count; `outcome` is one of the page's words."""

    def __init__(self, outcome: str):
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(frozen=True)
class Certificate:
    raw: bytes
    alg: int
    key_id: bytes
    issued_at: int  # ms
    not_after: int  # ms
    object_length: int
    length: int
    site: bytes
    name: bytes
    validator: bytes
    digests: tuple[bytes, ...]

    def signed(self) -> bytes:
        """What the signature is over, behind the context."""
        body = self.raw[:-64]
        if self.alg == _SEED:
            return body
        digests = b"".join(self.digests)
        return body[: -len(digests)] + hashlib.sha256(digests).digest()

    def verify_piece(self, piece: int, data: bytes) -> bool:
        return hashlib.sha256(data).digest() == self.digests[piece]

    def piece_length(self, piece: int) -> int:
        return min(PIECE, self.length - piece * PIECE)


class _Reader:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise Refused("malformed")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, size: int) -> int:
        n = int.from_bytes(self.take(size), "big")
        if n > _MAX_NUMBER:
            raise Refused("malformed")
        return n


def parse(raw: bytes) -> Certificate:
    """Reads a certificate without checking its signature; raises Refused."""
    r = _Reader(raw)
    if r.take(4) != b"LWC1":
        raise Refused("malformed")
    alg = r.number(1)
    key_id = r.take(8)
    issued_at, not_after, object_length = r.number(8), r.number(8), r.number(8)
    length = r.number(4)
    if not 1 <= length <= MAX_SEGMENT or object_length == 0:
        raise Refused("malformed")
    site = _visible(r.take(r.number(1)), 32)
    name = _visible(r.take(r.number(2)), 1_057)
    validator = r.take(r.number(1))
    digests = tuple(r.take(32) for _ in range(pieces_of(length)))
    r.take(64)
    if r.at != len(raw) or (alg == _PACKAGER and not_after - issued_at > _LONGEST_LIFE):
        raise Refused("malformed")
    _check_range(name, length, object_length)
    if alg not in (_SEED, _PACKAGER):
        raise Refused("unknown-alg")
    return Certificate(raw, alg, key_id, issued_at, not_after, object_length, length, site, name, validator, digests)


def _visible(text: bytes, most: int) -> bytes:
    if not 1 <= len(text) <= most or any(not 0x21 <= b <= 0x7E for b in text):
        raise Refused("malformed")
    return text


def _check_range(name: bytes, length: int, object_length: int) -> None:
    key, mark, part = name.partition(b"#")
    if not mark:
        if length != object_length:
            raise Refused("malformed")
        return
    ends = part.split(b"-")
    if len(ends) != 2 or any(not e.isdigit() or e != str(int(e)).encode() or int(e) > _MAX_NUMBER for e in ends):
        raise Refused("malformed")
    first, last = int(ends[0]), int(ends[1])
    if not key or last < first or last - first + 1 != length or last >= object_length:
        raise Refused("malformed")


def verify(raw: bytes, site: str, name: str, keys: dict[tuple[bytes, int], bytes], revocations: list[dict], now_ms: int) -> Certificate:
    """Checks all of a certificate, in the page's order. `keys` is key ID and alg → uncompressed point."""
    c = parse(raw)
    key = keys.get((c.key_id, c.alg))
    if key is None:
        raise Refused("unknown-key")
    signature = encode_dss_signature(int.from_bytes(raw[-64:-32], "big"), int.from_bytes(raw[-32:], "big"))
    try:
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
        point.verify(signature, _CONTEXT + c.signed(), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):
        raise Refused("bad-signature") from None
    if c.site != site.encode():
        raise Refused("wrong-site")
    if c.name != name.encode():
        raise Refused("wrong-name")
    if any(_revokes(r, c) for r in revocations):
        raise Refused("revoked")
    if now_ms > c.not_after:
        raise Refused("expired")
    if c.issued_at > now_ms + _FUTURE:
        raise Refused("from-the-future")
    return c


def _revokes(r: dict, c: Certificate) -> bool:
    if "key_id" in r:
        return r["key_id"] == c.key_id
    return r["site"].encode() == c.site and c.name.startswith(r["prefix"].encode()) and c.issued_at < r["min_issued_at"]
