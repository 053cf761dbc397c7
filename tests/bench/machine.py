"""Facts of the machine, and whether it was quiet: without them a figure says nothing."""
import os
import pathlib
import platform
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RAILMESH = pathlib.Path(os.environ.get("RAILMESH", ROOT / "target/release/railmesh"))


def read(path, default="unknown"):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return default


def facts():
    """What stands beside every figure."""
    model = [line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines() if "model name" in line]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "cpu": model[0] if model else "unknown", "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "congestion_control": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "tcp_rmem": read("/proc/sys/net/ipv4/tcp_rmem").split(), "tcp_wmem": read("/proc/sys/net/ipv4/tcp_wmem").split(),
        "page_table_isolation": read("/sys/devices/system/cpu/vulnerabilities/meltdown"),
        "commit": commit.stdout.strip() or "unknown",
    }


def processor_time():
    """Seconds of all processors so far: (busy, stolen by the hypervisor, all)."""
    fields = [int(field) for field in read("/proc/stat").splitlines()[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / tick, fields[7] / tick, sum(fields) / tick


def need(program, package):
    """The path of a rival; a visible SKIP and exit 0 where it is missing."""
    found = shutil.which(program)
    if not found:
        skip(f"{program} is missing: apt-get install {package}")
    return found


def need_railmesh():
    if not RAILMESH.exists():
        skip(f"{RAILMESH} is missing: cargo build --release")
    return str(RAILMESH)


def skip(reason):
    print(f"SKIP {reason}")
    sys.exit(0)


def prefer(nice):
    """Gives this process, and all that it starts, a priority: ours and rivals alike.

    Where the kernel groups processes by session (autogroup), a nice value counts inside the group only, so the group
    gets it too.
    """
    group = pathlib.Path("/proc/self/autogroup")
    if group.exists():
        if os.getsid(0) != os.getpid():
            os.execvp("setsid", ["setsid", "--wait", sys.executable, *sys.argv])
        group.write_text(str(nice))
    os.setpriority(os.PRIO_PROCESS, 0, nice)


def two_cpus():
    """One processor for the sending end and one for the receiving end."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        skip("two processors are needed, one for each end")
    return cpus[0], cpus[1]
