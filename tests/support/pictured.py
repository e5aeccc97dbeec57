"""Machines that are no memories, in words as people have them: what must be drawn and exported right."""

from __future__ import annotations

from syncedmem.model.declaration import Action, Head, Machine, Row

__all__ = ["H11", "LIFT", "OFFLOAD", "ORDER", "PICTURED", "SHOP", "SPELLING", "TLS", "VENDING", "WORDS"]

SHOP = Machine(
    "web shop",
    [
        Row("add, once more", ["empty cart", "full cart"], "full cart", do="reserve item"),
        Row("check out", "full cart", "paying", do=["freeze cart", "ask bank"]),
        Row("check out", "empty cart", refused="nothing to buy"),
        Row("bank says yes", "paying", "shipped", do="send parcel"),
        Row("bank says no", "paying", "full cart"),
        Row("cancel", ["full cart", "paying"], "empty cart", do="release items"),
    ],
    title="An order in a web shop",
)

TLS = Machine(
    "tls13",
    [
        Row("ClientHello", "START", "RECVD_CH"),
        Row("select parameters", "RECVD_CH", "NEGOTIATED"),
        Row("HelloRetryRequest", "RECVD_CH", "START"),
        Row("send server flight", "NEGOTIATED", "WAIT_EOED", when="early data", do=["ServerHello", "Finished"]),
        Row("send server flight", "NEGOTIATED", "WAIT_FLIGHT2", unless="early data", do=["ServerHello", "Finished"]),
        Row("EndOfEarlyData", "WAIT_EOED", "WAIT_FLIGHT2"),
        Row("continue", "WAIT_FLIGHT2", "WAIT_FINISHED", unless="client auth"),
        Row("continue", "WAIT_FLIGHT2", "WAIT_CERT", when="client auth"),
        Row("Certificate (empty)", "WAIT_CERT", "WAIT_FINISHED"),
        Row("Certificate", "WAIT_CERT", "WAIT_CV"),
        Row("CertificateVerify", "WAIT_CV", "WAIT_FINISHED"),
        Row("Finished", "WAIT_FINISHED", "CONNECTED", do="K_recv = application"),
        Row("KeyUpdate", "CONNECTED", do="next generation"),
    ],
    title="TLS 1.3, the server",
)

_H11 = ["IDLE", "SEND_BODY", "DONE", "MUST_CLOSE", "CLOSED", "MIGHT_SWITCH", "SWITCHED", "ERROR"]
H11 = Machine(
    "h11_client",
    [
        Row("Request", "IDLE", "SEND_BODY"),
        Row("Data", "SEND_BODY"),
        Row("EndOfMessage", "SEND_BODY", "DONE", unless=["close", "switch"]),
        Row("EndOfMessage", "SEND_BODY", "MUST_CLOSE", when="close", unless="switch"),
        Row("EndOfMessage", "SEND_BODY", "MIGHT_SWITCH", when="switch"),
        Row("propose switch", "IDLE", do="remember switch"),
        Row("Connection: close", ["IDLE", "SEND_BODY"], do="remember close"),
        Row("start_next_cycle", "DONE", "IDLE"),
        Row("switch accepted", "MIGHT_SWITCH", "SWITCHED"),
        Row("switch denied", "MIGHT_SWITCH", "DONE", do="forget switch"),
        Row("ConnectionClosed", ["IDLE", "DONE", "MUST_CLOSE"], "CLOSED"),
        Row("ConnectionClosed", "CLOSED"),
        Row("LocalProtocolError", _H11[:-1], "ERROR"),
    ],
    heads=_H11,
    facts=["close", "switch"],
    actions=[
        Action("remember switch", sets=("switch",)),
        Action("forget switch", clears=("switch",)),
        Action("remember close", sets=("close",)),
    ],
)

OFFLOAD = Machine(
    "offload",
    [
        Row("write", ["NEW", "CPU", "BOTH"], "CPU"),
        Row("write", "GPU", "CPU", do="to host"),
        Row("read", "GPU", "BOTH", do="to host"),
        Row("launch", ["NEW", "GPU", "BOTH"], "GPU"),
        Row("launch", "CPU", "GPU", do="to device"),
        Row("look", "CPU", "BOTH", do="to device"),
        Row("fill", ["NEW", "CPU", "GPU", "BOTH"], "GPU"),
    ],
    heads=[Head("NEW"), Head("CPU", ("host",)), Head("GPU", ("device",)), Head("BOTH", ("host", "device"))],
    actions=[
        Action("to host", "copy", side="host", source="device"),
        Action("to device", "copy", side="device", source="host"),
    ],
)


def _vending() -> Machine:
    rows: list[Row] = []
    for have in range(0, 35, 5):
        at = f"{have}c" if have < 30 else "PAID"
        for coin in (5, 10, 20):
            new = have + coin
            to = "PAID" if new >= 30 else f"{new}c"
            rows.append(Row(f"coin {coin}", at, None if have >= 30 else to, do="return coin" if have >= 30 else ()))
        rows.append(Row("cancel", at, "0c" if have else None, do="refund" if have else ()))
    ways = {"select": ("PAID", "VENDING"), "dropped": ("VENDING", "0c"), "jammed": ("VENDING", "OUT OF ORDER")}
    rows += [Row(call, *way) for call, way in (ways | {"service": ("OUT OF ORDER", "0c")}).items()]
    return Machine("vending", rows)


VENDING = _vending()

LIFT = Machine(
    "lift",
    [Row("up", f"floor {n}", f"floor {n + 1}") for n in range(4)]
    + [Row("down", f"floor {n + 1}", f"floor {n}") for n in range(4)]
    + [Row("timeout", f"floor {n}", "floor 0", do="close doors") for n in range(2, 5)],
)

ORDER = Machine(
    "order",
    [Row(f"step {n}", f"S{n}", f"S{n + 1}") for n in range(26)]
    + [Row("timeout", f"S{n}", "S26") for n in range(0, 26, 3)]
    + [Row("back", f"S{n}", f"S{n // 2}") for n in range(4, 26, 4)],
)
"""27 states."""

WORDS = Machine(
    "class",
    [
        Row("direction LR", "scale", "href"),
        Row("note right of A", "href", "accTitle: x", do="set direction TB now"),
        Row("__call__", "accTitle: x", "root", do="_x_ and __y__"),
        Row("toString", "root", "constructor"),
        Row("classDef x fill:red", "constructor", "__proto__"),
        Row("[e](f)", "__proto__", "__init__"),
        Row("<<<->>> -- ---", "__init__", "1. first", do="# head"),
        Row("- list", "1. first", "scale"),
    ],
)
"""Words that mean something to Mermaid, to Markdown, to JavaScript or to TeX."""

SPELLING = Machine(
    "spelling",
    [
        Row(
            "\u0645\u06cc\u200c\u0631\u0648\u0645",
            "\u062e\u0627\u0646\u0647",
            "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627",
        ),
        Row(
            "\U0001f469\u200d\U0001f52c looks", "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627", "\u062e\u0627\u0646\u0647"
        ),
    ],
)
"""Words with joiners, which have no ink."""

PICTURED = (SHOP, TLS, H11, OFFLOAD, VENDING, LIFT, ORDER, WORDS, SPELLING)
