"""iperf3 and sockperf, each end a process with a processor of its own."""
import contextlib
import json
import re
import socket
import subprocess
import time

import machine

ADDRESS = "127.0.0.1"


def free_port():
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(command, cpu, port):
    """A server that listens on `port`; ended at the end."""
    process = subprocess.Popen(["taskset", "-c", str(cpu), *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        wait_for_listener(port, process)
        yield process
    finally:
        process.terminate()
        process.wait()


def wait_for_listener(port, process):
    """Looks into /proc/net/tcp*: a probing connection would be a client of its own to the server."""
    wanted = f":{port:04X}"
    for _ in range(500):
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in machine.read(table, "").splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise SystemExit(f"no server on port {port}: {process.args}")


class Iperf3:
    """One connection a process pair; the figure is what the server says that it received."""

    def __init__(self):
        self.program = machine.need("iperf3", "iperf3")

    def gbps(self, block, processes, seconds, omit, source, destination):
        with contextlib.ExitStack() as stack:
            ports = [free_port() for _ in range(processes)]
            for port in ports:
                stack.enter_context(server([self.program, "-s", "-B", ADDRESS, "-p", str(port)], destination, port))
            clients = [subprocess.Popen(["taskset", "-c", str(source), self.program, "-c", ADDRESS, "-p", str(port),
                                         "-l", block, "-t", str(seconds), "-O", str(omit), "-J"],
                                        stdout=subprocess.PIPE, text=True) for port in ports]
            results = [json.loads(client.communicate(timeout=seconds + omit + 30)[0]) for client in clients]
        return sum(result["end"]["sum_received"]["bits_per_second"] for result in results) / 1e9


class Sockperf:
    """Ping-pong over TCP; sockperf prints half of the round trip unless it is asked for all of it."""

    def __init__(self):
        self.program = machine.need("sockperf", "sockperf")

    def p50_us(self, size, mode, seconds, source, destination):
        port = free_port()
        flags = ["--tcp", "-i", ADDRESS, "-p", str(port)] + (["--nonblocked"] if mode == "spinning" else [])
        with server([self.program, "server", *flags], destination, port):
            client = subprocess.run(["taskset", "-c", str(source), self.program, "ping-pong", *flags, "-m", str(size),
                                     "-t", str(seconds)], capture_output=True, text=True, timeout=seconds + 30)
        found = re.search(r"percentile 50\.000 =\s*([0-9.]+)", client.stdout)
        if not found or "Summary: Latency is" not in client.stdout:
            raise SystemExit(f"sockperf gave no median:\n{client.stdout}\n{client.stderr}")
        return float(found[1])
