//! The roster of a Kubernetes Service, with a real DNS server.
//!
//! Proof, because the records are not there when the agents start: only asking again can find them; and because the
//! names are known to that server alone, through the resolv.conf that a pod would have.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::fabric::{Fabric, Namespace, PORT, control_address};
use crate::support::process::{Process, run};
use crate::support::program::program;
use crate::support::waiting::PATIENCE;

#[test]
#[ignore = "needs root and network namespaces"]
fn pods_that_get_their_names_after_they_started_form_a_mesh() {
    let fabric = Fabric::new(4, 1);
    let dns = Dns::start(&fabric);
    let roster = ["--service", SERVICE, "--pods", "railmesh-[0-3]"];
    let mut spec = fabric.mesh().roster(&roster);
    for node in 1..=4 {
        // A pod's host name is its name, and the agent knows its place by it.
        let script = format!("hostname railmesh-{} && exec \"$@\"", node - 1);
        spec = spec.wrapped(node, &["unshare", "--uts", "sh", "-c", &script, "sh"]);
    }
    let mut mesh = spec.launch().ask_at(&format!("railmesh-0.{SERVICE}:{PORT}"));
    mesh.agent(2).await_line("does not resolve yet", PATIENCE);
    dns.serve(&pods(4));
    mesh.await_members(4);
    let swept = mesh.sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(0).has_full_matrices(4, 1);
    let names: Vec<&str> = swept.report().nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!(names, ["railmesh-0", "railmesh-1", "railmesh-2", "railmesh-3"]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn plain_addresses_form_a_mesh_as_soon_as_there_are_as_many_as_expected() {
    let fabric = Fabric::new(4, 1);
    let dns = Dns::start(&fabric);
    dns.serve(&addresses(2));
    let mesh = fabric.mesh().roster(&["--service", SERVICE, "--expect", "4"]).launch();
    // The agents that ask now see two addresses and ask again.
    sleep(Duration::from_secs(2));
    dns.serve(&addresses(4));
    mesh.await_members(4);
    let swept = mesh.sweep(&["-t", "tcp_bw", "-D", "500ms"]);
    swept.exits(0).has_full_matrices(4, 1);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn another_number_of_addresses_than_expected_is_refused_with_both_numbers() {
    let fabric = Fabric::new(1, 1);
    let dns = Dns::start(&fabric);
    for found in [3, 5] {
        dns.serve(&addresses(found));
        let mut command = fabric.node(1).place().command(&[], program());
        command.args(["agent", "--service", SERVICE, "--expect", "4", "--join-timeout", "2s"]);
        run("agent", &mut command, PATIENCE).exits(3).says(&format!("found {found} addresses, expected 4"));
    }
}

/// A name server on the control network, and the resolv.conf of every namespace that points to it.
struct Dns {
    server: Process,
    hosts: PathBuf,
    _folder: TempDir,
    _namespace: Namespace,
    _configs: Vec<ResolvConf>,
}

impl Dns {
    /// A server without a record.
    fn start(fabric: &Fabric) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the records");
        let hosts = folder.path().join("hosts");
        fs::write(&hosts, "").expect("the records can be written");
        let namespace = fabric.host("dns", SERVER);
        let mut command = namespace.place().command(&[], "dnsmasq");
        command
            .args([
                "--keep-in-foreground",
                "--conf-file=/dev/null",
                "--no-resolv",
                "--no-hosts",
                "--user=root",
            ])
            .args(["--log-facility=-", "--log-queries", "--pid-file=", "--no-negcache", "--local=/test/"])
            .arg(format!("--addn-hosts={}", hosts.display()))
            .arg(format!("--listen-address={SERVER}"));
        let server = Process::start("dnsmasq", &mut command);
        server.await_line("started", PATIENCE);
        let users = fabric.namespaces();
        Self {
            server,
            hosts,
            _folder: folder,
            _namespace: namespace,
            _configs: users.map(ResolvConf::new).collect(),
        }
    }

    /// Serves these lines of a hosts file instead of those before.
    fn serve(&self, records: &str) {
        fs::write(&self.hosts, records).expect("the records can be written");
        self.server.signal(Signal::HUP);
    }
}

/// What `ip netns exec` shows in a namespace as /etc/resolv.conf. Dropping it removes it.
struct ResolvConf {
    folder: PathBuf,
}

impl ResolvConf {
    fn new(namespace: &Namespace) -> Self {
        let folder = Path::new("/etc/netns").join(namespace.name());
        fs::create_dir_all(&folder).expect("root may write below /etc/netns");
        fs::write(folder.join("resolv.conf"), format!("nameserver {SERVER}\n")).expect("a new file");
        Self { folder }
    }
}

impl Drop for ResolvConf {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} could not be removed: {error}", self.folder.display());
        }
        // Fails as long as another scenario has a folder there.
        let _: Result<_, _> = fs::remove_dir("/etc/netns");
    }
}

/// A record of the Service and of its own for each pod.
fn pods(count: u8) -> String {
    let record = |pod: u8| format!("{} railmesh-{pod}.{SERVICE} {SERVICE}\n", control_address(pod + 1));
    (0..count).map(record).collect()
}

/// Records of the Service alone.
fn addresses(count: u8) -> String {
    (1..=count).map(|node| format!("{} {SERVICE}\n", control_address(node))).collect()
}

/// The headless Service.
const SERVICE: &str = "mesh.test";

/// Where the name server is.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 53);
