"""What a machine is: processors, caches and memory, as the kernel shows them to this process. No names."""

import glob
import os
import platform
import re

SYSTEM = "/sys/devices/system"


def read(path, otherwise=""):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return otherwise


def listed(text):
    """The numbers of `0-3,8`."""
    numbers = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def caches(usable):
    """One line for each level and kind: what one holds, and how many processors share it."""
    found = {}
    for processor in usable:
        for folder in glob.glob(f"{SYSTEM}/cpu/cpu{processor}/cache/index*"):
            kind = read(folder + "/type").lower()
            shared = frozenset(listed(read(folder + "/shared_cpu_list")) & usable) or frozenset([processor])
            found.setdefault((int(read(folder + "/level", "0")), kind, read(folder + "/size")), set()).add(shared)
    return [
        {"level": level, "kind": kind, "size": size, "how_many": len(groups), "processors_each": max(map(len, groups))}
        for (level, kind, size), groups in sorted(found.items())
        if kind != "instruction"
    ]


def taken_away():
    """Seconds of processors that other virtual machines had in the place of this one, since it began."""
    words = read("/proc/stat").split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK") if len(words) > 8 else 0


def facts():
    usable = os.sched_getaffinity(0)
    information = read("/proc/cpuinfo")
    model = re.search(r"^(?:model name|Processor|cpu model)\s*:\s*(.+)$", information, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", information, re.MULTILINE)
    flags = set(flags.group(1).split()) if flags else set()
    siblings = {read(f"{SYSTEM}/cpu/cpu{processor}/topology/thread_siblings_list", str(processor)) for processor in usable}
    packages = {read(f"{SYSTEM}/cpu/cpu{processor}/topology/physical_package_id", "0") for processor in usable}
    nodes = [node for node in glob.glob(f"{SYSTEM}/node/node[0-9]*/cpulist") if listed(read(node)) & usable]
    memory = re.search(r"^MemTotal:\s*(\d+) kB", read("/proc/meminfo"), re.MULTILINE)
    return {
        "model": re.sub(r"\s+", " ", model.group(1)) if model else platform.machine(),
        "processors": len(usable),
        "cores": len(siblings),
        "packages": len(packages),
        "memory_nodes": max(1, len(nodes)),
        "caches": caches(usable),
        "memory_gib": round(int(memory.group(1)) / 2**20) if memory else None,
        "is_virtual": "hypervisor" in flags,
        "instructions": sorted(flags & {"avx2", "avx512f", "aes", "vaes", "vpclmulqdq", "pclmulqdq", "sve", "asimd"}),
        "kernel": ".".join(platform.release().split("-")[0].split(".")[:2]),
        "libc": " ".join(platform.libc_ver()),
    }


def who(machine):
    return f"{machine['processors']} processors of {machine['model']}"
