"""A viewer without a player: it takes the first segments of a playlist from peers, checks them, and serves them on."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from dataclasses import dataclass, field

from . import certificate, names
from .link import MAX_REQUESTS, PLAN, Link
from .tracker import Tracker, b64, unb64

ATTEMPTS = 40  # certificate requests for one segment, a quarter of a second apart: a seed may have to fetch it first


@dataclass
class Segment:
    name: str
    id: bytes
    certificate: certificate.Certificate | None = None
    pieces: dict[int, bytes] = field(default_factory=dict)
    none: int = 0  # how often a peer had no certificate

    def complete(self) -> bool:
        return self.certificate is not None and len(self.pieces) == len(self.certificate.digests)

    def body(self) -> bytes:
        return b"".join(self.pieces[i] for i in range(len(self.pieces)))


@dataclass
class Asked:
    """A request that is outstanding."""

    link: Link
    segment: Segment
    piece: int
    parts: dict[int, bytes] = field(default_factory=dict)


class Peer:
    def __init__(self, source: str):
        self.source = source  # role of the peers that segments are taken from: seed or viewer
        self.links: dict[bytes, Link] = {}
        self.segments: dict[bytes, Segment] = {}
        self.holds: dict[tuple[bytes, bytes], set[int]] = {}  # (peer, segment) → pieces that the peer has announced
        self.asked: dict[int, Asked] = {}
        self.taken, self.served = Counter(), Counter()  # bytes by role and peer
        self.problems: list[str] = []
        self.changed = asyncio.Event()
        self._request = 0
        self._tasks: set[asyncio.Task] = set()

    async def start(self, tracker_url: str, origin: str, site: str, manifest_url: str) -> None:
        self.tracker = await Tracker.open(tracker_url, origin, site, self._hear)
        self.site = names.Site.of(self.tracker.site)
        manifest = names.key_of(self.site, manifest_url)
        await self.tracker.join(names.title_of(self.site, manifest), manifest.split("?")[0], 8)

    def want(self, urls: list[str]) -> None:
        for url in urls:
            name = names.key_of(self.site, url)
            segment = Segment(name, names.segment_id(self.site.name, name))
            self.segments[segment.id] = segment

    async def take(self) -> None:
        """Takes all that is wanted; the caller bounds the time."""
        while any(not s.complete() for s in self.segments.values()):
            self.changed.clear()
            for segment in self.segments.values():
                self._ask(segment)
            try:
                await asyncio.wait_for(self.changed.wait(), 0.25)
            except TimeoutError:
                pass

    def report(self) -> dict:
        done = [s for s in self.segments.values() if s.complete()]
        return {
            "session": self.tracker.session.hex(),
            "segments": {s.name: hashlib.sha256(s.body()).hexdigest() for s in done},
            "wanted": len(self.segments),
            "taken": dict(self.taken),
            "served": dict(self.served),
            "problems": self.problems + [b for link in self.links.values() for b in link.breaches],
            "links": [{"role": link.role, "ended": link.ended, "opened": link.remote_hello is not None} for link in self.links.values()],
        }

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self.links.values()))
        await self.tracker.close()

    # Signaling.

    async def _hear(self, message: dict) -> None:
        if message["type"] == "introduce":
            for peer in message["peers"]:
                self._spawn(self._offer(unb64(peer["peer"]), peer["role"]))
        elif message["type"] == "signal":
            await self._signal(message)
        elif message["type"] == "error":
            self.problems.append(f"tracker: {message['code']}: {message['message']}")

    def _link(self, peer: bytes, role: str, link_id: bytes) -> Link:
        link = Link(self.tracker.session, peer, role, link_id, unb64(self.tracker.swarm), self._take, self._ended)
        self.links[link_id] = link
        self._spawn(self._greet(link))
        return link

    async def _offer(self, peer: bytes, role: str) -> None:
        if any(link.peer == peer and not link.ended for link in self.links.values()):
            return
        link = self._link(peer, role, os.urandom(16))
        await self.tracker.signal(peer, link.id, "offer", sdp=await link.offer(), plan=PLAN)
        await self.tracker.signal(peer, link.id, "end")

    async def _signal(self, m: dict) -> None:
        link = self.links.get(unb64(m["link"]))
        if m["kind"] == "offer":
            link = self._link(unb64(m["from"]), m["role"], unb64(m["link"]))
            sdp = await link.answer(m["sdp"], m["plan"])
            plan = PLAN | {"data": min(PLAN["data"], m["plan"]["data"])}
            await self.tracker.signal(link.peer, link.id, "answer", sdp=sdp, plan=plan)
        elif link is None:
            return
        elif m["kind"] == "answer":
            await link.accept(m["sdp"], m["plan"])
        elif m["kind"] == "candidate":
            await link.add_candidate(m["candidate"], m.get("sdp_mid", "0"), m.get("sdp_m_line_index", 0))
        elif m["kind"] == "fail":
            self.problems.append(f"fail {m['reason']} from {link.role}")
            await link.close()

    async def _greet(self, link: Link) -> None:
        """Says what is held once a link is open."""
        try:
            await link.opened
        except ConnectionError:
            return
        self._announce([s for s in self.segments.values() if s.complete()], [link])
        self.changed.set()

    def _announce(self, segments: list[Segment], links: list[Link]) -> None:
        entries = [{"segment": s.id, "state": 2, "pieces": len(s.certificate.digests)} for s in segments]
        for link in links:
            if entries and link.role == "viewer" and link.remote_hello and not link.ended:
                link.send({"type": "have", "entries": entries})

    def _ended(self, link: Link) -> None:
        self.asked = {i: a for i, a in self.asked.items() if a.link is not link}
        self.changed.set()

    # Taking.

    def _ask(self, segment: Segment) -> None:
        link = next((l for l in self.links.values() if self._has(l, segment)), None)
        if link is None or segment.complete():
            return
        if segment.certificate is None:
            if segment.none < ATTEMPTS:
                segment.none += 1
                link.send({"type": "certificate-request", "segments": [segment.id]})
            return
        out = {a.piece for a in self.asked.values() if a.segment is segment}
        room = min(MAX_REQUESTS, link.remote_hello["max_requests"]) - sum(a.link is link for a in self.asked.values())
        want = [p for p in range(len(segment.certificate.digests)) if p not in segment.pieces and p not in out][: max(0, room)]
        if not want:
            return
        requests = []
        for piece in want:
            self._request += 1
            self.asked[self._request] = Asked(link, segment, piece)
            requests.append({"id": self._request, "piece": piece})
        link.send({"type": "request", "segment": segment.id, "lane": 0, "requests": requests})

    def _has(self, link: Link, segment: Segment) -> bool:
        if link.role != self.source or link.remote_hello is None or link.ended:
            return False
        return bool(link.remote_hello["flags"] & 1) or bool(self.holds.get((link.peer, segment.id)))

    def _take(self, link: Link, m: dict) -> None:
        handler = getattr(self, "_on_" + m["type"].replace("-", "_"), None)
        if handler:
            handler(link, m)

    def _on_have(self, link: Link, m: dict) -> None:
        for e in m["entries"]:
            held = set(range(e["pieces"])) if e["state"] == 2 else set()
            if e["state"] == 1:
                held = {i for i in range(e["pieces"]) if e["bitmap"][i // 8] >> (7 - i % 8) & 1}
            self.holds[link.peer, e["segment"]] = held
        self.changed.set()

    def _on_certificate(self, link: Link, m: dict) -> None:
        segment = self.segments.get(m["segment"])
        if segment is None or segment.certificate is not None:
            return
        t = self.tracker
        try:
            segment.certificate = certificate.verify(m["certificate"], self.site.name, segment.name, t.keys, t.revocations, t.now_ms())
        except certificate.Refused as refused:
            self.problems.append(f"certificate of {segment.name} from {link.role}: {refused}")
        self.changed.set()

    def _on_data(self, link: Link, m: dict) -> None:
        asked = self.asked.get(m["request"])
        if asked is None or asked.link is not link:
            return
        asked.parts[m["offset"]] = m["payload"]
        c = asked.segment.certificate
        if sum(map(len, asked.parts.values())) < c.piece_length(asked.piece):
            return
        del self.asked[m["request"]]
        piece = b"".join(asked.parts[o] for o in sorted(asked.parts))
        if not c.verify_piece(asked.piece, piece):
            self.problems.append(f"bad piece {asked.piece} of {asked.segment.name} from {link.role}")
            self._spawn(link.close(6))
            return
        asked.segment.pieces[asked.piece] = piece
        self.taken[f"{link.role} {link.peer.hex()}"] += len(piece)
        if asked.segment.complete():
            self._announce([asked.segment], list(self.links.values()))
        self.changed.set()

    def _on_reject(self, link: Link, m: dict) -> None:
        for i in m["ids"]:
            self.asked.pop(i, None)

    # Serving.

    def _on_certificate_request(self, link: Link, m: dict) -> None:
        for i in m["segments"]:
            segment = self.segments.get(i)
            if segment and segment.certificate:
                link.send({"type": "certificate", "segment": i, "certificate": segment.certificate.raw})
            else:
                link.send({"type": "certificate-none", "segment": i, "reason": 0, "object_length": 0})

    def _on_request(self, link: Link, m: dict) -> None:
        segment = self.segments.get(m["segment"])
        # A sender without the background transport's controller has no background lane.
        refused = [q["id"] for q in m["requests"]] if m["lane"] else []
        missing = [q["id"] for q in m["requests"] if not m["lane"] and not (segment and q["piece"] in segment.pieces)]
        for reason, ids in ((4, refused), (0, missing)):
            if ids:
                link.send({"type": "reject", "reason": reason, "ids": ids})
        served = [q for q in m["requests"] if q["id"] not in refused + missing]
        if served:
            self._spawn(self._serve(link, segment, served))

    async def _serve(self, link: Link, segment: Segment, requests: list[dict]) -> None:
        for q in requests:
            await link.send_data(q["id"], segment.pieces[q["piece"]])
            self.served[f"{link.role} {link.peer.hex()}"] += len(segment.pieces[q["piece"]])

    def _spawn(self, coroutine) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception():
            self.problems.append(f"{type(task.exception()).__name__}: {task.exception()}")
