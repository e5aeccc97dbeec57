"""A connection of TCP, much simplified (RFC 9293, section 3.3.2): it is only drawn, and has no memory behind it."""

from syncedmem.model import Machine, Row

TCP = Machine(
    "tcp",
    title="A connection of TCP",
    rows=[
        Row("passive_open", "CLOSED", "LISTEN"),
        Row("active_open", "CLOSED", "SYN_SENT"),
        Row("syn", "LISTEN", "SYN_RECEIVED"),
        Row("syn", "SYN_SENT", "SYN_RECEIVED"),
        Row("syn_ack", "SYN_SENT", "ESTABLISHED"),
        Row("ack", "SYN_RECEIVED", "ESTABLISHED"),
        Row("close", "ESTABLISHED", "FIN_WAIT"),
        Row("fin", "ESTABLISHED", "CLOSE_WAIT"),
        Row("close", "CLOSE_WAIT", "LAST_ACK"),
        Row("ack", "LAST_ACK", "CLOSED"),
        Row("fin", "FIN_WAIT", "CLOSED"),
    ],
)
