"""A host that hears multicast and sends it again: as it was, changed, and as fast as it can.

Usage: hostile.py SECONDS SEED, as root on a host of a lab. Prints `HOSTILE sent=N`.
"""

import random
import socket
import struct
import sys
import time

INTERFACE = "e0"
UDP = 17
KEPT = 64

until = time.monotonic() + float(sys.argv[1])
draw = random.Random(int(sys.argv[2]))
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
wire.bind((INTERFACE, 0))
wire.settimeout(0.05)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", bytes(4), bytes(4), socket.if_nametoindex(INTERFACE)))
out.setblocking(False)

heard = []
sent = 0


def changed(payload):
    """The datagram with a byte flipped, its end cut off, or something behind it."""
    payload = bytearray(payload)
    how = draw.randrange(3)
    if how == 0 and payload:
        payload[draw.randrange(len(payload))] ^= 1 << draw.randrange(8)
    elif how == 1:
        del payload[draw.randrange(len(payload) + 1) :]
    else:
        payload += draw.randbytes(draw.randrange(1, 64))
    return bytes(payload[:1472])


while time.monotonic() < until:
    try:
        packet = wire.recv(65536)
        header = (packet[0] & 15) * 4
        target = packet[16:20]
        # Our own come back from the interface, too: they are what is sent again then, which is no harm.
        if packet[9] == UDP and 224 <= target[0] < 240:
            port = struct.unpack("!H", packet[header + 2 : header + 4])[0]
            heard.append((socket.inet_ntoa(target), port, packet[header + 8 :][:1472]))
            del heard[:-KEPT]
    except TimeoutError:
        pass
    for _ in range(min(len(heard), 8)):
        group, port, payload = draw.choice(heard)
        datagram = payload if draw.random() < 0.4 else changed(payload)
        try:
            out.sendto(datagram, (group, port))
            sent += 1
        except OSError:
            pass
print(f"HOSTILE sent={sent}", flush=True)
