//! Runs the loops of the TCP backend alone, one end a process, to compare them with iperf3 and sockperf.
//!
//! ```text
//! tcp_loop KIND SIZE STREAMS WAIT SECONDS SOURCE_CPUS DESTINATION_CPUS
//! tcp_loop tcp_bw 128K 1 blocking 2 0 1
//! ```
//! The source starts the destination as a child and pins both, as `taskset` pins the rivals. It prints one line:
//! Gb/s of the receiver and of the sender, or p50, p99 and the number of samples of a latency test.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench_core::cell::End;
use bench_core::ids::{CellId, RunId};
use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, Peer, TaskId};
use bench_core::plan::{TestCase, TestKind, Verify, WaitMode};
use bench_core::time::Mono;
use bench_core::units::parse_duration;
use rustix::thread::{CpuSet, sched_setaffinity};
use transport::clock;
use transport::data::{Stop, Timing, backends};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(DESTINATION) => destination(&words[1..]),
        Some(_) if words.len() == 7 => source(&words),
        _ => Err("usage: tcp_loop KIND SIZE STREAMS WAIT SECONDS SOURCE_CPUS DESTINATION_CPUS".into()),
    }
}

fn source(words: &[String]) -> Outcome<()> {
    let case = case(words)?;
    let mut child = Command::new(env::current_exe()?)
        .arg(DESTINATION)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let result = lead(&mut child, case, &words[5]);
    if result.is_err() {
        child.kill()?;
    }
    child.wait()?;
    result
}

fn lead(child: &mut Child, case: TestCase, cpus: &str) -> Outcome<()> {
    pin(cpus)?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe from the child")?).lines();
    let mut answer = || lines.next().ok_or("the destination ended")?.map_err(Box::<dyn Error>::from);
    let listening = answer()?;
    let (addr, token) = listening.split_once(' ').ok_or("the destination names no address")?;
    let info = EndpointInfo::Tcp { addr: addr.parse()?, token: token.parse::<RunId>()?.0 };
    let mut endpoint = backends().of(case.kind).prepare(&task(case, End::Source)).map_err(|f| f.detail)?;
    endpoint.connect(&Peer::at(info), &Stop::default()).map_err(|f| f.detail)?;
    let at = clock::now().after(Duration::from_millis(50));
    writeln!(child.stdin.as_mut().ok_or("no pipe to the child")?, "{}", at.as_nanos())?;
    let own = endpoint.run(&timing(&case, at), &Stop::default()).map_err(|f| f.detail)?;
    let far = answer()?;
    println!("{} {} {far} / {}", case.title(), words_of(case.wait), show(&own));
    Ok(())
}

fn destination(words: &[String]) -> Outcome<()> {
    let case = case(words)?;
    pin(&words[6])?;
    let mut endpoint =
        backends().of(case.kind).prepare(&task(case, End::Destination)).map_err(|f| f.detail)?;
    let Some(EndpointInfo::Tcp { addr, token }) = endpoint.info() else {
        return Err("no TCP endpoint".into());
    };
    println!("{addr} {}", RunId(token));
    endpoint.connect(&Peer::default(), &Stop::default()).map_err(|f| f.detail)?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let at = Mono::from_nanos(line.trim().parse()?);
    let own = endpoint.run(&timing(&case, at), &Stop::default()).map_err(|f| f.detail)?;
    println!("{}", show(&own));
    Ok(())
}

fn show(measurement: &Measurement) -> String {
    match measurement {
        Measurement::Bandwidth(sample) => {
            let rate = sample.average().map_or(0.0, |rate| rate.gbps());
            let cpu = sample.cpu_ns.map_or(0.0, |ns| ns as f64 / sample.window.length().as_nanos() as f64);
            format!("{rate:.3} Gb/s cpu {cpu:.2}")
        }
        Measurement::Latency(sample) => sample.histogram.percentiles().map_or_else(
            || "no samples".to_owned(),
            |p| {
                format!(
                    "p50 {:.3} us p99 {:.3} us n {}",
                    p.p50_ns as f64 / 1e3,
                    p.p99_ns as f64 / 1e3,
                    sample.histogram.len()
                )
            },
        ),
        Measurement::Passive { .. } => "passed by".to_owned(),
        Measurement::Responder { answered } => format!("{answered} answered"),
    }
}

fn case(words: &[String]) -> Outcome<TestCase> {
    let kind = TestKind::DEFAULT
        .into_iter()
        .find(|kind| kind.name() == words[0])
        .ok_or("KIND is tcp_bw or tcp_lat")?;
    let wait = match words[3].as_str() {
        "blocking" => WaitMode::Blocking,
        "spinning" => WaitMode::Spinning,
        _ => return Err("WAIT is blocking or spinning".into()),
    };
    Ok(TestCase {
        kind,
        size: words[1].parse()?,
        streams: words[2].parse()?,
        wait,
        window: parse_duration(&words[4])?,
        warmup: Duration::from_millis(500),
        verify: Verify::Off,
        rate_limit: None,
        rdma: None,
    })
}

fn timing(case: &TestCase, at: Mono) -> Timing {
    Timing { at, warmup: case.warmup, window: case.window, tail: Duration::from_millis(50) }
}

fn task(case: TestCase, end: End) -> CellTask {
    CellTask {
        id: TaskId(0),
        cell: CellId(0),
        end,
        case,
        bind: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        hca: None,
        device: "lo".to_owned(),
        connect_timeout: Duration::from_secs(5),
    }
}

fn words_of(wait: WaitMode) -> &'static str {
    match wait {
        WaitMode::Blocking => "blocking",
        WaitMode::Spinning => "spinning",
    }
}

/// Keeps this process on processors such as `0` or `0,1`.
fn pin(cpus: &str) -> Outcome<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.split(',') {
        set.set(cpu.parse()?);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// First argument of the child.
const DESTINATION: &str = "destination";
