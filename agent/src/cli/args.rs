//! What was typed: no environment, file or network is touched to parse it.

use super::rdma_args::RdmaArgs;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bench_core::ids::{NodeId, RunId};
use bench_core::units::{BitsPerSecond, parse_duration};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Proves that the fabric of a GPU cluster is sound.
///
/// Start `railmesh agent` on every node (same file, same key, same --peers), then `railmesh sweep` from any of them.
/// `railmesh demo` shows all of it on this machine alone.
#[derive(Debug, Parser)]
#[command(name = "railmesh", version, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// More log lines on stderr: -v debug, -vv trace.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a mesh key. Every node of the mesh gets the same file.
    Keygen(KeygenArgs),
    /// Run this node's agent until it is stopped, or with --run until one run is over.
    #[command(after_help = EXIT_CODES)]
    Agent(Box<AgentArgs>),
    /// Measure: submit a plan to any agent, show its progress and the report. Exit code = verdict.
    #[command(after_help = EXIT_CODES)]
    Sweep(Box<SweepArgs>),
    /// Follow a run that is on, or show one that is over. Exit code = verdict.
    #[command(after_help = EXIT_CODES)]
    Attach(AttachArgs),
    /// Fetch the results of a run as far as it is, without waiting. Exit code = verdict so far.
    #[command(after_help = EXIT_CODES)]
    Results(AttachArgs),
    /// Stop a run. What was measured stays.
    Cancel(CancelArgs),
    /// Show members, coordinator, epoch, run, and whom the run waits for.
    Status(ConnectArgs),
    /// Draw a report again from a result.json.
    Report(ReportArgs),
    /// Show the GPUs and HCAs of this node, or of captures of other tools: rails, pairing, roles, findings.
    Topo(TopoArgs),
    /// Form a real mesh of agent processes on loopback addresses and sweep it. Exit code = verdict.
    #[command(after_help = EXIT_CODES)]
    Demo(Box<DemoArgs>),
    /// The process that measures; started by the agent.
    #[command(hide = true, disable_help_flag = true)]
    Worker {
        /// Passed on as it is.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// `keygen`
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// Where to write the key; must not exist yet.
    pub file: PathBuf,
}

/// `agent`
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The roster, the same on every node: names, addresses, ranges, such as gpu-[001-064] or n[1-4]=10.0.0.[11-14]:7777.
    /// Default port: 7777.
    #[arg(long, value_name = "LIST", required_unless_present_any = ["hostfile", "service"])]
    pub peers: Option<String>,
    /// The roster from a file: one peer a line, # begins a comment.
    #[arg(long, value_name = "FILE", conflicts_with = "peers")]
    pub hostfile: Option<PathBuf>,
    /// The roster from DNS: the name of a headless Service; give --pods or --expect with it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["peers", "hostfile"])]
    pub service: Option<String>,
    /// The pods of --service in order, such as railmesh-[0-63].
    #[arg(long, value_name = "PATTERN", requires = "service", conflicts_with = "expect")]
    pub pods: Option<String>,
    /// How many addresses --service must have; names are the addresses then.
    #[arg(long, value_name = "N", requires = "service")]
    pub expect: Option<usize>,
    /// DNS server to ask instead of those of /etc/resolv.conf.
    #[arg(long, value_name = "ADDR:PORT", requires = "service")]
    pub dns: Option<SocketAddr>,
    /// This node's name in the roster. Default: the host name, or the entry with one of this node's addresses.
    #[arg(long, value_name = "NODE")]
    pub name: Option<NodeId>,
    /// The mesh key (see keygen). Without one only loopback addresses are served.
    #[arg(long, env = "RAILMESH_KEY", value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// UDP address to serve. Default: this node's port in the roster on all addresses (loopback without a key).
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// The rails in order: RDMA devices (mlx5_4), network devices or addresses. Default: the ports of the compute fabric
    /// in the order of their GPUs (see topo); without RDMA devices, every interface that is up but the one with the default route.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub rails: Vec<String>,
    /// Read sysfs and procfs below this folder.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// Where journals and the elector's state are kept. Default: /var/lib/railmesh/NAME, or below ~/.local/state.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The worker's executable. Default: railmesh-worker beside this file, or this file itself.
    #[arg(long, value_name = "FILE")]
    pub worker: Option<PathBuf>,
    /// How long a run waits for nodes that have not joined.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub join_timeout: Duration,
    /// How many nodes, the first of the roster, elect and are elected: odd, the same number on every node. Default: 1 of
    /// up to 2 nodes, 3 of up to 4, else 5.
    #[arg(long, value_name = "N")]
    pub electors: Option<usize>,
    /// Begin a new generation of the mesh, the same number on every node: leaves the election state of older ones behind.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub new_generation: u64,
    /// Play this plan (TOML) once all nodes have started the same command, for batch systems. One node, the first that is
    /// here, prints the report; all exit with the verdict.
    #[arg(long, value_name = "PLAN.toml", requires = "exit_when_done")]
    pub run: Option<PathBuf>,
    /// With --run: exit when the run is over. The exit code is the verdict's.
    #[arg(long, requires = "run")]
    pub exit_when_done: bool,
    /// With --run: tells runs of the same plan apart, the same word on every node. Default: SLURM_JOB_ID if it is set.
    #[arg(long, env = "RAILMESH_JOB", value_name = "WORD")]
    pub job: Option<String>,
    /// With --run: the run folder, on the node that prints. Default: railmesh-runs/RUN.
    #[arg(long, value_name = "DIR", requires = "run")]
    pub out: Option<PathBuf>,
    /// With --run: print result.json instead of the report.
    #[arg(long, requires = "run")]
    pub json: bool,
    /// Pretend a fault, for trials: slow=r1:100M caps rail 1 of this node in both directions.
    #[arg(long, value_name = "FAULT", hide = true)]
    pub emulate: Vec<String>,
    /// End when the parent process does.
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
}

/// Where to find an agent.
#[derive(Clone, Debug, Args)]
pub struct ConnectArgs {
    /// Any agent of the mesh, or several with commas between (UDP).
    #[arg(long, env = "RAILMESH_CONNECT", value_name = "HOST:PORT", default_value = "127.0.0.1:7777")]
    pub connect: String,
    /// The mesh key, as the agents have it.
    #[arg(long, env = "RAILMESH_KEY", value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// What to measure; the letters are perftest's where they mean the same.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArgs {
    /// A plan file (TOML). Flags override it.
    #[arg(value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,
    /// Tests: tcp_bw, tcp_lat; over RDMA write_bw, write_lat, write_imm_bw, write_imm_lat, read_bw, read_lat, send_bw,
    /// send_lat. Default: tcp_bw,tcp_lat.
    #[arg(short = 't', long, value_name = "LIST", value_delimiter = ',')]
    pub test: Vec<String>,
    /// Message sizes of bandwidth tests: 64K, 64K,1M or 64K:8M (doubling); suffixes are binary. Default: 128K for TCP, 64K for RDMA.
    #[arg(short, long, value_name = "SIZES")]
    pub size: Option<String>,
    /// Message sizes of latency tests, bytes. Default: 64 for TCP, 8 for RDMA.
    #[arg(long, value_name = "SIZES")]
    pub latency_size: Option<String>,
    /// Length of the measured window, such as 2s or 500ms; a bare number is seconds. Default: 2s; demo 500ms.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Traffic before the window that is not counted. Default: 200ms; demo 100ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warmup: Option<Duration>,
    /// Queue pairs of a bandwidth cell, TCP connections for TCP. Default: 1.
    #[arg(short, long = "qp", alias = "streams", value_name = "N")]
    pub qp: Option<u16>,
    /// Both directions of a pair at once; each is a cell with a figure of its own (perftest's -b adds them up).
    #[arg(short, long)]
    pub bidirectional: bool,
    /// Who measures with whom. Default: pairs.
    #[arg(long, value_enum, value_name = "PATTERN")]
    pub pattern: Option<PatternArg>,
    /// Rails one after the other or all at once. Default: serial.
    #[arg(long, value_enum, value_name = "MODE")]
    pub rail_mode: Option<RailModeArg>,
    /// Only these rails: 0,2 or r0,r2.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only_rails: Vec<String>,
    /// Spin instead of sleeping while waiting for data.
    #[arg(long)]
    pub spin: bool,
    /// Compare received data with what was sent.
    #[arg(long)]
    pub verify: bool,
    /// Cap each bandwidth cell's rate, such as 10G (bits a second, suffixes are decimal).
    #[arg(long, value_name = "RATE")]
    pub rate_limit: Option<BitsPerSecond>,
    /// Sample the pairs so that measuring takes about this long; "off" measures every pair. Default: 10m above 32 nodes.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Decides which pairs a budget keeps.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Lowest average rate of a bandwidth cell, such as 380G (perftest's -w).
    #[arg(short = 'w', long, value_name = "RATE")]
    pub limit_bw: Option<BitsPerSecond>,
    /// Highest p50 of a latency cell, such as 5us.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub limit_lat: Option<Duration>,
    /// Lowest average rate as a share of the line rate, such as 0.9.
    #[arg(long, value_name = "SHARE")]
    pub limit_line_rate: Option<f64>,
    /// Don't measure suspects again.
    #[arg(long)]
    pub no_retest: bool,
    /// RDMA tests.
    #[command(flatten)]
    pub rdma: RdmaArgs,
}

/// Where results go.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Run folder. Default: railmesh-runs/RUN for sweep and demo, none for attach and results.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print result.json on stdout and nothing else there.
    #[arg(long)]
    pub json: bool,
}

/// `sweep`
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// What to measure.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Where to find the mesh.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The run's id (32 hexadecimal digits): submitting the same id again starts nothing new. Default: random.
    #[arg(long, value_name = "ID")]
    pub run_id: Option<RunId>,
    /// Submit and return at once; see attach and results.
    #[arg(long)]
    pub detach: bool,
}

/// `attach` and `results`
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The run. Default: the one that is on, or the latest.
    pub run: Option<RunId>,
    /// Where to find the mesh.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `cancel`
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The run. Default: the one that is on.
    pub run: Option<RunId>,
    /// Where to find the mesh.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// `report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A result.json, or a run folder that holds one.
    pub file: PathBuf,
    /// The form.
    #[arg(long, value_enum, default_value = "text")]
    pub format: FormatArg,
}

/// `topo`
#[derive(Debug, Args)]
pub struct TopoArgs {
    /// Captures to read instead of this machine: outputs of nvidia-smi topo -m, nvlink -s, ibstat, ibstatus, ibv_devinfo,
    /// ibdev2netdev, show_gids, rdma link, iblinkinfo, lspci -vvv, NCCL topology XML, one or several in a file; - is stdin.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Print the JSON document instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Write a NCCL topology file (NCCL_TOPO_FILE), if every fact for it is known.
    #[arg(long, value_name = "OUT")]
    pub nccl_xml: Option<PathBuf>,
    /// Where /sys and /proc of the machine are: a captured tree can stand in for it.
    #[arg(long, value_name = "DIR", default_value = "/", conflicts_with = "from")]
    pub root: PathBuf,
}

/// `demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// What to measure. Default: tcp_bw and tcp_lat with windows of half a second.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// How many agents.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=250))]
    pub nodes: u8,
    /// Rails of each node.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub rails: u8,
    /// A fault to find: slow=n2:r1 (a tenth of the rate), absent=n3 (never started), kill=n3 (killed in a round), stop=n3 (frozen in a round).
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<String>,
    /// Line rate to pretend, since loopback has none; --rate-limit overrides it. "off" sends as fast as the processor can.
    #[arg(long, value_name = "RATE", default_value = "1G")]
    pub rate: String,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The patterns as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum PatternArg {
    /// Isolated pairs, each direction by itself.
    Pairs,
    /// Everybody sends to the node d further on.
    Shift,
    /// Everybody to everybody at once.
    AllToAll,
    /// All others to one.
    Incast,
    /// One to all others.
    Outcast,
    /// Each node with itself; proves no fabric.
    Loopback,
}

/// The rail modes as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RailModeArg {
    /// Each rail alone.
    Serial,
    /// All rails at once.
    Parallel,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// For a terminal.
    Text,
    /// For a ticket or a wiki.
    Markdown,
    /// One line a cell.
    Csv,
    /// The contract itself.
    Json,
}

/// What exit codes mean, at the end of --help.
const EXIT_CODES: &str = "Exit codes: 0 the fabric passed, 1 it failed, 2 wrong usage or configuration, \
3 could not measure (incomplete, nobody there, timeout).";
