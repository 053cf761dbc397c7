"""TCP bandwidth through the whole product against iperf3.

Both: default buffers, the same block, one processor for the sending end and one for the receiving end, a second that is
not counted, then the receiver's bytes over the window. Each figure is the mean of both placements (sender on the first
processor and receiver on the second, and the reverse), because a sweep measures both directions.
"""
import statistics

import abba
import machine
import mesh
import rivals

WARMUP = 1
CASES = [("1 stream, 128K blocks", "128K", 1), ("1 stream, 1M blocks", "1M", 1), ("4 streams, 128K blocks", "128K", 4)]


def run(options):
    first, second = machine.two_cpus()
    iperf3 = rivals.Iperf3()
    results = []
    with mesh.Mesh(nodes=2, rails=1, cpus=[first, second]) as agents:
        agents.start()
        agents.wait_until_joined()
        for name, block, streams in CASES:
            if options.only and options.only not in name:
                continue

            def ours():
                result = agents.sweep("--test", "tcp_bw", "-s", block, "-q", str(streams), "-D", f"{options.seconds}s",
                                      "--warmup", f"{WARMUP}s")
                return statistics.fmean(cell["bandwidth"]["bw_avg_gbps"] for cell in mesh.measured(result))

            def theirs():
                return statistics.fmean(iperf3.gbps(block, streams, options.seconds, WARMUP, *ends)
                                        for ends in ((first, second), (second, first)))

            peer = "iperf3" if streams == 1 else f"{streams} x iperf3"
            results.append(abba.compare(name, "Gb/s", "higher", options.pairs, ours, theirs, ("railmesh", peer)))
    return results
