#!/usr/bin/env python3
"""Measures in a few minutes how collectives run on this machine: one JSON file and one page, NAME.json and NAME.md.

    scripts/measure-machine.py docs/machines/NAME [--minutes 8] [--mpi MPIEXEC,…] [--tool POLYCAST]

It needs Linux, an MPI, a tree that `make build` has built for it, and no network:

* all collectives on 2, 4, 8 … all processors, bound to them and not: the MPI alone, polycast by default, and its ways forced,
* the MPI with other components of its own (Open MPI's xhc, acoll, sm), where it has them,
* labs of 2, 4 and 8 hosts at 10 and 25 Gb/s, and the processor time per byte of a broadcast between two, where namespaces may be made.

What tells the most comes first; what the time does not suffice for, or fails, is named in both files. The same command goes on where an
earlier one ended. `polycast bench` measures; this script says what, and for how long.
"""

import argparse
import datetime
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from machine_facts import facts, taken_away, who
from machine_page import page

# Those that Debian and others warn about or refuse for root, who may run this in a container.
AS_ROOT = {f"{mpi}_ALLOW_RUN_AS_ROOT{more}": "1" for mpi in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}
NODE_SIZES = "8,1KiB,4KiB,32KiB,256KiB,2MiB"
LAB_SIZES = "64KiB,1MiB,16MiB"
SHARED = ["cells", "direct", "two-level"]
# `direct` is not for what one rank has for all, or nobody has.
WAYS = {
    "bcast": ["cells", "two-level"],
    "allreduce": SHARED,
    "allgather": SHARED,
    "alltoall": SHARED,
    "reduce": SHARED,
    "barrier": ["cells", "two-level"],
    "gather": SHARED,
    "scatter": SHARED,
}
LAB_WAYS = {"bcast": ["multicast-pull", "chain:segment=64KiB"], "allreduce": ["ring:segment=64KiB"], "alltoall": []}
# Components of Open MPI for one node that do not serve by themselves.
COMPONENTS = ["xhc", "acoll", "sm"]
# All processors at once take so many times as long: repetitions in which one of them was disturbed do not count.
MOST_TAKES = 3
# So do calls between hosts, which are long.
LAB_TAKES = 4
COST_BYTES, COST_CALLS = 16 << 20, 40
# A job that has less time than this is not begun.
LEAST_SECONDS = 8
# For a lab and a launcher to come and go.
AROUND_SECONDS = 40


class Task:
    """One command, and the setting that its points are told with."""

    def __init__(self, key, command, limit_seconds, setting, read):
        self.key, self.command, self.setting, self.read = key, command, setting, read
        self.limit_seconds = limit_seconds


def rank_counts(machine):
    """2, 4, 8 … and all processors, the most first, in jobs: the most alone, for what disturbs a processor disturbs all of them, and each
    number above that of cores alone, for there ranks are bound to threads of cores."""
    processors, cores = machine["processors"], machine["cores"]
    counts = sorted({2 ** power for power in range(1, 12) if 2 ** power <= processors} | {max(processors, 2)}, reverse=True)
    alone = [count for count in counts if count == counts[0] or count > cores]
    return [[count] for count in alone] + ([counts[len(alone):]] if len(counts) > len(alone) else [])


def options_of(mpi, cores, ranks, bound):
    """The options by which ranks are bound to a processor each, or not."""
    if mpi["family"] != "openmpi":
        return ("-bind-to hwthread" if ranks > cores else "-bind-to core") if bound else ""
    # Else Open MPI takes cores for all that there is, and lets waiting ranks give way.
    threads = "--use-hwthread-cpus " if ranks > cores else ""
    return threads + ("--bind-to none" if not bound else "--bind-to hwthread" if threads else "--bind-to core")


def bench(tool, mpi, collective, ways, sizes, milliseconds, options, target):
    sizes = [] if collective == "barrier" else ["--sizes", sizes]
    command = [tool, "bench", "--mpi", mpi["path"], "--collective", collective, "--variants", ",".join(["stock"] + ways)]
    command += sizes + ["--time", f"{milliseconds}ms", "--format", "csv"] + target
    return command + (["--mpiexec-args", options] if options else [])


def node_task(tool, mpi, collective, counts, bound, machine, milliseconds, component=None):
    """All sizes of a collective on this node, among so many ranks."""
    # Where ranks outnumber processors the tool itself tells launchers not to bind.
    options = options_of(mpi, machine["cores"], counts[0], bound) if counts[0] <= machine["processors"] else ""
    ways = ["polycast"] + WAYS[collective]
    if component:
        options += f" --mca coll_{component}_priority 100"
        ways = []
    setting = {"mpi": mpi["mpi"], "place": "node", "bound": bound, "component": component}
    key = " ".join([mpi["mpi"], "bound" if bound else "free", ",".join(map(str, counts)), collective] + ([component] if component else []))
    target = ["--ranks", ",".join(map(str, counts))]
    if counts[0] == machine["processors"]:
        milliseconds *= MOST_TAKES
    measured = len(counts) * len(NODE_SIZES.split(",")) * (1 + len(ways)) * milliseconds / 1000
    command = bench(tool, mpi, collective, ways, NODE_SIZES, milliseconds, options.strip(), target)
    return Task(key, command, 3 * measured + AROUND_SECONDS, setting, points_of)


def lab_task(tool, mpi, hosts, gbit, collective, milliseconds):
    """A collective among the hosts of a lab, a rank each."""
    target = ["--lab", f"hosts={hosts},rate={gbit}gbit,burst=64KiB"]
    milliseconds *= LAB_TAKES
    ways = ["polycast"] + LAB_WAYS[collective]
    setting = {"mpi": mpi["mpi"], "place": f"lab of {hosts} hosts, {gbit} Gb/s"}
    command = bench(tool, mpi, collective, ways, LAB_SIZES, milliseconds, None, target)
    measured = len(LAB_SIZES.split(",")) * (1 + len(ways)) * milliseconds / 1000
    return Task(f"{mpi['mpi']} lab {hosts} {gbit} {collective}", command, 4 * measured + AROUND_SECONDS, setting, points_of)


def cost_task(tool, mpi, way, library):
    """The processor time of broadcasts between two hosts whose link is no limit."""
    program = os.path.join(library, "bench", f"polycast-bench-{mpi['family']}")
    command = [tool, "lab", "run", "-n", "2", "--hosts", "2", "--rate", "100gbit", "--burst", "1MiB", "--mpi", mpi["path"]]
    if way != "stock":
        command += ["--polycast", "--env", f"POLYCAST_BCAST={way}", "--env", "POLYCAST_REPORT=1"]
    command += ["--", program, "cost", str(COST_BYTES), str(COST_CALLS)]
    return Task(f"{mpi['mpi']} cost {way}", command, AROUND_SECONDS, {"mpi": mpi["mpi"], "way": way}, costs_of)


def tasks(tool, mpis, machine, library, minutes):
    """All tasks, those that tell the most first."""
    jobs = rank_counts(machine)
    most = jobs[0][:1]
    in_a_pass = sum((1 if name == "barrier" else 6) * (2 + len(ways)) for name, ways in WAYS.items()) * (MOST_TAKES - 1 + sum(map(len, jobs)))
    # A fifth of the time for each MPI, bound: what comes beside it takes as long again.
    milliseconds = max(15, min(400, round(minutes * 60_000 / 5 / in_a_pass)))
    node = lambda mpi, collective, of, bound, component=None: node_task(
        tool, mpi, collective, of, bound, machine, milliseconds, component)
    first, others = mpis[0], mpis[1:]
    yield from (node(mpi, collective, most, True) for mpi in mpis for collective in WAYS)
    yield from (node(first, collective, counts, True) for counts in jobs[1:] for collective in WAYS)
    yield from (cost_task(tool, first, way, library) for way in ("multicast-pull", "stock"))
    labs = [(2, 25), (8, 10), (4, 25), (2, 10), (4, 10), (8, 25)]
    yield from (lab_task(tool, first, hosts, gbit, "bcast", milliseconds) for hosts, gbit in labs[:2])
    for mpi in others:
        yield from (node(mpi, collective, counts, True) for counts in jobs[1:] for collective in WAYS)
    yield from (node(first, collective, most, False) for collective in WAYS)
    for component in components(first):
        yield from (node(first, collective, most, True, component) for collective in ("bcast", "allreduce", "reduce", "barrier"))
    for hosts, gbit in labs:
        yield from (lab_task(tool, first, hosts, gbit, name, milliseconds) for name in LAB_WAYS if name != "bcast" or (hosts, gbit) not in labs[:2])
    yield from (node(mpi, collective, most, False) for mpi in others for collective in WAYS)
    # Twice as many as processors: what rules for shared processors are about.
    yield from (node(mpi, collective, [2 * most[0]], False) for mpi in mpis for collective in WAYS)


def components(mpi):
    """Those of COMPONENTS that this Open MPI has."""
    if mpi["family"] != "openmpi":
        return []
    info = os.path.join(os.path.dirname(mpi["path"]), "ompi_info")
    try:
        said = subprocess.run([info, "--parsable", "--param", "coll", "all"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [name for name in COMPONENTS if f"mca:coll:{name}:" in said]


def run(command, limit_seconds, json_file):
    """Ends the command by what a terminal's Ctrl-C does when its time is up: `polycast bench` then reports what it has.
    Returns its output, and why it is less than was asked for."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        if "bench" in command[1:2]:
            command = command + ["--json", json_file, "--raw", os.devnull]
        environment = dict(os.environ, POLYCAST_CACHE="off", **AS_ROOT)
        process = subprocess.Popen(command, stdout=out, stderr=errors, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        failure = None
        try:
            process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            failure = f"stopped after {limit_seconds:.0f} s"
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        out.seek(0)
        errors.seek(0)
        said = errors.read()
        if failure is None and process.returncode != 0:
            lines = [line.strip() for line in said.splitlines() if line.strip(" -")]
            failure = f"exit status {process.returncode}: " + " / ".join(lines[-3:])[:300]
        return out.read() + said, failure


def way_of(line):
    """The figures of a way that are kept: medians with their interval, where there is one, by four digits."""
    def with_interval(*names):
        values = [line.get(name) for name in names]
        return [float(f"{value:.4g}") for value in values if value is not None]

    way = {"by": line["algorithm"], "samples": line["samples"], "us": with_interval("median_us", "ci_low_us", "ci_high_us")}
    if line.get("speedup") is not None:
        way["times"] = with_interval("speedup", "speedup_ci_low", "speedup_ci_high")
    return dict(way, **{name: line[name] for name in ("late", "wrong") if line.get(name)})


def points_of(task, _output, json_file):
    """One point for each number of ranks and size, with the ways that were measured of it."""
    points = {}
    try:
        with open(json_file) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
    except OSError:
        return []
    for line in lines:
        if "environment" in line or line.get("median_us") is None:
            continue
        place = (line["ranks"], line["bytes"])
        point = points.setdefault(place, dict(task.setting, collective=line["collective"], ranks=line["ranks"], bytes=line["bytes"], ways={}))
        if line.get("believed") is False:
            point["doubt"] = line["doubt"]
        point["ways"][line["variant"]] = way_of(line)
    return list(points.values())


def costs_of(task, output, _json_file):
    """Nanoseconds of processor time per byte, of the root and of the other rank."""
    words = [line.split() for line in output.splitlines()]
    elapsed = [int(line[1]) for line in words if line[:1] == ["elapsed"]]
    costs = [[int(word) for word in line[1:]] for line in words if line[:1] == ["cost"] and len(line) == 4]
    is_served = task.setting["way"] == "stock" or any(line[2:5] == ["bcast", task.setting["way"], f"calls={COST_CALLS + 2}"] for line in words)
    if not elapsed or len(costs) != 2 or not is_served:
        return []
    total = COST_BYTES * COST_CALLS
    point = dict(task.setting, bytes=COST_BYTES, calls=COST_CALLS, gbit_per_s=round(8 * total / elapsed[0], 2))
    for rank, outside, kernel in costs:
        who_is_it = "root" if rank == 0 else "other"
        point[who_is_it] = {"outside_ns_per_byte": round(outside / total, 3), "kernel_ns_per_byte": round(kernel / total, 3)}
    return [point]


def write_beside(path, text):
    """Replaces the file in one step."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


class Result:
    """What is known of this machine, in NAME.json; NAME.md is written from it."""

    def __init__(self, name, machine):
        self.name = name
        self.data = {"machine": machine, "runs": [], "tasks": {}, "could_not": [], "points": [], "costs": []}
        if os.path.exists(name + ".json"):
            with open(name + ".json") as file:
                self.data = json.load(file)
            if who(self.data["machine"]) != who(machine):
                sys.exit(f"{name}.json: expected measurements of this machine, {who(machine)}, found those of {who(self.data['machine'])}; give another name")
        self.data["could_not"] = []

    def is_done(self, task):
        return self.data["tasks"].get(task.key) == "done"

    def add(self, task, found, failure):
        """Keeps what was found in the place of an earlier try."""
        of = "costs" if task.read is costs_of else "points"
        self.data[of] = [point for point in self.data[of] if point["task"] != task.key] + [dict(task=task.key, **point) for point in found]
        if failure is None and not found:
            failure = "nothing was measured"
        self.data["tasks"][task.key] = failure or "done"

    def write(self):
        """Both files."""
        points = {of: self.data[of] for of in ("points", "costs")}
        head = json.dumps({key: value for key, value in self.data.items() if key not in points}, indent=1, ensure_ascii=False)
        lists = (json.dumps(of) + ": [\n" + ",\n".join(json.dumps(point, ensure_ascii=False) for point in some) + "\n]" for of, some in points.items())
        write_beside(self.name + ".json", head[:-2] + ",\n" + ",\n".join(lists) + "\n}\n")
        write_beside(self.name + ".md", page(self.data))


def installed(tool, wanted):
    """The MPIs to be measured, the folder of the library, and the version of polycast."""
    path = os.environ.get("PATH", "")
    paths = [os.path.abspath(mpiexec) for mpiexec in wanted]
    known, problems = {}, []
    for folder in [os.path.dirname(mpiexec) + ":" + path for mpiexec in paths] or [path]:
        asked = subprocess.run([tool, "info", "--json"], capture_output=True, text=True, env=dict(os.environ, PATH=folder))
        if not asked.stdout.startswith("{"):
            sys.exit(f"{tool} info: {asked.stderr.strip()}")
        info = json.loads(asked.stdout)
        if info["problem"]:
            sys.exit(f"{tool}: expected a library, built by `make build`: {info['problem']}")
        for launcher in info["launchers"]:
            program = os.path.join(info["library_directory"], "bench", f"polycast-bench-{launcher['family']}")
            if paths and launcher["path"] not in paths:
                continue
            if not os.access(program, os.X_OK) or not launcher["has_door"]:
                problems.append([launcher["mpi"], f"polycast was not built for it: make doors MPICC={os.path.dirname(launcher['path'])}/mpicc"])
                continue
            known.setdefault(launcher["mpi"], launcher)
    if not known:
        sys.exit("expected an MPI that polycast was built for, found " + (json.dumps(problems) if problems else "none on PATH: --mpi names an mpiexec"))
    return list(known.values()), info["library_directory"], info["version"], problems


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", help="the two files without their ends")
    parser.add_argument("--minutes", type=float, default=8, help="for all (%(default)s)")
    parser.add_argument("--mpi", default="", metavar="MPIEXEC,…", help="paths of launchers, the most important first [default: all on PATH]")
    parser.add_argument("--tool", default=os.path.join(root, "build/stage/bin/polycast"), help="[default: the one of `make build`]")
    parser.add_argument("--page", action="store_true", help="write the page of what is in NAME.json, and measure nothing")
    parser.add_argument("--only", default="", metavar="TEXT", help="tasks whose names have this in them")
    args = parser.parse_args()
    if args.page:
        with open(args.name + ".json") as file:
            return write_beside(args.name + ".md", page(json.load(file)))
    begun, until = time.time(), time.monotonic() + 60 * args.minutes
    mpis, library, version, problems = installed(args.tool, [path for path in args.mpi.split(",") if path])
    machine = facts()
    result = Result(args.name, machine)
    this_run = {
        "began": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "minutes": args.minutes,
        "polycast": version,
        "mpis": [mpi["mpi"] for mpi in mpis],
        "load_before": round(os.getloadavg()[0], 2),
    }
    result.data["runs"].append(this_run)
    result.data["could_not"] += problems
    json_file = os.path.join(tempfile.mkdtemp(prefix="polycast-machine-"), "points.json")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = [task for task in tasks(args.tool, mpis, machine, library, args.minutes) if args.only in task.key and not result.is_done(task)]
    ended, before = None, taken_away()
    try:
        for task in wanted:
            left = until - time.monotonic()
            if left < LEAST_SECONDS:
                result.data["could_not"].append([task.key, "the time was up"])
                continue
            print(f"{time.time() - begun:4.0f} s  {task.key}", file=sys.stderr, flush=True)
            output, failure = run(task.command, min(task.limit_seconds, left - 2), json_file)
            result.add(task, task.read(task, output, json_file), failure)
            if result.data["tasks"][task.key] != "done":
                print(f"        {result.data['tasks'][task.key]}: {shlex.join(task.command)}", file=sys.stderr, flush=True)
                result.data["could_not"].append([task.key, result.data["tasks"][task.key]])
            if os.path.exists(json_file):
                os.remove(json_file)
            result.write()
    except (KeyboardInterrupt, SystemExit) as end:
        ended = end
        said = {key for key, _ in result.data["could_not"]}
        result.data["could_not"] += [[task.key, "the run was ended"] for task in wanted if not result.is_done(task) and task.key not in said]
    this_run["seconds"] = round(time.time() - begun)
    this_run["stolen_seconds"] = round(taken_away() - before, 2)
    result.write()
    shutil.rmtree(os.path.dirname(json_file))
    print(f"{args.name}.json and {args.name}.md: {len(result.data['points'])} points", file=sys.stderr)
    if ended:
        raise ended


if __name__ == "__main__":
    main()
