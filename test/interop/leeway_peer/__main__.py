"""python -m leeway_peer --help"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import urllib.request
from urllib.parse import urljoin

from .peer import Peer


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(
        prog="leeway_peer",
        description="Takes the first segments of a playlist from peers of one role, checks them, and serves them on. "
        "Prints one JSON line when it has them, and another at the end.",
    )
    p.add_argument("--tracker", required=True, help="the tracker, ws://HOST:PORT/")
    p.add_argument("--origin", required=True, help="the page's origin, sent with the handshake")
    p.add_argument("--site", required=True)
    p.add_argument("--manifest", required=True, help="URL of the manifest, which names the title")
    p.add_argument("--playlist", required=True, help="URL of the playlist whose segments are taken")
    p.add_argument("--segments", type=int, default=3, help="how many of its first segments (3)")
    p.add_argument("--from", dest="source", choices=["seed", "viewer"], default="seed", help="the role of the peers that it takes from")
    p.add_argument("--within", type=float, default=30, help="seconds that taking may last (30)")
    p.add_argument("--serve", type=float, default=0, help="seconds for which it serves afterwards (0)")
    return p.parse_args()


def segments_of(playlist: str, count: int) -> list[str]:
    """URLs of a media playlist's first segments, by its lines alone."""
    with urllib.request.urlopen(playlist, timeout=10) as response:
        lines = response.read().decode().splitlines()
    return [urljoin(playlist, line) for line in lines if line and not line.startswith("#")][:count]


async def run(args: argparse.Namespace) -> int:
    peer = Peer(args.source)
    await peer.start(args.tracker, args.origin, args.site, args.manifest)
    peer.want(await asyncio.to_thread(segments_of, args.playlist, args.segments))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    whole = True
    try:
        await asyncio.wait_for(peer.take(), args.within)
    except TimeoutError:
        whole = False
    print(json.dumps(peer.report()), flush=True)
    if whole and args.serve:
        try:
            await asyncio.wait_for(stop.wait(), args.serve)
        except TimeoutError:
            pass
        print(json.dumps(peer.report()), flush=True)
    await peer.close()
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run(parse())))
