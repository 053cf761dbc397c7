"""From the end of a round's window to the start of the next one's: 8 agents, at least 500 rounds, journal on.

The gap is result.json's: what lies in it is the tail, the end of the streams, the observations of both ends into the
journal and to the coordinator, the mark of the next round, the start message, the lead, and the warm-up of 1 ms.
"""
import json

import mesh

NODES, RAILS, AIM_MS, LEAST = 8, 2, 10.0, 500


def run(options):
    rates = {"paced to 1 Gb/s": ["--rate-limit", "1G"], "unpaced": []}
    results = []
    with mesh.Mesh(nodes=NODES, rails=RAILS) as agents:
        agents.start()
        agents.wait_until_joined()
        for name, flags in rates.items():
            if options.only and options.only not in name:
                continue
            result = agents.sweep("--test", "tcp_bw,tcp_lat", "-s", "4K:4M", "--latency-size", "1:512", "-D", "50ms",
                                  "--warmup", "1ms", "--rail-mode", "serial", *flags)
            lost = [cell for cell in result["cells"] if not (cell["bandwidth"] or cell["latency"])]
            gaps = result["schedule"]["gaps"]
            reached = gaps["count"] + 1 >= LEAST and gaps["p99_ms"] <= AIM_MS and not lost
            row = {"name": f"between rounds, {name}", "rounds": gaps["count"] + 1, **gaps, "cells_lost": len(lost),
                   "first_loss": lost[0]["reason"] if lost else None, "word": "reached" if reached else "not reached"}
            print(json.dumps(row), flush=True)
            results.append(row)
    return results
