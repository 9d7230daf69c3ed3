"""The client's side of the tracker protocol `leeway.v1` (spec/tracker-protocol.md)."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Awaitable, Callable

import websockets


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class TrackerError(RuntimeError):
    """The tracker's answer to a request was an error."""


class Tracker:
    """One session. Messages that answer no request go to `on_message`, one after the other."""

    def __init__(self, socket, on_message: Callable[[dict], Awaitable[None]]):
        self._socket, self._on_message = socket, on_message
        self._answers: dict[int, asyncio.Future] = {}
        self._next = 1
        self._tasks: list[asyncio.Task] = []
        self.swarm = ""

    @classmethod
    async def open(cls, url: str, origin: str, site: str, on_message, token: str = "") -> "Tracker":
        """Says hello and waits for the welcome."""
        socket = await websockets.connect(url, origin=origin, subprotocols=["leeway.v1"], max_size=65_536, compression=None)
        self = cls(socket, on_message)
        hello = {"type": "hello", "version": 1, "client": "leeway-interop/1", "site": site}
        await self.send(hello | ({"token": token} if token else {}))
        first = json.loads(await asyncio.wait_for(socket.recv(), 10))
        if first["type"] != "welcome":
            raise TrackerError(f"{first.get('code')}: {first.get('message')} {first.get('hint', '')}")
        self.session = unb64(first["session"])
        self.site = first["site"]
        self.update_interval = first["update_interval_ms"] / 1000
        self._offset_ms = first["server_time_ms"] - time.monotonic() * 1000
        self.keys: dict[tuple[bytes, int], bytes] = {}
        self.revocations: list[dict] = []
        self._take_keys(first.get("verify_keys") or [])
        self._take_revocations(first.get("revocations") or [])
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._update())]
        return self

    def now_ms(self) -> int:
        """Tracker time: the local monotonic clock and the offset of the welcome."""
        return int(self._offset_ms + time.monotonic() * 1000)

    async def send(self, message: dict) -> None:
        await self._socket.send(json.dumps(message))

    async def join(self, title: str, manifest: str, want: int) -> dict:
        """Joins a title's swarm; answers `joined`."""
        ask = {"type": "join", "title": title, "manifest": manifest, "role": "full", "want": want, "range": {"from_ms": 0, "to_ms": 600_000}}
        return await self._ask(ask)

    async def signal(self, to: bytes, link: bytes, kind: str, **fields) -> None:
        message = {"type": "signal", "swarm": self.swarm, "to": b64(to), "link": b64(link), "kind": kind}
        await self.send(message | fields)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self.swarm:
            await self.send({"type": "leave", "swarm": self.swarm})
        await self._socket.close()

    async def _ask(self, message: dict) -> dict:
        request, self._next = self._next, self._next + 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[request] = answer
        await self.send(message | {"id": request})
        return await asyncio.wait_for(answer, 10)

    async def _read(self) -> None:
        async for text in self._socket:
            message = json.loads(text)
            if message["type"] == "joined":  # at once: an introduction may be right behind it
                self.swarm = message["swarm"]
            if answer := self._answers.pop(message.get("id", 0), None):
                if message["type"] == "error":
                    answer.set_exception(TrackerError(f"{message['code']}: {message['message']} {message.get('hint', '')}"))
                else:
                    answer.set_result(message)
            elif message["type"] == "keys":
                self.keys.clear()
                self._take_keys(message["verify_keys"])
            elif message["type"] == "revoke":
                self._take_revocations(message["revocations"])
            else:
                await self._on_message(message)

    async def _update(self) -> None:
        while True:
            await asyncio.sleep(self.update_interval)
            if self.swarm:
                await self.send({"type": "update", "swarm": self.swarm, "range": {"from_ms": 0, "to_ms": 600_000}, "saturated": False, "links": 1, "want": 4})

    def _take_keys(self, keys: list[dict]) -> None:
        self.keys |= {(unb64(k["key_id"]), k["alg"]): unb64(k["key"]) for k in keys if k["alg"] in (1, 2)}

    def _take_revocations(self, revocations: list[dict]) -> None:
        self.revocations += [dict(r, key_id=unb64(r["key_id"])) if "key_id" in r else r for r in revocations]
