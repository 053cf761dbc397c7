//! Runs the loops of the backends alone, one end a process, to compare them with iperf3, sockperf and perftest.
//!
//! ```text
//! cell_loop KIND SIZE STREAMS WAIT SECONDS SOURCE_CPUS DESTINATION_CPUS [SOURCE_HCA DESTINATION_HCA]
//! cell_loop tcp_bw 128K 1 blocking 2 0 1
//! cell_loop write_bw 64K 1 spinning 2 0 1 mlx5_0 mlx5_1
//! ```
//! The source starts the destination as a child and pins both, as `taskset` pins the rivals; `-` pins none. It prints one
//! line: Gb/s of the receiver and of the sender, or p50, p99 and the number of samples of a latency test.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench_core::cell::End;
use bench_core::ids::CellId;
use bench_core::measure::Measurement;
use bench_core::message::{CellTask, EndpointInfo, Peer, TaskId};
use bench_core::node::RailHca;
use bench_core::plan::{Means, TestCase, TestKind, Verify, WaitMode};
use bench_core::record::Failure;
use bench_core::time::Mono;
use bench_core::units::parse_duration;
use bench_core::verbs::RdmaOptions;
use rustix::thread::{CpuSet, sched_setaffinity};
use transport::clock;
use transport::data::{Stop, Timing, backends};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(DESTINATION) => destination(&words[1..]),
        Some(_) if words.len() == 7 || words.len() == 9 => source(&words),
        _ => Err("usage: cell_loop KIND SIZE STREAMS WAIT SECONDS SOURCE_CPUS DESTINATION_CPUS [SOURCE_HCA DESTINATION_HCA]"
            .into()),
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
    let result = lead(&mut child, case, words);
    if result.is_err() {
        child.kill()?;
    }
    child.wait()?;
    result
}

fn lead(child: &mut Child, case: TestCase, words: &[String]) -> Outcome<()> {
    pin(&words[5])?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe from the child")?).lines();
    let mut answer = || lines.next().ok_or("the destination ended")?.map_err(Box::<dyn Error>::from);
    let mut to_child = child.stdin.take().ok_or("no pipe to the child")?;
    let mut endpoint = backends().of(case.kind).prepare(&task(case, End::Source, words)).map_err(told)?;
    writeln!(to_child, "{}", written(&endpoint.info())?)?;
    let peer = Peer { endpoint: read(&answer()?)?, pace: None };
    endpoint.connect(&peer, &Stop::default()).map_err(told)?;
    // RDMA has no accept: the destination says when it is armed too.
    let at = match case.kind.means() {
        Means::Tcp => clock::now().after(Duration::from_millis(50)),
        Means::Rdma(_) => clock::now().after(Duration::from_millis(300)),
    };
    writeln!(to_child, "{}", at.as_nanos())?;
    let own = endpoint.run(&timing(&case, at), &Stop::default()).map_err(told)?;
    let far = answer()?;
    println!("{} {} {far} / {}", case.title(), words_of(case.wait), show(&own));
    Ok(())
}

fn destination(words: &[String]) -> Outcome<()> {
    let case = case(words)?;
    pin(&words[6])?;
    let mut endpoint =
        backends().of(case.kind).prepare(&task(case, End::Destination, words)).map_err(told)?;
    println!("{}", written(&endpoint.info())?);
    let mut lines = std::io::stdin().lines();
    let mut line = || lines.next().ok_or("the source ended")?.map_err(Box::<dyn Error>::from);
    let peer = Peer { endpoint: read(&line()?)?, pace: None };
    endpoint.connect(&peer, &Stop::default()).map_err(told)?;
    let at = Mono::from_nanos(line()?.trim().parse()?);
    let own = endpoint.run(&timing(&case, at), &Stop::default()).map_err(told)?;
    println!("{}", show(&own));
    Ok(())
}

fn told(failure: Failure) -> String {
    match failure.remedy {
        Some(remedy) => format!("{}; {remedy}", failure.detail),
        None => failure.detail,
    }
}

/// An end's address as text for the pipe.
fn written(info: &Option<EndpointInfo>) -> Outcome<String> {
    Ok(postcard::to_stdvec(info)?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read(text: &str) -> Outcome<Option<EndpointInfo>> {
    let bytes: Result<Vec<u8>, _> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16))
        .collect();
    Ok(postcard::from_bytes(&bytes?)?)
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
    let kind = TestKind::ALL
        .into_iter()
        .find(|kind| kind.name() == words[0])
        .ok_or("KIND is a test of a plan, such as tcp_bw or write_lat")?;
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
        rdma: match kind.means() {
            Means::Tcp => None,
            Means::Rdma(_) => Some(RdmaOptions::default()),
        },
    })
}

fn timing(case: &TestCase, at: Mono) -> Timing {
    Timing { at, warmup: case.warmup, window: case.window, tail: Duration::from_millis(50) }
}

fn task(case: TestCase, end: End, words: &[String]) -> CellTask {
    let position = match end {
        End::Source => 7,
        End::Destination => 8,
    };
    let hca = words.get(position).map(|device| RailHca { device: device.clone(), port: 1, link_layer: None });
    CellTask {
        id: TaskId(0),
        cell: CellId(0),
        end,
        case,
        bind: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        device: hca.as_ref().map_or_else(|| "lo".to_owned(), RailHca::name),
        hca,
        connect_timeout: Duration::from_secs(5),
    }
}

fn words_of(wait: WaitMode) -> &'static str {
    match wait {
        WaitMode::Blocking => "blocking",
        WaitMode::Spinning => "spinning",
    }
}

/// Keeps this process on processors such as `0` or `0,1`; `-` leaves it to the scheduler.
fn pin(cpus: &str) -> Outcome<()> {
    if cpus == "-" {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus.split(',') {
        set.set(cpu.parse()?);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// First argument of the child.
const DESTINATION: &str = "destination";
