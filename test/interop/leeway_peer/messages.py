"""Messages between peers (spec/peer-protocol.md) and of the background transport (spec/background-transport.md)."""

from __future__ import annotations

import struct

CONTROL, ACK, DATA = "control", "ack", "data"
MAX_PIECES = 512
_MAX_NUMBER = 2**53 - 1
_MAX_OBJECT = 8_388_608

# The numbers of the types on the wire.
TYPES = {
    "hello": 0x01, "have": 0x02, "certificate-request": 0x03, "certificate": 0x04, "certificate-none": 0x05,
    "request": 0x10, "cancel": 0x11, "reject": 0x12, "promote": 0x13, "data": 0x20, "background-data": 0x21,
    "ack": 0x30, "ping": 0x40, "pong": 0x41, "bye": 0x50,
}  # fmt: skip
NAMES = {number: name for name, number in TYPES.items()}
CHANNELS = {"data": DATA, "background-data": DATA, "ack": ACK}


class Malformed(ValueError):
    """A message that ends its link; its text is one of the page's reasons."""


class Unknown(ValueError):
    """A type that is skipped and counted."""


class _Reader:
    def __init__(self, body: bytes):
        self.body, self.at = body, 0

    def take(self, n: int) -> bytes:
        if n > len(self.body) - self.at:
            raise Malformed("short")
        self.at += n
        return self.body[self.at - n : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def limited(self, size: int, least: int, most: int) -> int:
        n = self.number(size)
        if not least <= n <= most:
            raise Malformed("limit")
        return n

    def count(self) -> int:
        n = self.number(1)
        if n == 0:
            raise Malformed("count")
        return n

    def rest(self) -> bytes:
        return self.take(len(self.body) - self.at)

    def end(self) -> None:
        if self.at != len(self.body):
            raise Malformed("long")


def decode(channel: str, raw: bytes, largest: int = 16_384, background: bool = True) -> dict:
    """Reads one message; raises Malformed or Unknown. `largest` is the plan's M."""
    if not raw:
        raise Malformed("empty")
    name = NAMES.get(raw[0])
    if name is None or not background and name in ("background-data", "ack"):
        raise Unknown(raw[0])
    if CHANNELS.get(name, CONTROL) != channel:
        raise Malformed("channel")
    if channel == DATA and len(raw) > largest:
        raise Malformed("long")
    r = _Reader(raw[1:])
    message = {"type": name, **_DECODERS[name](r)}
    if name != "hello":
        r.end()
    return message


def _hello(r: _Reader) -> dict:
    low, high = r.number(1), r.number(1)
    flags, requests = r.number(2), r.number(2)
    peer, swarm = r.take(16), r.take(16)
    if low < 1 or high < low or not 1 <= requests <= 1_024:
        raise Malformed("limit")
    return {"min_version": low, "max_version": high, "flags": flags, "max_requests": requests, "peer": peer, "swarm": swarm}


def _have(r: _Reader) -> dict:
    entries = []
    for _ in range(r.count()):
        segment, state, pieces = r.take(16), r.number(1), r.number(2)
        if state > 2 or pieces > MAX_PIECES or (state == 0) != (pieces == 0):
            raise Malformed("limit")
        entry = {"segment": segment, "state": state, "pieces": pieces}
        if state == 1:
            entry["bitmap"] = r.take((pieces + 7) // 8)
            if pieces % 8 and entry["bitmap"][-1] & (0xFF >> pieces % 8):
                raise Malformed("padding")
        entries.append(entry)
    return {"entries": entries}


def _certificate_none(r: _Reader) -> dict:
    segment, reason, length = r.take(16), r.limited(1, 0, 6), r.number(8)
    if length > _MAX_NUMBER or (length <= _MAX_OBJECT if reason == 4 else length != 0):
        raise Malformed("limit")
    return {"segment": segment, "reason": reason, "object_length": length}


def _request(r: _Reader) -> dict:
    segment, lane = r.take(16), r.limited(1, 0, 1)
    requests = [{"id": r.number(4), "piece": r.limited(2, 0, MAX_PIECES - 1)} for _ in range(r.count())]
    return {"segment": segment, "lane": lane, "requests": requests}


def _ids(r: _Reader) -> dict:
    return {"ids": [r.number(4) for _ in range(r.count())]}


def _reject(r: _Reader) -> dict:
    return {"reason": r.limited(1, 0, 5), **_ids(r)}


def _payload(r: _Reader, offset: int) -> bytes:
    payload = r.rest()
    if not payload:
        raise Malformed("short")
    if offset + len(payload) > 16_384:
        raise Malformed("limit")
    return payload


def _data(r: _Reader) -> dict:
    request, offset, sent_at = r.number(4), r.number(2), r.number(4)
    return {"request": request, "offset": offset, "sent_at": sent_at, "payload": _payload(r, offset)}


def _background_data(r: _Reader) -> dict:
    request, offset, sequence, sent_at, echo, flags = r.number(4), r.number(2), r.number(4), r.number(4), r.number(4), r.number(1)
    return {
        "request": request, "offset": offset, "sequence": sequence, "sent_at": sent_at, "echo": echo,
        "echoes": bool(flags & 1), "ack_now": bool(flags & 2), "payload": _payload(r, offset),
    }  # fmt: skip


def _ack(r: _Reader) -> dict:
    return {"cumulative": r.number(4), "highest": r.number(4), "bitmap": r.take(8), "received_at": r.number(4), "hold": r.number(4)}


def _certificate(r: _Reader) -> dict:
    segment, body = r.take(16), r.rest()
    if not body:
        raise Malformed("short")
    return {"segment": segment, "certificate": body}


def _ping(r: _Reader) -> dict:
    return {"nonce": r.number(4), "sent_at": r.number(4)}


_DECODERS = {
    "hello": _hello, "have": _have, "certificate": _certificate, "certificate-none": _certificate_none,
    "certificate-request": lambda r: {"segments": [r.take(16) for _ in range(r.count())]},
    "request": _request, "cancel": _ids, "reject": _reject, "promote": _ids, "data": _data, "background-data": _background_data,
    "ack": _ack, "ping": _ping, "pong": _ping, "bye": lambda r: {"reason": r.limited(1, 0, 8)},
}  # fmt: skip


def encode(m: dict) -> bytes:
    """Writes one message."""
    return bytes([TYPES[m["type"]]]) + _ENCODERS[m["type"]](m)


def _pack_have(m: dict) -> bytes:
    out = bytes([len(m["entries"])])
    for e in m["entries"]:
        out += e["segment"] + struct.pack(">BH", e["state"], e.get("pieces", 0)) + e.get("bitmap", b"")
    return out


def _pack_ids(m: dict) -> bytes:
    return bytes([len(m["ids"])]) + b"".join(struct.pack(">I", i) for i in m["ids"])


def _pack_request(m: dict) -> bytes:
    out = m["segment"] + bytes([m["lane"], len(m["requests"])])
    return out + b"".join(struct.pack(">IH", q["id"], q["piece"]) for q in m["requests"])


_ENCODERS = {
    "hello": lambda m: struct.pack(">BBHH", m["min_version"], m["max_version"], m["flags"], m["max_requests"]) + m["peer"] + m["swarm"],
    "have": _pack_have,
    "certificate-request": lambda m: bytes([len(m["segments"])]) + b"".join(m["segments"]),
    "certificate": lambda m: m["segment"] + m["certificate"],
    "certificate-none": lambda m: m["segment"] + struct.pack(">BQ", m["reason"], m["object_length"]),
    "request": _pack_request,
    "cancel": _pack_ids,
    "promote": _pack_ids,
    "reject": lambda m: bytes([m["reason"]]) + _pack_ids(m),
    "data": lambda m: struct.pack(">IHI", m["request"], m["offset"], m["sent_at"]) + m["payload"],
    "background-data": lambda m: struct.pack(
        ">IHIIIB", m["request"], m["offset"], m["sequence"], m["sent_at"], m["echo"], m["echoes"] | m["ack_now"] << 1
    ) + m["payload"],
    "ack": lambda m: struct.pack(">II", m["cumulative"], m["highest"]) + m["bitmap"] + struct.pack(">II", m["received_at"], m["hold"]),
    "ping": lambda m: struct.pack(">II", m["nonce"], m["sent_at"]),
    "pong": lambda m: struct.pack(">II", m["nonce"], m["sent_at"]),
    "bye": lambda m: bytes([m["reason"]]),
}  # fmt: skip


def cut(length: int, largest: int) -> int:
    """Payload bytes of each message but the last of a piece that travels in messages of at most `largest` bytes with 11 of header."""
    messages = -(-length // (largest - 11))
    return -(-length // messages)
