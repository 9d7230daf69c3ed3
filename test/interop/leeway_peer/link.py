"""One link: a peer connection of aiortc with the channels of a plan (spec/peer-protocol.md)."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Callable

from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.sdp import candidate_from_sdp

from . import messages

DATA_CHANNELS = 2
MESSAGE = 16_384  # bytes, the plan's M
MAX_REQUESTS = 64
HIGH_WATER = 262_144  # bytes that may wait in a channel
PLAN = {"v": 1, "data": DATA_CHANNELS, "message": MESSAGE}


def microseconds() -> int:
    return time.monotonic_ns() // 1000 & 0xFFFFFFFF


class Link:
    """The transport and the hello of one link. What else the peer says goes to `on_message(link, message)`."""

    def __init__(self, own: bytes, peer: bytes, role: str, link_id: bytes, swarm: bytes, on_message: Callable, on_end: Callable):
        self.peer, self.role, self.id = peer, role, link_id
        self.opened = asyncio.get_running_loop().create_future()
        self.remote_hello: dict | None = None
        self.ended = ""
        self.largest = MESSAGE
        self.breaches: list[str] = []  # of the other side, and what it said of ours
        self._own, self._swarm = own, swarm
        self._on_message, self._on_end = on_message, on_end
        self._pc = RTCPeerConnection()
        self._channels: dict[str, object] = {}
        self._heard = self._pc.connectionState
        self._pc.on("connectionstatechange", self._state)
        self._pc.on("datachannel", self._adopt)
        self._pinger: asyncio.Task | None = None

    async def offer(self) -> str:
        for label in ("lw.control", "lw.ack", *(f"lw.data.{i}" for i in range(DATA_CHANNELS))):
            self._adopt(self._pc.createDataChannel(label, ordered=label == "lw.control"))
        await self._pc.setLocalDescription(await self._pc.createOffer())
        return self._pc.localDescription.sdp

    async def answer(self, sdp: str, plan: dict) -> str:
        self._agree(plan)
        await self._pc.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        await self._pc.setLocalDescription(await self._pc.createAnswer())
        return self._pc.localDescription.sdp

    async def accept(self, sdp: str, plan: dict) -> None:
        self._agree(plan)
        await self._pc.setRemoteDescription(RTCSessionDescription(sdp, "answer"))

    async def add_candidate(self, candidate: str, mid: str, index: int) -> None:
        if not candidate:
            return
        c = candidate_from_sdp(candidate.removeprefix("candidate:"))
        c.sdpMid, c.sdpMLineIndex = mid or "0", index
        await self._pc.addIceCandidate(c)

    def send(self, message: dict) -> None:
        self._channels["lw.control"].send(messages.encode(message))

    async def send_data(self, request: int, piece: bytes) -> None:
        """Sends a piece in messages that the plan allows; waits while the channel is full."""
        channel = self._channels["lw.data.0"]
        size = messages.cut(len(piece), self.largest)
        for offset in range(0, len(piece), size):
            while channel.bufferedAmount > HIGH_WATER and not self.ended:
                await asyncio.sleep(0.005)
            if self.ended:
                return
            m = {"type": "data", "request": request, "offset": offset, "sent_at": microseconds(), "payload": piece[offset : offset + size]}
            channel.send(messages.encode(m))

    async def close(self, reason: int = 0) -> None:
        control = self._channels.get("lw.control")
        if not self.ended and control is not None and control.readyState == "open":
            self.send({"type": "bye", "reason": reason})
            await asyncio.sleep(0.05)
        self._end("closed")
        await self._pc.close()

    def _agree(self, plan: dict) -> None:
        self.largest = min(MESSAGE, plan["message"])

    def _adopt(self, channel) -> None:
        kind = channel.label.split(".")[1] if channel.label.startswith("lw.") else ""
        self._channels[channel.label] = channel
        channel.on("message", lambda raw: self._take(kind, raw))
        if channel.label == "lw.control":
            if channel.readyState == "open":
                self._hello()
            else:
                channel.on("open", self._hello)
            channel.on("close", lambda: self._end("closed"))

    def _hello(self) -> None:
        self.send({
            "type": "hello", "min_version": 1, "max_version": 1, "flags": 0, "max_requests": MAX_REQUESTS, "peer": self._own, "swarm": self._swarm,
        })  # fmt: skip
        self._pinger = asyncio.create_task(self._ping())

    async def _ping(self) -> None:
        while not self.ended:
            await asyncio.sleep(5)
            self.send({"type": "ping", "nonce": int.from_bytes(os.urandom(4), "big"), "sent_at": microseconds()})

    def _take(self, channel: str, raw: bytes | str) -> None:
        try:
            message = messages.decode(channel, raw if isinstance(raw, bytes) else raw.encode(), background=False)
        except messages.Unknown:
            return
        except messages.Malformed as malformed:
            self.breaches.append(f"{channel}: {malformed}: {raw[:32].hex()}")
            asyncio.ensure_future(self.close(5))
            return
        kind = message["type"]
        if self.remote_hello is None:
            self._take_hello(message)
        elif kind == "hello":
            self.breaches.append("a second hello")
        elif kind == "ping":
            self.send({"type": "pong", "nonce": message["nonce"], "sent_at": message["sent_at"]})
        elif kind == "bye":
            self._end(f"bye {message['reason']}")
        elif kind != "pong":
            self._on_message(self, message)

    def _take_hello(self, message: dict) -> None:
        if message["type"] != "hello" or message["peer"] != self.peer or message["swarm"] != self._swarm:
            self.breaches.append(f"{message['type']} instead of the hello that was signaled")
            return
        self.remote_hello = message
        if not self.opened.done():
            self.opened.set_result(None)

    def _state(self) -> None:
        if self._pc.connectionState in ("failed", "closed"):
            self._end(self._pc.connectionState)

    def _end(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = reason
        if self._pinger:
            self._pinger.cancel()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(reason))
            self.opened.exception()
        self._on_end(self)
