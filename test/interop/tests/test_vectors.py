"""The vectors of spec/vectors, which the Go and the TypeScript tests read as well."""

import json
import unittest
from pathlib import Path

from leeway_peer import certificate, messages, names

VECTORS = Path(__file__).resolve().parents[3] / "spec" / "vectors"


def load(name: str) -> dict:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8", errors="surrogatepass"))


def plain(value):
    """A decoded message as the vectors write it: byte strings in hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def without_defaults(message: dict) -> dict:
    """The vectors leave `pieces` out of an entry that withdraws."""
    if message["type"] == "have":
        message["entries"] = [{k: v for k, v in e.items() if k != "pieces" or v} for e in message["entries"]]
    return message


class Names(unittest.TestCase):
    def test_keys(self):
        vectors = load("site")
        sites = {k: names.Site.of(v) for k, v in vectors["sites"].items()}
        for v in vectors["keys"]:
            with self.subTest(v["name"]):
                url = bytes.fromhex(v["url_hex"]) if "url_hex" in v else v["url"]
                try:
                    got = {"key": names.key_of(sites[v["site"]], url)}
                except names.BadName as error:
                    got = {"error": str(error)}
                self.assertEqual(got, {k: v[k] for k in ("key", "error") if k in v})

    def test_titles_without_an_explicit_one(self):
        vectors = load("site")
        for v in vectors["titles"]:
            if "explicit" in v:
                continue
            with self.subTest(v["name"]):
                try:
                    got = {"title": names.title_of(names.Site.of(vectors["sites"][v["site"]]), v["key"])}
                except names.BadName as error:
                    got = {"error": str(error)}
                self.assertEqual(got, {k: v[k] for k in ("title", "error") if k in v})

    def test_segments(self):
        for v in load("site")["segments"]:
            self.assertEqual(names.segment_id(v["site"], v["name"]).hex(), v["id"])


class Certificates(unittest.TestCase):
    def setUp(self):
        self.vectors = load("certificate")
        self.keys = {k["name"]: ((bytes.fromhex(k["key_id"]), k["alg"]), bytes.fromhex(k["public"])) for k in self.vectors["keys"]}
        self.raw = {c["name"]: bytes.fromhex(c["hex"]) for c in self.vectors["certificates"]}

    def test_verify(self):
        for v in self.vectors["verify"]:
            with self.subTest(v["name"]):
                raw = self.raw[v["certificate"]] if "certificate" in v else bytes.fromhex(v["hex"])
                revocations = [dict(r, key_id=bytes.fromhex(r["key_id"])) if "key_id" in r else r for r in v["revocations"]]
                keys = dict(self.keys[k] for k in v["keys"])
                try:
                    certificate.verify(raw, v["site"], v["segment"], keys, revocations, v["now_ms"])
                    outcome = "valid"
                except certificate.Refused as refused:
                    outcome = refused.outcome
                self.assertEqual(outcome, v["outcome"])

    def test_malformed_and_cuts(self):
        cuts = [(v["where"], (self.raw[v["certificate"]] + bytes(v["length"]))[: v["length"]], v["outcome"]) for v in self.vectors["cuts"]]
        for name, raw, outcome in cuts + [(v["name"], bytes.fromhex(v["hex"]), v["outcome"]) for v in self.vectors["malformed"]]:
            with self.subTest(name):
                with self.assertRaises(certificate.Refused) as refused:
                    certificate.parse(raw)
                self.assertEqual(refused.exception.outcome, outcome)


class Messages(unittest.TestCase):
    def setUp(self):
        self.vectors = load("peer")

    def test_messages(self):
        for v in self.vectors["messages"]:
            with self.subTest(v["name"]):
                raw = bytes.fromhex(v["hex"])
                m = messages.decode(v["channel"], raw)
                self.assertEqual(without_defaults(plain(m)), without_defaults(v["message"]))
                if not v.get("decode_only"):
                    self.assertEqual(messages.encode(m), raw)

    def test_malformed(self):
        for v in self.vectors["malformed"]:
            with self.subTest(v["name"]):
                with self.assertRaises(messages.Malformed) as refused:
                    messages.decode(v["channel"], bytes.fromhex(v["hex"]), v.get("message", 16_384), v.get("background", False))
                self.assertEqual(str(refused.exception), v["reason"])

    def test_unknown(self):
        for v in self.vectors["unknown"]:
            with self.subTest(v["name"]), self.assertRaises(messages.Unknown):
                messages.decode(v["channel"], bytes.fromhex(v["hex"]), background=False)

    def test_background(self):
        for v in self.vectors["background"]:
            m = messages.decode(messages.DATA, bytes.fromhex(v["hex"]))
            self.assertEqual(plain({k: m[k] for k in v["message"]}), v["message"])
            if int(v["hex"][38:40], 16) < 4:  # flags that this version does not know are not written again
                self.assertEqual(messages.encode(m).hex(), v["hex"])
        for v in self.vectors["acks"]:
            m = messages.decode(messages.ACK, bytes.fromhex(v["hex"]))
            self.assertEqual(plain({k: m[k] for k in v["ack"]}), v["ack"])
            self.assertEqual(messages.encode(m).hex(), v["hex"])
        for v in self.vectors["background_malformed"]:
            with self.subTest(v["name"]), self.assertRaises(messages.Malformed):
                messages.decode(messages.DATA, bytes.fromhex(v["hex"]), v.get("message", 16_384))
        for v in self.vectors["acks_malformed"]:
            with self.subTest(v["name"]), self.assertRaises(messages.Malformed):
                messages.decode(messages.ACK, bytes.fromhex(v["hex"]))

    def test_cuts(self):
        for v in self.vectors["cuts"]:
            payload = messages.cut(v["length"], v["message"])
            self.assertEqual((payload, -(-v["length"] // payload)), (v["payload"], v["messages"]))


if __name__ == "__main__":
    unittest.main()
