//! Two emulated hosts with a cable between them: network namespaces and a veth pair, gone when the process ends.

use std::io;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use polycast_net::{Group, Interface, Socket, SocketOptions};

const INSIDE: &str = "POLYCAST_TEST_NAMESPACE";

/// For what comes, however busy the machine is with something else: only what is lost is waited for so long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a test as root of a user namespace of its own: the test's own binary is started again there, for this test only. Where namespaces
/// are not permitted it fails, unless `POLYCAST_TESTS_ALLOW_SKIP=1`.
pub fn in_namespace(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if let Err(reason) = enter(&["true"]) {
        let may_be_left_out = std::env::var_os("POLYCAST_TESTS_ALLOW_SKIP").is_some_and(|value| value == "1");
        assert!(
            may_be_left_out,
            "this test cannot run here (POLYCAST_TESTS_ALLOW_SKIP=1 leaves it out): {reason}"
        );
        eprintln!("left out: {reason}");
        return;
    }
    let binary = std::env::current_exe().unwrap();
    let output =
        enter(&[binary.to_str().unwrap(), test, "--exact", "--nocapture"]).unwrap_or_else(|e| panic!("{e}"));
    assert!(output.contains("1 passed"), "{test} did not run:\n{output}");
}

/// Runs a command in new user and network namespaces.
pub fn enter(command: &[&str]) -> Result<String, String> {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .args(command)
        .env(INSIDE, "1")
        .output()
        .map_err(|e| format!("unshare: {e}"))?;
    let text = [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("unshare {}: {}\n{text}", command[0], output.status))
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace with a thread in it. What the thread opens stays in it, whoever uses it.
pub struct Host {
    jobs: mpsc::Sender<Job>,
    namespace: String,
}

impl Host {
    pub fn new() -> Host {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            tell.send(format!("/proc/{}/task/{}/ns/net", std::process::id(), gettid())).unwrap();
            queue.into_iter().for_each(|job| job());
        });
        let host = Host { jobs, namespace: told.recv().unwrap() };
        host.ip("link set lo up");
        host
    }

    pub fn run<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> T {
        let (give, result) = mpsc::channel();
        self.jobs.send(Box::new(move || give.send(body()).unwrap())).unwrap();
        result.recv().expect("the job of an emulated host panicked")
    }

    pub fn ip(&self, arguments: &str) {
        self.tool("ip", arguments);
    }

    pub fn tool(&self, tool: &'static str, arguments: &str) {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        self.run(move || {
            let output = Command::new(tool).args(&arguments).output().unwrap();
            assert!(
                output.status.success(),
                "{tool} {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        });
    }

    pub fn look(&self, name: &str) -> Interface {
        let name = name.to_owned();
        self.run(move || Interface::all().unwrap().into_iter().find(|i| i.name == name).unwrap())
    }

    pub fn open(&self, name: &str, group: Group, options: &SocketOptions) -> Socket {
        // The kernel makes an interface's link-local address some time after the interface.
        for _ in 0..300 {
            match self.try_open(name, group, options) {
                Ok(socket) => return socket,
                Err(error) if error.to_string().contains("no usable link-local address") => {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("{name} has had no link-local address for 30 s")
    }

    pub fn try_open(
        &self,
        name: &str,
        group: Group,
        options: &SocketOptions,
    ) -> Result<Socket, polycast_net::OpenError> {
        let interface = self.look(name);
        let options = options.clone();
        self.run(move || Socket::open(&interface, group, &options))
    }
}

/// Connects two hosts: `name` on both, 10.`net`.0.1 and 10.`net`.0.2.
pub fn cable(left: &Host, right: &Host, name: &str, net: u8) {
    left.ip(&format!("link add {name} type veth peer name {name} netns {}", right.namespace));
    for (host, last) in [(left, 1), (right, 2)] {
        host.ip(&format!("address add 10.{net}.0.{last}/24 dev {name}"));
        host.ip(&format!("link set {name} up"));
    }
    wait_until_up(left, name);
    wait_until_up(right, name);
}

/// A pair with one cable, `e0`.
pub fn pair() -> (Host, Host) {
    let (left, right) = (Host::new(), Host::new());
    cable(&left, &right, "e0", 1);
    (left, right)
}

/// A new interface gets its link-local address some milliseconds after both ends are up.
fn wait_until_up(host: &Host, name: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !(host.look(name).is_up && host.look(name).ipv6.is_some()) {
        assert!(Instant::now() < deadline, "{name} does not come up");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the socket is readable or writable; false when the time is up.
pub fn wait(socket: &Socket, what: PollFlags, time: Duration) -> bool {
    let mut polled = [PollFd::new(socket.as_fd(), what)];
    poll(&mut polled, PollTimeout::try_from(time).unwrap()).unwrap() > 0
}

/// Sends all; waits for room where there is none.
pub fn send_all(socket: &mut Socket, datagrams: &[u8], datagram_bytes: usize) {
    let mut sent = 0;
    while sent < datagrams.len() {
        match socket.send(&datagrams[sent..], datagram_bytes) {
            Ok(bytes) => sent += bytes,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                assert!(wait(socket, PollFlags::POLLOUT, PATIENCE), "never writable");
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// The datagrams that come until `count` are there or nothing has come for `patience`.
pub fn collect(socket: &mut Socket, count: usize, patience: Duration) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    let mut deadline = Instant::now() + patience;
    while datagrams.len() < count && Instant::now() < deadline {
        wait(socket, PollFlags::POLLIN, deadline - Instant::now());
        if socket.receive(|datagram| datagrams.push(datagram.to_vec())).unwrap() > 0 {
            deadline = Instant::now() + patience;
        }
    }
    datagrams
}

/// From now on the system call ends with this error in this thread and those that it starts.
pub fn refuse(system_call: libc::c_long, errno: libc::c_int) {
    let step = |code: u32, jump_true: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: 0,
        k: value,
    };
    // The number of the call is the first word that a filter sees.
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, system_call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which points to the filter's four steps, both alive here.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(result, 0, "seccomp: {}", io::Error::last_os_error());
}
