"""A media server that speaks WHIP and WHEP, of aiortc: python media_server.py [PORT]. A stream that is published is counted, and viewers get a picture."""

import asyncio
import http.server
import json
import sys
import threading

from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack


class MediaServer:
    """POST /whip and /whep take an offer; DELETE of the resource ends a session. `counts` has what went on."""

    def __init__(self, port: int = 0):
        self.counts = {"published": 0, "watched": 0, "deleted": 0, "packets": 0}
        self._sessions: dict[str, RTCPeerConnection] = {}
        self._loop = asyncio.new_event_loop()
        self._runner = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner.start()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def _answer(self, status: int, body: bytes = b"", **headers: str):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                offer = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                if self.path not in ("/whip", "/whep") or self.headers.get("Content-Type") != "application/sdp":
                    return self._answer(404)
                name, answer = server._run(server._open(self.path == "/whip", offer))
                self._answer(201, answer.encode(), Location=f"/sessions/{name}", Content_Type="application/sdp")

            def do_DELETE(self):
                done = server._run(server._end(self.path.rsplit("/", 1)[-1]))
                self._answer(200 if done else 404)

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._server.start()
        self.port = self._http.server_address[1]

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self, publishes: bool, offer: str) -> tuple[str, str]:
        connection = RTCPeerConnection()
        name = str(len(self._sessions))
        self._sessions[name] = connection
        self.counts["published" if publishes else "watched"] += 1
        if not publishes:
            connection.addTrack(VideoStreamTrack())
        await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await connection.setLocalDescription(await connection.createAnswer())
        return name, connection.localDescription.sdp

    async def _end(self, name: str) -> bool:
        connection = self._sessions.get(name)
        if connection is None:
            return False
        for receiver in connection.getReceivers():
            for report in (await receiver.getStats()).values():
                if report.type == "inbound-rtp":
                    self.counts["packets"] += report.packetsReceived
        await connection.close()
        self.counts["deleted"] += 1
        return True

    def close(self):
        async def all_of_them():
            await asyncio.gather(*(one.close() for one in self._sessions.values()))

        self._http.shutdown()
        self._http.server_close()
        self._server.join()
        self._run(all_of_them())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._runner.join()
        self._loop.close()


if __name__ == "__main__":
    media = MediaServer(int(sys.argv[1]) if len(sys.argv) > 1 else 8889)
    print(f"http://127.0.0.1:{media.port}/whip and /whep; Ctrl-C ends it", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        media.close()
        print(json.dumps(media.counts))
