"""An agent that has joined and measures nothing: resident memory, and processor time over a minute."""
import os
import time

import machine
import mesh

AIM_MIB, AIM_PERCENT = 16.0, 0.5


def run(options):
    results = []
    with mesh.Mesh(nodes=3, rails=1) as agents:
        agents.start()
        agents.wait_until_joined()
        time.sleep(3)
        before = {agent.pid: processor_seconds(agent.pid) for agent in agents.agents}
        began = time.monotonic()
        time.sleep(options.idle_seconds)
        elapsed = time.monotonic() - began
        for index, agent in enumerate(agents.agents):
            percent = 100 * (processor_seconds(agent.pid) - before[agent.pid]) / elapsed
            rss, anonymous = resident_mib(agent.pid, "VmRSS"), resident_mib(agent.pid, "RssAnon")
            word = "reached" if rss <= AIM_MIB and percent <= AIM_PERCENT else "not reached"
            role = "coordinator" if index == 0 else "agent"
            row = {"name": f"idle {role} n{index + 1}", "rss_mib": round(rss, 2), "anonymous_mib": round(anonymous, 2),
                   "cpu_percent": round(percent, 3), "seconds": round(elapsed, 1), "word": word}
            print(row, flush=True)
            results.append(row)
    return results


def processor_seconds(pid):
    """Of all threads, with the resolution of the scheduler: schedstat counts nanoseconds."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        total += int(machine.read(f"/proc/{pid}/task/{thread}/schedstat", "0").split()[0])
    return total / 1e9


def resident_mib(pid, field):
    for line in machine.read(f"/proc/{pid}/status").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/{pid}/status has no {field}")
