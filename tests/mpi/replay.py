"""A host that sends to one job's group and port what it has heard of another job: all of it, in the names of those who had sent it.

Usage: replay.py record|send FILE GROUP PORT, as root on a host of a lab. `record` keeps what comes until its standard input ends, and prints
`recorded N`. `send` sends that again and again until its standard input ends: as it was, and, as soon as it has heard the job that it
sends to, every second time with that job's number in place of the other's. `record` prints a line when it has begun, `send` when it has sent all of
it, and again when it has sent as much with the other number, and at last `REPLAY sent=N renamed=N`.
"""

import select
import socket
import struct
import sys
import time

INTERFACE = "e0"
UDP = 17
JOB = slice(4, 8)
MOST = 5000
IN_A_ROW = 32

what, file, group, port = sys.argv[1:]
group, port = socket.inet_aton(group), int(port)
index = socket.if_nametoindex(INTERFACE)
member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + struct.pack("=4si", bytes(4), index))
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
wire.bind((INTERFACE, 0))


def heard(longest):
    """Datagrams to the group and port from other hosts, as (address of the sender, port of the sender, payload); None when nobody wants more."""
    ready, _, _ = select.select([wire, sys.stdin], [], [], longest)
    if sys.stdin in ready:
        return None
    if wire not in ready:
        return []
    packet, sender = wire.recvfrom(65536)
    header = (packet[0] & 15) * 4
    ports = struct.unpack("!HH", packet[header : header + 4])
    is_other = sender[2] != socket.PACKET_OUTGOING
    if is_other and packet[9] == UDP and packet[16:20] == group and ports[1] == port:
        length = struct.unpack("!H", packet[header + 4 : header + 6])[0]
        return [(packet[12:16], ports[0], packet[header + 8 : header + length])]
    return []


def record():
    kept = []
    print("recording", flush=True)
    while (more := heard(None)) is not None:
        kept += more
        del kept[MOST:]
    with open(file, "wb") as out:
        for sender, sender_port, payload in kept:
            out.write(struct.pack("!4sHH", sender, sender_port, len(payload)) + payload)
    print(f"recorded {len(kept)}", flush=True)


def read():
    kept = []
    with open(file, "rb") as source:
        while head := source.read(8):
            sender, sender_port, length = struct.unpack("!4sHH", head)
            kept.append((sender, sender_port, source.read(length)))
    return kept


def send():
    kept = read()
    jobs = {payload[JOB] for _, _, payload in kept}
    out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", bytes(4), bytes(4), index))
    sent, renamed, target = 0, 0, None
    for at in range(sys.maxsize):
        sender, sender_port, payload = kept[at % len(kept)]
        if at % IN_A_ROW == 0:
            more = heard(0.001)
            if more is None:
                break
            others = [payload[JOB] for _, _, payload in more if payload[JOB] not in jobs]
            target = others[0] if others else target
        if target and at // len(kept) % 2:
            payload = payload[:4] + target + payload[8:]
            renamed += 1
            if renamed == len(kept):
                print("renaming", flush=True)
        # The kernel fills in lengths and the sum over the header; a UDP sum of 0 is none.
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 1, UDP, 0, sender, group)
        try:
            out.sendto(ip + struct.pack("!HHHH", sender_port, port, 8 + len(payload), 0) + payload, (socket.inet_ntoa(group), 0))
            sent += 1
        except OSError:
            time.sleep(0.001)
        if at == len(kept):
            print("sending", flush=True)
    print(f"REPLAY sent={sent} renamed={renamed}", flush=True)


{"record": record, "send": send}[what]()
