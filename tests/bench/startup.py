"""64 agents: from the first agent's exec to the start of the first round in which the last agent takes part.

Against the same number of process starts and handshakes done bare (transport's example bare_handshakes, the same
libraries): as many processes as agents, each with a child as an agent has a worker, each with a key to derive and a
certificate to issue; five of them serve, as the electors do, and each other one does a mutual-TLS QUIC handshake with
every one of the five. The same loop starts both, and the clock of both begins before the first exec. Ours does more
handshakes: those between electors, of the client, and between partners of the first round.
"""
import os
import re
import subprocess
import tempfile
import time

import abba
import machine
import mesh

LIMIT = 120
ELECTORS = 5


def ours(nodes):
    with mesh.Mesh(nodes=nodes, rails=1, join_timeout=f"{LIMIT}s") as agents:
        command = agents.sweep_command(["--test", "tcp_lat", "--latency-size", "64", "-D", "50ms", "--warmup", "1ms",
                                        "--budget", "1s"])
        began = agents.start()
        client = submit(command)
        end = time.monotonic() + LIMIT
        starts = {}
        while len(starts) < nodes and time.monotonic() < end:
            time.sleep(0.2)
            starts = {node: at for node in range(1, nodes + 1) if (at := first_round(agents.log(node)))}
        client.kill()
        client.wait()
        if len(starts) < nodes:
            silent = sorted(set(range(1, nodes + 1)) - set(starts))
            raise SystemExit(f"agents {silent} took part in no round:\n{agents.log(silent[0]).read_text()[-2000:]}")
        return (max(starts.values()) - began) / 1e6


def submit(command):
    """The client; started anew while the first agent does not answer yet."""
    shell = 'until "$@"; do [ $? = 3 ] || exit; done'
    return subprocess.Popen(["setsid", "sh", "-c", shell, "sh", *command], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def first_round(log):
    found = re.search(r"takes part in its first round.*?at_ns=(\d+)", log.read_text())
    return int(found[1]) if found else None


def theirs(nodes):
    program = machine.ROOT / "target/release/examples/bare_handshakes"
    with tempfile.TemporaryDirectory(prefix="railmesh-bench-") as folder:
        key = f"{folder}/mesh.key"
        subprocess.run([machine.need_railmesh(), "keygen", key], check=True, capture_output=True)
        addresses = [f"127.0.0.1:{mesh.free_udp_port('127.0.0.1')}" for _ in range(ELECTORS)]
        clients = nodes - ELECTORS
        env = {**os.environ, "NO_COLOR": "1"}
        commands = [[program, "server", key, address, str(clients)] for address in addresses]
        commands += [[program, "client", key, ",".join(addresses)]] * clients
        began = time.monotonic_ns()
        started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True, env=env) for command in commands]
        told = [process.communicate(timeout=LIMIT) for process in started]
        failed = [err for process, (_, err) in zip(started, told) if process.returncode != 0]
        if failed:
            raise SystemExit(f"{len(failed)} bare processes failed: {failed[0]}")
        return (max(int(out) for out, _ in told[:ELECTORS]) - began) / 1e6


def run(options):
    example = machine.ROOT / "target/release/examples/bare_handshakes"
    if not example.exists():
        machine.skip(f"{example} is missing: cargo build --release -p transport --example bare_handshakes")
    machine.need_railmesh()
    name = f"{options.nodes} agents to the last first start"
    result = abba.compare(name, "ms", "lower", options.pairs, lambda: ours(options.nodes), lambda: theirs(options.nodes),
                          ("railmesh", "bare handshakes"))
    times = 1 / result["median_ratio"]
    result["word"] = "reached" if 1 / result["low"] <= 2 else "not reached"
    print(f"{name}: {times:.2f} times the bare processes, 95 % {1 / result['high']:.2f} to {1 / result['low']:.2f} "
          f"(aim: at most 2): {result['word']}")
    return [result]
