//! `polycast madcap`: a server of multicast addresses for a site.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use polycast_madcap::{Event, PORT, Scope, Server};

use super::{Outcome, interruption, print};

/// Arguments of `polycast madcap`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    /// The address that clients name, of this host; UDP port 2535 unless another is given
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = parse_listen)]
    listen: SocketAddr,
    /// The multicast addresses to give out, at most 65536. Clients accept those of 239.192.0.0/14 and ff12::/16
    #[arg(long, value_name = "PREFIX/BITS")]
    pool: Scope,
    /// The longest time that an address is given for; clients renew it in time. 1 s to 30 days
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_lease)]
    lease: Duration,
}

const EXAMPLES: &str = "\
Groups of different jobs then never meet. The protocol is MADCAP (RFC 2730).
Leases are kept in memory: after a restart, addresses that are in use may be
given again, which costs speed but never correctness.

Examples:
  polycast madcap --listen 10.0.0.1 --pool 239.192.0.0/24
  polycast madcap --listen 10.0.0.1:2535 --pool 239.192.16.0/20 --lease 12h
  polycast madcap --listen '[fd00::1]:2535' --pool ff12::8000:0/112
  POLYCAST_MADCAP=10.0.0.1 polycast run -n 8 -- ./a.out      a job that asks it";

/// The time between two looks at whether the program is to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// Larger packets are cut off and so not understood: no request needs as much.
const MAX_REQUEST_BYTES: usize = 1_500;

/// Runs the verb.
pub fn run(args: Args) -> Outcome {
    let mut server = Server::new(args.listen.ip(), args.pool, args.lease)?;
    let socket = UdpSocket::bind(args.listen).map_err(|e| bind_error(args.listen, &e))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let interrupted = interruption()?;
    // With port 0 the kernel chose one.
    print(&format!(
        "listening on {}, giving {} addresses of {} for up to {:?}\n",
        socket.local_addr()?,
        args.pool.addresses(),
        args.pool,
        args.lease
    ))?;
    let started = Instant::now();
    while !interrupted.load(Ordering::Relaxed) {
        serve_one(&mut server, &socket, started)?;
    }
    print(&format!("ended; {} in use\n", server.leases()))?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for one packet and answers it; nothing a client does or suffers ends the server.
fn serve_one(server: &mut Server, socket: &UdpSocket, started: Instant) -> io::Result<()> {
    let mut packet = [0; MAX_REQUEST_BYTES];
    // An error is the end of the patience, a signal, or a client that went away without waiting for its answer.
    let Ok((bytes, from)) = socket.recv_from(&mut packet) else { return Ok(()) };
    let (reply, event) = server.handle(started.elapsed(), &packet[..bytes]);
    if let Some(line) = describe(event) {
        print(&format!("{}: {line}; {} in use\n", from.ip(), server.leases()))?;
    }
    if let Some(error) = reply.and_then(|reply| socket.send_to(&reply, from).err()) {
        print(&format!("{}: the reply could not be sent: {error}\n", from.ip()))?;
    }
    Ok(())
}

/// A line for what changes a lease or could not; garbage gets none, so that nobody can fill the log with it.
fn describe(event: Event) -> Option<String> {
    match event {
        Event::Granted { address, lease } => Some(format!("{address} given for {lease:?}")),
        Event::Renewed { address, lease } => Some(format!("{address} renewed for {lease:?}")),
        Event::Released { address } => Some(format!("{address} released")),
        Event::Refused(code) => Some(format!("refused: {code}")),
        Event::Undecodable(_) | Event::NotForUs | Event::Offered => None,
    }
}

fn bind_error(listen: SocketAddr, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "another server has it; see `ss -lunp`, or choose another port",
        io::ErrorKind::AddrNotAvailable => "it must be an address of this host; see `ip -br address`",
        _ => "choose another with --listen",
    };
    format!("cannot listen on {listen}: {error}; {remedy}")
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT)).or_else(|_| text.parse());
    let address: SocketAddr = address
        .map_err(|_| "expected an address of this host, like 10.0.0.1 or [fd00::1]:2535".to_owned())?;
    if address.ip().is_unspecified() {
        return Err("expected the address that clients name: replies to all must come from one".to_owned());
    }
    Ok(address)
}

/// Reads `90s`, `30m`, `12h`, `2d`.
fn parse_lease(text: &str) -> Result<Duration, String> {
    let error = || format!("expected a time such as 90s, 30m, 12h or 2d, found {text:?}");
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(error()),
    };
    let number: u64 = number.parse().map_err(|_| error())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_leases() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("12h", 43_200), ("2d", 172_800)] {
            assert_eq!(parse_lease(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "1", "h", "1.5h", "-1h", "1 h", "99999999999999999999s", "9999999999999999999d"] {
            assert!(parse_lease(text).unwrap_err().contains("expected"), "{text}");
        }
    }

    #[test]
    fn addresses_to_listen_on() {
        assert_eq!(parse_listen("10.0.0.1").unwrap().to_string(), "10.0.0.1:2535");
        assert_eq!(parse_listen("10.0.0.1:99").unwrap().port(), 99);
        assert_eq!(parse_listen("[fd00::1]:99").unwrap().to_string(), "[fd00::1]:99");
        assert_eq!(parse_listen("fd00::1").unwrap().to_string(), "[fd00::1]:2535");
        for wrong in ["0.0.0.0", "[::]:2535", "host", "10.0.0.1:", "10.0.0.1:70000"] {
            assert!(parse_listen(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
    }
}
