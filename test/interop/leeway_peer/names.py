"""Keys, titles and segment IDs (spec/site.md)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

PIECE = 16_384  # bytes
MAX_KEY = 1_024  # bytes
MAX_TITLE = 512  # bytes

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH = _UNRESERVED | frozenset(b"!$&'()*+,;=:@/")
_QUERY = _PATH | frozenset(b"?")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_DEFAULT_PORT = {b"http": b"80", b"https": b"443"}


class BadName(ValueError):
    """A URL that the key rule refuses; its text is one of the rule's errors."""


@dataclass(frozen=True)
class Site:
    """The part of a site's configuration that names depend on."""

    name: str
    hosts: tuple[str, ...]
    ignore_query: tuple[str, ...] = ()
    ignore_path: tuple[str, ...] = ()
    path: str = ""
    drop: int = 0

    @staticmethod
    def of(config: dict) -> "Site":
        key = config.get("key") or {}
        title = config.get("title") or {}
        return Site(
            config["name"],
            tuple(config["hosts"]),
            tuple(key.get("ignore_query") or ()),
            tuple(key.get("ignore_path") or ()),
            key.get("path") or "",
            title.get("drop") or 0,
        )


def key_of(site: Site, url: str | bytes) -> str:
    """The key of an absolute URL, by the steps of the key rule; raises BadName."""
    raw = url if isinstance(url, bytes) else url.encode("utf-8", "surrogatepass")
    raw = raw.split(b"#", 1)[0]
    match = re.match(rb"(?i)(https?)://", raw)
    if not match:
        raise BadName("not-http")
    scheme, rest = match[1].lower(), raw[match.end() :]
    end = min((i for i in (rest.find(b"/"), rest.find(b"?")) if i >= 0), default=len(rest))
    authority, rest = rest[:end], rest[end:]
    if b"@" in authority:
        raise BadName("credentials")
    if _host(scheme, authority) not in [h.encode() for h in site.hosts]:
        raise BadName("foreign-host")
    path, _, query = rest.partition(b"?")
    for part in (path, query):
        if any(b < 0x20 or b == 0x7F or b == 0x5C for b in part) or not _utf8(part):
            raise BadName("bad-path")
    path = _without_ignored(_without_dots(_percent(path or b"/", _PATH)), site.ignore_path)
    path = _without_tokens(path, site.path)
    key = path
    if kept := _query(query, site.ignore_query):
        key += b"?" + kept
    if len(key) > MAX_KEY:
        raise BadName("too-long")
    return key.decode("ascii")


def _host(scheme: bytes, authority: bytes) -> bytes:
    lower = bytes(b + 32 if 65 <= b <= 90 else b for b in authority)
    for port in (b":" + _DEFAULT_PORT[scheme], b":"):
        if lower.endswith(port):
            return lower[: -len(port)]
    return lower


def _utf8(part: bytes) -> bool:
    try:
        part.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _percent(part: bytes, allowed: frozenset[int]) -> bytes:
    out = bytearray()
    i = 0
    while i < len(part):
        b = part[i]
        if b == 0x25 and len(part) > i + 2 and part[i + 1] in _HEX and part[i + 2] in _HEX:
            value = int(part[i + 1 : i + 3], 16)
            out += bytes([value]) if value in _UNRESERVED else b"%%%02X" % value
            i += 3
            continue
        out += bytes([b]) if b in allowed else b"%%%02X" % b
        i += 1
    return bytes(out)


def _without_dots(path: bytes) -> bytes:
    """RFC 3986, section 5.2.4, of a path that begins with a slash."""
    out: list[bytes] = []
    elements = path.split(b"/")[1:]
    for i, element in enumerate(elements):
        last = i == len(elements) - 1
        if element == b"..":
            if out:
                out.pop()
        elif element != b".":
            out.append(element)
            continue
        if last:
            out.append(b"")
    return b"/" + b"/".join(out)


def _without_ignored(path: bytes, ignored: tuple[str, ...]) -> bytes:
    elements = path.decode("ascii").split("/")[1:]
    kept = [e for e in elements[:-1] if not _listed(ignored, e)]
    return ("/" + "/".join(kept + elements[-1:])).encode()


def _listed(names: tuple[str, ...], name: str) -> bool:
    return any(name.startswith(n[:-1]) if n.endswith("*") else name == n for n in names)


def _without_tokens(path: bytes, pattern: str) -> bytes:
    if not pattern:
        return path
    want = pattern.encode().split(b"/")[1:-1]
    have = path.split(b"/")[1:]
    if len(have) <= len(want):
        return path
    kept = []
    for w, h in zip(want, have):
        if w == b"{}":
            if not h:
                return path
            continue
        if w != h:
            return path
        kept.append(h)
    return b"/" + b"/".join(kept + have[len(want) :])


def _query(query: bytes, ignored: tuple[str, ...]) -> bytes:
    parts = []
    for part in query.split(b"&"):
        if not part:
            continue
        part = _percent(part, _QUERY)
        name = part.split(b"=", 1)[0].decode("ascii")
        if not _listed(ignored, name):
            parts.append((name, part))
    parts.sort(key=lambda p: p[0])
    return b"&".join(p for _, p in parts)


def title_of(site: Site, key: str) -> str:
    """The title of a manifest's key, without an explicit one."""
    if not key.startswith("/"):
        raise BadName("bad-path")
    path, mark, query = key.partition("?")
    for _ in range(1 + site.drop):
        path = path.rpartition("/")[0]
    title = (path or "/") + mark + query
    if len(title.encode()) > MAX_TITLE:
        raise BadName("too-long")
    return title


def segment_id(site: str, name: str) -> bytes:
    """The 16 bytes by which peers call a segment."""
    return hashlib.sha256(b"leeway segment v1\0" + site.encode() + b"\0" + name.encode()).digest()[:16]


def pieces_of(length: int) -> int:
    """How many pieces a segment of so many bytes has."""
    return -(-length // PIECE)
