"""Clients of `leeway-lab load run` publish to and watch a media server that shares no code with them."""

import json
import os
import socket
import subprocess
import tempfile
import unittest

from media_server import MediaServer

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "..")

SCENARIO = """
name: media
groups:
  - { name: publisher, behavior: whip, clients: 1, endpoint: "http://127.0.0.1:${port}/whip", bitrate: 300000, hold: 12s }
  - { name: viewers, behavior: whep, clients: 2, endpoint: "http://127.0.0.1:${port}/whep", after: 1s, ramp_up: 1s, hold: 8s }
thresholds: [ "failed_ratio<=0", "lost_ratio<=0" ]
"""


def own_address() -> str | None:
    """This machine's address on a network: aioice takes no candidates of loopback. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


class TestMediaServer(unittest.TestCase):
    def test_publish_and_watch(self):
        address = own_address()
        if address is None:
            self.skipTest("this machine has no network, and aiortc no candidates without one")
        media = MediaServer()
        with tempfile.TemporaryDirectory() as folder:
            lab, scenario, result = (os.path.join(folder, name) for name in ("leeway-lab", "media.yaml", "result.json"))
            subprocess.run(["go", "build", "-o", lab, "./cmd/leeway-lab"], cwd=ROOT, check=True)
            with open(scenario, "w", encoding="utf-8") as file:
                file.write(SCENARIO)
            command = [lab, "load", "run", "--arms-at", address, "--set", f"port={media.port}", "--json", result, scenario]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            media.close()
            # 3 is no verdict: a machine that is busy spoils a run, and its clients are counted all the same.
            self.assertIn(ended.returncode, (0, 3), ended.stdout + ended.stderr)
            with open(result, encoding="utf-8") as file:
                told = json.load(file)
        self.assertEqual((told["clients"]["Opened"], told["clients"]["Failed"]), (3, 0), ended.stdout + ended.stderr)
        self.assertGreater(max(sample["received_bps"] for sample in told["samples"]), 1000)
        self.assertEqual((media.counts["published"], media.counts["watched"], media.counts["deleted"]), (1, 2, 3))
        self.assertGreater(media.counts["packets"], 10)


if __name__ == "__main__":
    unittest.main()
