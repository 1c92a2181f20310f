"""A host that sends small datagrams to a group and port.

Usage: flood.py SECONDS GROUP PORT RATE [KIND], as root on a host of a lab; RATE is datagrams per second at most, KIND is `foreign` (of no
job) or `torn` (too short to tell). On a host that is a member /proc/net/udp has group and port. Prints `flooding` when the first are on their way, and at last
`FLOOD sent=N seconds=S`.
"""

import socket
import struct
import sys
import time

INTERFACE = "e0"
UDP_SEGMENT = 103
BYTES = {"foreign": 32, "torn": 3}[sys.argv[5] if len(sys.argv) > 5 else "foreign"]
IN_ONE_CALL = 64

target = (sys.argv[2], int(sys.argv[3]))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", bytes(4), bytes(4), socket.if_nametoindex(INTERFACE)))
out.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, BYTES)
row = bytes(BYTES * IN_ONE_CALL)
sent, began = 0, time.monotonic()
until = began + float(sys.argv[1])
rate = float(sys.argv[4])
while (now := time.monotonic()) < until:
    if sent > (now - began) * rate:
        time.sleep(0.0001)
        continue
    try:
        out.sendto(row, target)
        if not sent:
            print("flooding", flush=True)
        sent += IN_ONE_CALL
    except OSError:
        pass
print(f"FLOOD sent={sent} seconds={time.monotonic() - began:.3f}")
