"""The page of a machine: NAME.md, from what measure-machine.py keeps in NAME.json."""

from machine_facts import who

COLLECTIVES = ["bcast", "scatter", "gather", "allgather", "alltoall", "reduce", "allreduce", "barrier"]
LETTERS = {"cells": "c", "direct": "d", "two-level": "s"}
# The part by which one way has to be slower than another beyond both intervals to be named.
MARGIN = 0.03
# Repetitions without which a median has no interval.
FEW = 6
# Rows of the list of what the default misses; the tables above it have all.
MOST_ROWS = 30

NODE = """## On the node

In a cell: stock's median · how many times as fast polycast is by default (`left`: the MPI serves) · and by the fastest way that was forced,
(c)ells, (d)irect or (s)treams (`two-level`), bold where it is faster beyond both intervals. `?`: too few calls that all ranks began in time.
A size is that of the largest buffer of a rank.
"""
LABS = """## Between hosts of a lab

A rank on each host. A lab's links are this machine's work, too: `?` where it does not carry them all at once.
"""
COSTS = """## Processor time of a broadcast between two hosts

Nanoseconds per byte by `getrusage`, outside the kernel + in it, in a lab of two hosts whose link is no limit. What the kernel does for one rank may
be counted for the other: both ends of the link are here.
"""
COMPONENTS = """## Other components of the MPI

Stock in jobs that have another component before all others, and in jobs without; and polycast's fastest way in the latter.
"""


def size(number):
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number} B"


def microseconds(us):
    for limit, unit, name in ((1e3, 1, "µs"), (1e6, 1e3, "ms"), (float("inf"), 1e6, "s")):
        if us < limit:
            value = us / unit
            return f"{value:.3g} {name}" if value < 100 else f"{value:.0f} {name}"
    raise ValueError(us)


def median(way):
    return way["us"][0]


def is_faster(way, other):
    """Beyond both intervals, or where there are none by half."""
    if len(way["us"]) == len(other["us"]) == 3:
        return way["us"][2] < other["us"][1]
    return median(way) < median(other) / 1.5


def is_sparse(point):
    return any("late" in way or way["samples"] < FEW for way in point["ways"].values())


def is_doubtful(point):
    return "doubt" in point or is_sparse(point)


def times_as_fast(point, name):
    """How many times as fast as stock: by pairs of calls where these tell, else by the medians."""
    way, stock = point["ways"][name], point["ways"].get("stock")
    if "times" in way:
        return way["times"][0]
    return median(stock) / median(way) if stock else float("nan")


def best(point, names):
    return min(names, key=lambda name: median(point["ways"][name])) if names else None


def forced(point):
    return [name for name in point["ways"] if name not in ("stock", "polycast")]


def cell(point):
    if point is None or "stock" not in point["ways"]:
        return "–"
    parts = [microseconds(median(point["ways"]["stock"]))]
    if "polycast" in point["ways"]:
        is_left = point["ways"]["polycast"]["by"] == "stock"
        parts.append("left" if is_left else f"{times_as_fast(point, 'polycast'):.2f}")
    name = best(point, forced(point))
    if name:
        text = f"{times_as_fast(point, name):.2f} {LETTERS.get(name, name)}"
        parts.append(f"**{text}**" if is_faster(point["ways"][name], point["ways"]["stock"]) else text)
    return " · ".join(parts) + (" ?" if is_doubtful(point) else "")


def table(points):
    """A row for each collective, a column for each size."""
    by_place = {(point["collective"], point["bytes"]): point for point in points}
    sizes = sorted({point["bytes"] for point in points if point["collective"] != "barrier"})
    lines = []
    if sizes:
        lines += ["| | " + " | ".join(map(size, sizes)) + " |", "|---|" + "---|" * len(sizes)]
        for collective in COLLECTIVES[:-1]:
            row = [by_place.get((collective, bytes)) for bytes in sizes]
            if any(row):
                lines.append(f"| `{collective}` | " + " | ".join(map(cell, row)) + " |")
    barrier = by_place.get(("barrier", 0))
    return lines + (["", f"`barrier`: {cell(barrier)}"] if barrier else [])


def grouped(points, key):
    groups = {}
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return groups


def where(point):
    return f"{point['mpi']}, {point['ranks']} ranks, {'bound' if point['bound'] else 'not bound'}"


def node_lines(points, mpis):
    def order(point):
        return mpis.index(point["mpi"]) if point["mpi"] in mpis else len(mpis), not point["bound"], -point["ranks"]

    lines = [NODE.rstrip()] if points else []
    for title, some in grouped(sorted(points, key=order), where).items():
        lines += ["", f"### {title}", ""] + table(some)
    return lines


def missed(point):
    """By how many times the default is slower than the fastest way, and which that is; None where it is not, beyond both intervals."""
    default = point["ways"]["polycast"]
    name = best(point, [name for name in point["ways"] if name != "polycast"])
    ratio = median(default) / median(point["ways"][name])
    # What the same way took twice is the spread of the measurement.
    is_same = default["by"].split(":")[0] == name.split(":")[0]
    return (ratio, point, name) if not is_same and ratio > 1 + MARGIN and is_faster(point["ways"][name], default) else None


def default_lines(points):
    """Where the default is slower than the MPI, and where another way is faster than the default."""
    compared = [point for point in points if {"polycast", "stock"} <= point["ways"].keys() and not is_doubtful(point)]
    if not compared:
        return []
    slower = [point for point in compared if len(point["ways"]["polycast"].get("times", [])) == 3 and point["ways"]["polycast"]["times"][2] < 1 - MARGIN]
    found = sorted(filter(None, map(missed, compared)), key=lambda found: -found[0])
    lines = ["## What the default misses", "",
             f"Of {len(compared)} points without a `?`: at {len(slower)} the default is slower than the MPI by more than {MARGIN:.0%} with its whole interval; at {len(found)} a "
             f"way that was forced is faster than the default beyond both intervals, at {sum(ratio >= 1.5 for ratio, *_ in found)} 1.5 times or more."]
    if slower:
        lines += ["", "Slower than the MPI:", "", "| where | | stock | the default | times as fast |", "|---|---|---|---|---|"]
    for point in slower:
        default = point["ways"]["polycast"]
        lines.append(f"| {where(point)} | `{point['collective']}` {size(point['bytes'])} | {microseconds(median(point['ways']['stock']))} | {microseconds(median(default))} by "
                     f"`{default['by']}` | {default['times'][0]:.2f} ({default['times'][1]:.2f} to {default['times'][2]:.2f}) |")
    if found:
        lines += ["", "Another way is faster" + (f", the first {MOST_ROWS}:" if len(found) > MOST_ROWS else ":"), "", "| where | | the default | faster | times |", "|---|---|---|---|---|"]
    for ratio, point, name in found[:MOST_ROWS]:
        default = point["ways"]["polycast"]
        lines.append(f"| {where(point)} | `{point['collective']}` {size(point['bytes'])} | {microseconds(median(default))} by `{default['by']}` | "
                     f"{microseconds(median(point['ways'][name]))} by `{name}` | {ratio:.2f} |")
    return lines


def component_lines(points):
    plain = {(point["mpi"], point["collective"], point["ranks"], point["bytes"]): point for point in points if point.get("bound") and not point["component"]}
    lines = []
    for point in points:
        if not point.get("component"):
            continue
        beside = plain.get((point["mpi"], point["collective"], point["ranks"], point["bytes"]))
        name = best(beside, forced(beside)) if beside else None
        own = f"{microseconds(median(beside['ways'][name]))} `{name}`" if name else "–"
        without = microseconds(median(beside["ways"]["stock"])) if beside else "–"
        lines.append(f"| `{point['collective']}` {size(point['bytes'])}, {point['ranks']} ranks | {point['component']} | "
                     f"{microseconds(median(point['ways']['stock']))}{' ?' if is_doubtful(point) else ''} | {without} | {own} |")
    return [COMPONENTS, "| | component | with it | without | polycast |", "|---|---|---|---|---|"] + lines if lines else []


def lab_lines(points):
    lines, sparse = [], [point for point in points if is_sparse(point)]
    for point in points:
        if point in sparse:
            continue
        ways = point["ways"]
        told = ", ".join(f"{times_as_fast(point, name):.2f} `{name}`" for name in forced(point)) or "–"
        default = f"{times_as_fast(point, 'polycast'):.2f} `{ways['polycast']['by']}`" if "polycast" in ways else "–"
        stock = microseconds(median(ways["stock"])) if "stock" in ways else "–"
        calls = min(way["samples"] for way in ways.values())
        lines.append(f"| {point['place']}{' ?' if is_doubtful(point) else ''} | `{point['collective']}` {size(point['bytes'])} | {stock} | {default} | {told} | {calls} |")
    left_out = ["", f"Left out here: {len(sparse)} points of fewer than {FEW} calls that all ranks began in time."] if sparse else []
    return [LABS, "| lab | | stock | default | others | calls |", "|---|---|---|---|---|---|"] + lines + left_out if points else []


def cost_lines(costs):
    lines = []
    for cost in costs:
        told = [f"{cost[rank]['outside_ns_per_byte']:.2f} + {cost[rank]['kernel_ns_per_byte']:.2f}" for rank in ("root", "other")]
        lines.append(f"| {cost['mpi']} | `{cost['way']}` | {cost['calls']} of {size(cost['bytes'])} | {told[0]} | {told[1]} | {cost['gbit_per_s']:.1f} |")
    return [COSTS, "| MPI | by | calls | root | other rank | Gb/s |", "|---|---|---|---|---|---|"] + lines if lines else []


def machine_lines(machine):
    told = {
        "processor": machine["model"] + (", in a virtual machine" if machine["is_virtual"] else ""),
        "processors": f"{machine['processors']}, of {machine['cores']} cores, {machine['packages']} package(s), {machine['memory_nodes']} memory node(s)",
        "memory": f"{machine['memory_gib']} GiB",
        "instructions": ", ".join(machine["instructions"]) or "–",
        "kernel, libc": f"{machine['kernel']}, {machine['libc']}",
    }
    for cache in machine["caches"]:
        kind = "" if cache["kind"] == "unified" else f" {cache['kind']}"
        told[f"L{cache['level']}{kind}"] = f"{cache['size']} for each {cache['processors_each']} processor(s), {cache['how_many']} of them"
    return ["| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in told.items()]


def run_line(run):
    stolen = f", {run['stolen_seconds']} s of processors taken by other machines" if "stolen_seconds" in run else ""
    return f"* {run['began']} UTC, {run.get('seconds', '?')} s: polycast {run['polycast']}, {', '.join(run['mpis'])}; load before {run['load_before']}{stolen}"


def unmeasured_lines(could_not):
    reasons = grouped(could_not, lambda what: what[1])
    return (["## What could not be measured", ""] + [f"* {reason}: {', '.join(what[0] for what in some)}" for reason, some in reasons.items()]) if could_not else []


def page(data):
    points, runs = data["points"], data["runs"]
    node = [point for point in points if point["place"] == "node"]
    plain = [point for point in node if not point["component"]]
    head = [f"# {who(data['machine'])}", "", "Written by `scripts/measure-machine.py` ([how](../benchmarking.md#a-page-of-a-machine)) from the JSON file beside it, which has all intervals.", ""]
    sections = [
        head + machine_lines(data["machine"]) + [""] + list(map(run_line, runs)),
        node_lines(plain, runs[0]["mpis"]),
        default_lines(plain),
        component_lines(node),
        lab_lines([point for point in points if point["place"] != "node"]),
        cost_lines(data["costs"]),
        unmeasured_lines(data["could_not"]),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"
