"""How Chromium is told to keep to its proxy, and to itself."""

from __future__ import annotations

ARGUMENTS = (
    # Without this, a proxy is not used for loopback.
    "--proxy-bypass-list=<-loopback>",
    # Names are the proxy's to look up; this is for every way that would not ask it.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-extensions",
    "--no-pings",
    "--no-first-run",
    "--mute-audio",
    "--js-flags=--max-old-space-size=512",
)
