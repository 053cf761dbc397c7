"""Real agents on loopback addresses: each a process with a processor of its own, and sweeps over them."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import machine


class Mesh:
    """`nodes` agents with `rails` rails each. `cpus[i]` pins agent i and so its workers, as taskset pins a rival."""

    def __init__(self, nodes=2, rails=1, cpus=None, join_timeout="60s", log=None):
        self.program = machine.need_railmesh()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="railmesh-bench-"))
        self.key = self.folder / "mesh.key"
        subprocess.run([self.program, "keygen", str(self.key)], check=True, capture_output=True)
        self.second = 64 + os.getpid() % 128
        self.port = free_udp_port(f"127.{self.second}.1.1")
        self.nodes, self.rails, self.cpus = nodes, rails, cpus
        self.join_timeout, self.extra = join_timeout, log or []
        self.agents, self.runs = [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, node):
        return f"127.{self.second}.{node}.1"

    def agent_command(self, node):
        peers = ",".join(f"n{n}={self.control(n)}:{self.port}" for n in range(1, self.nodes + 1))
        rails = ",".join(f"127.{self.second}.{node}.{10 + rail}" for rail in range(self.rails))
        command = [self.program, "agent", "--die-with-parent", "--name", f"n{node}", "--peers", peers, "--rails", rails,
                   "--join-timeout", self.join_timeout, "--key", str(self.key), "--state", str(self.folder / f"n{node}")]
        pin = ["taskset", "-c", str(self.cpus[node - 1])] if self.cpus else []
        return pin + command + self.extra

    def start(self):
        """Starts every agent; returns CLOCK_MONOTONIC, ns, before the first."""
        commands = [self.agent_command(node) for node in range(1, self.nodes + 1)]
        logs = [open(self.log(node), "wb") for node in range(1, self.nodes + 1)]
        env = {**os.environ, "NO_COLOR": "1"}
        began = time.monotonic_ns()
        for command, log in zip(commands, logs):
            self.agents.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                                                env=env))
        for log in logs:
            log.close()
        return began

    def log(self, node):
        return self.folder / f"n{node}.log"

    def wait_until_joined(self, limit=30):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            status = self.command("status", timeout=10)
            if status.returncode == 0 and "absent" not in status.stdout and "has not joined" not in status.stdout:
                return
            time.sleep(0.1)
        raise SystemExit(f"the mesh did not form:\n{self.log(1).read_text()}")

    def command(self, *words, timeout=600):
        return subprocess.run([self.program, *words, "--connect", f"{self.control(1)}:{self.port}", "--key", str(self.key)],
                              capture_output=True, text=True, timeout=timeout)

    def sweep_command(self, words):
        self.runs += 1
        return [self.program, "sweep", "--connect", f"{self.control(1)}:{self.port}", "--key", str(self.key), "--json",
                "--no-retest", "--out", str(self.folder / f"run{self.runs}"), *words]

    def sweep(self, *words, timeout=600):
        """Runs a sweep and returns its result.json."""
        run = subprocess.run(self.sweep_command(words), capture_output=True, text=True, timeout=timeout)
        if not run.stdout.strip():
            raise SystemExit(f"the sweep gave no result (exit {run.returncode}):\n{run.stderr}")
        return json.loads(run.stdout)

    def stop(self):
        for agent in self.agents:
            if agent.poll() is None:
                agent.send_signal(signal.SIGTERM)
        for agent in self.agents:
            try:
                agent.wait(10)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()
        self.agents = []


def measured(result):
    """The cells of a result; a benchmark with a lost cell is none."""
    lost = [cell for cell in result["cells"] if not (cell.get("bandwidth") or cell.get("latency"))]
    if lost:
        raise SystemExit(f"{len(lost)} cells were not measured: {json.dumps(lost[0])[:800]}")
    return result["cells"]


def free_udp_port(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]
