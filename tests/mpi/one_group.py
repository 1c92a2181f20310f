"""A host whose job is to share a group and port with other jobs: its firewall hands what comes there to the job's own group, and sends
what the job sends to its own group there.

Usage: one_group.py GROUP PORT, as root on a host of a lab whose job uses multicast. It is a member of the shared group until its
standard input ends, and prints a line when it has become one.
"""

import socket
import subprocess
import sys

INTERFACE = "e0"
IP_ADD_MEMBERSHIP = 35

shared_group, shared_port = sys.argv[1:]
with open("/proc/net/udp") as sockets:
    bound = [line.split()[1].split(":") for line in sockets][1:]
# Addresses are numbers of this machine, which is little-endian.
bound = [(bytes.fromhex(address)[::-1], int(port, 16)) for address, port in bound]
own = [(socket.inet_ntoa(address), port) for address, port in bound if address[0] == 239]
if len(own) != 1:
    sys.exit(f"expected one socket of a group, found {own}")
group, port = own[0]
rules = f"""table ip shared {{
    chain out {{
        type filter hook postrouting priority 0;
        ip daddr {group} udp dport {port} udp dport set {shared_port} ip daddr set {shared_group};
    }}
    chain back {{
        type filter hook prerouting priority -300;
        ip daddr {shared_group} udp dport {shared_port} udp dport set {port} ip daddr set {group};
    }}
}}"""
subprocess.run(["nft", rules], check=True)
member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
index = socket.if_nametoindex(INTERFACE).to_bytes(4, sys.byteorder)
# Its switch forwards the shared group to this host from now on.
member.setsockopt(socket.IPPROTO_IP, IP_ADD_MEMBERSHIP, socket.inet_aton(shared_group) + bytes(4) + index)
print("joined", flush=True)
sys.stdin.read()
