"""TCP latency through the whole product against sockperf: p50 of half a round trip, 64 bytes, TCP_NODELAY.

One processor for each end; both ends wait in the same way: blocking in recv, or spinning on a socket that does not
block. Each figure is the mean of both placements.
"""
import statistics

import abba
import machine
import mesh
import rivals

SIZE = 64
WARMUP = "400ms"  # sockperf's own


def run(options):
    first, second = machine.two_cpus()
    sockperf = rivals.Sockperf()
    results = []
    with mesh.Mesh(nodes=2, rails=1, cpus=[first, second]) as agents:
        agents.start()
        agents.wait_until_joined()
        for mode, flags in (("blocking", []), ("spinning", ["--spin"])):
            if options.only and options.only != mode:
                continue

            def ours():
                result = agents.sweep("--test", "tcp_lat", "--latency-size", str(SIZE), "-D", f"{options.seconds}s",
                                      "--warmup", WARMUP, *flags)
                return statistics.fmean(cell["latency"]["lat_p50_us"] for cell in mesh.measured(result))

            def theirs():
                return statistics.fmean(sockperf.p50_us(SIZE, mode, options.seconds, *ends)
                                        for ends in ((first, second), (second, first)))

            results.append(abba.compare(f"p50 {SIZE} B {mode}", "us", "lower", options.pairs, ours, theirs,
                                        ("railmesh", "sockperf")))
    return results
