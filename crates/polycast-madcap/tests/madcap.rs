//! The client against servers that are as they should be, absent, slow, or lying.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use polycast_madcap::{
    Client, ClientError, Kind, Lease, LeaseId, LeaseRenewer, Message, NakCode, Scope, Server,
};
use polycast_net::Family;

const HOUR: Duration = Duration::from_secs(3_600);
/// What has an answer is waited for however long the machine is busy elsewhere.
const LONG: Duration = Duration::from_secs(300);
/// As a job has it.
const FIRST_REPEAT: Duration = Duration::from_millis(200);

/// A server on the loopback interface which sends what `answer` makes of a request; it ends with the test's process.
fn serve(mut answer: impl FnMut(&UdpSocket, SocketAddr, &[u8]) + Send + 'static) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut buffer = [0; 1_500];
        loop {
            let (bytes, from) = socket.recv_from(&mut buffer).unwrap();
            answer(&socket, from, &buffer[..bytes]);
        }
    });
    address
}

fn honest(pool: &str) -> Server {
    Server::new("127.0.0.1".parse().unwrap(), pool.parse().unwrap(), HOUR).unwrap()
}

/// An honest server whose replies are changed on their way.
fn serve_changed(mut change: impl FnMut(Message) -> Vec<u8> + Send + 'static) -> String {
    let mut server = honest("239.192.0.0/24");
    serve(move |socket, from, packet| {
        let (reply, _) = server.handle(Duration::ZERO, packet);
        let changed = change(Message::decode(&reply.unwrap()).unwrap());
        socket.send_to(&changed, from).unwrap();
    })
}

fn numbers() -> impl FnMut() -> u64 {
    let mut state: u64 = 0;
    move || {
        state += 1;
        state.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

fn client(server: &str) -> Client {
    Client::new(server, Scope::of(Family::V4)).unwrap()
}

/// One that hears the answer.
fn patient(server: &str) -> Client {
    client(server).patient(LONG, FIRST_REPEAT)
}

fn acquire(server: &str) -> Result<Lease, ClientError> {
    client(server).acquire(HOUR, &mut numbers())
}

fn acquire_patiently(server: &str) -> Result<Lease, ClientError> {
    patient(server).acquire(HOUR, &mut numbers())
}

#[test]
fn an_address_is_given_renewed_and_given_back() {
    let started = Instant::now();
    let mut server = honest("239.192.3.0/31");
    let address = serve(move |socket, from, packet| {
        let (reply, _) = server.handle(started.elapsed(), packet);
        socket.send_to(&reply.unwrap(), from).unwrap();
    });
    let mut next = numbers();
    let client = patient(&address);
    let first = client.acquire(10 * HOUR, &mut next).unwrap();
    assert_eq!((first.address.to_string().as_str(), first.duration), ("239.192.3.0", HOUR));
    assert_eq!(first.renew_after(), HOUR / 2);
    assert!((5_000..=32_767).contains(&first.group(polycast_net::Ports::default(), &mut next).port));
    let second = client.acquire(HOUR, &mut next).unwrap();
    assert_ne!(second.address, first.address);
    let full = client.acquire(HOUR, &mut next).unwrap_err();
    assert!(matches!(full, ClientError::Refused { code: NakCode::NotCompleted, .. }), "{full}");

    assert_eq!(client.renew(&first, &mut next).unwrap(), first);
    client.release(first, &mut next).unwrap();
    let gone = client.renew(&first, &mut next).unwrap_err();
    assert!(matches!(gone, ClientError::Refused { code: NakCode::UnknownLease, .. }), "{gone}");
    assert_eq!(client.acquire(HOUR, &mut next).unwrap().address, first.address);
}

#[test]
fn a_keeper_renews_in_time_and_gives_back_at_the_end() {
    let (log, events) = std::sync::mpsc::channel();
    let mut server = honest("239.192.3.0/31");
    let address = serve(move |socket, from, packet| {
        log.send(Message::decode(packet).unwrap().kind).unwrap();
        // No lease ends here while the machine does something else.
        let (reply, _) = server.handle(Duration::ZERO, packet);
        socket.send_to(&reply.unwrap(), from).unwrap();
    });
    let client = client(&address).patient(LONG, LONG);
    let lease = client.acquire(Duration::from_secs(2), &mut numbers()).unwrap();
    let keeper = LeaseRenewer::new(client, lease, numbers());
    assert_eq!(events.recv().unwrap(), Kind::Request);
    assert_eq!(events.recv_timeout(LONG).unwrap(), Kind::Renew);
    drop(keeper);
    assert!(events.iter().any(|kind| kind == Kind::Release));
}

#[test]
fn ipv6_addresses_are_given_too() {
    let mut server = honest("ff12::8000:100/120");
    let address = serve(move |socket, from, packet| {
        socket.send_to(&server.handle(Duration::ZERO, packet).0.unwrap(), from).unwrap();
    });
    let client = Client::new(&address, Scope::of(Family::V6)).unwrap().patient(LONG, FIRST_REPEAT);
    let lease = client.acquire(HOUR, &mut numbers()).unwrap();
    assert_eq!(lease.address.to_string(), "ff12::8000:100");
}

#[test]
fn an_absent_server_costs_two_seconds() {
    let nobody = serve(|_, _, _| {});
    let started = Instant::now();
    let error = acquire(&nobody).unwrap_err();
    let elapsed = started.elapsed();
    assert!(matches!(error, ClientError::Silent { refused: None, .. }), "{error}");
    assert!(error.to_string().contains("is `polycast madcap` running there"), "{error}");
    assert!(elapsed >= Duration::from_secs(2), "{elapsed:?}");
}

#[test]
fn a_port_that_nobody_has_is_said_at_once() {
    // At an address of its own, so that no other test gets the port meanwhile.
    let unused = UdpSocket::bind("127.77.0.1:0").unwrap().local_addr().unwrap();
    // Not the error of somebody who has waited in vain.
    let error = acquire(&unused.to_string()).unwrap_err();
    assert!(matches!(error, ClientError::Network { .. }), "{error}");
}

#[test]
fn a_slow_server_and_lost_packets_are_waited_for() {
    let mut server = honest("239.192.0.0/24");
    let mut packets = 0;
    let address = serve(move |socket, from, packet| {
        packets += 1;
        let reply = server.handle(Duration::ZERO, packet).0.unwrap();
        // The first two are lost, the third takes its time.
        if packets > 2 {
            thread::sleep(Duration::from_millis(300));
            socket.send_to(&reply, from).unwrap();
        }
    });
    assert_eq!(acquire_patiently(&address).unwrap().address.to_string(), "239.192.0.0");
}

#[test]
fn lies_are_not_believed_and_the_last_one_is_told() {
    type Lie = Box<dyn FnMut(Message) -> Vec<u8> + Send>;
    let lie = |change: fn(&mut Message)| -> Lie {
        Box::new(move |mut reply: Message| {
            change(&mut reply);
            reply.encode()
        })
    };
    let lies: Vec<(Lie, &str)> = vec![
        (lie(|reply| reply.xid ^= 1), "the reply to another request"),
        (lie(|reply| reply.address = "224.0.0.1".parse().ok()), "224.0.0.1 is outside 239.192.0.0/14"),
        (lie(|reply| reply.address = "10.0.0.1".parse().ok()), "10.0.0.1 is outside"),
        (lie(|reply| reply.address = None), "no address"),
        (lie(|reply| reply.lease_seconds = None), "no lease time"),
        (lie(|reply| reply.lease_seconds = Some(0)), "no lease time"),
        (lie(|reply| reply.lease = LeaseId::new(b"another")), "the reply for another lease"),
        (lie(|reply| reply.kind = Kind::Offer), "a message of kind Offer"),
        (Box::new(|reply| reply.encode()[..20].to_vec()), "cut off"),
        (Box::new(|_| vec![0xff; 1_500]), "version 255"),
        (Box::new(|_| Vec::new()), "cut off"),
    ];
    // Each takes the full two seconds; longer where none was heard in that time, because the machine did something else.
    let told = |server: &str| {
        [2, 20, 200].into_iter().find_map(|seconds| {
            let client = client(server).patient(Duration::from_secs(seconds), FIRST_REPEAT);
            let error = client.acquire(HOUR, &mut numbers()).unwrap_err();
            (!matches!(error, ClientError::Silent { refused: None, .. })).then(|| error.to_string())
        })
    };
    thread::scope(|scope| {
        for (lie, expected) in lies {
            scope.spawn(move || {
                let error = told(&serve_changed(lie)).expect("the lie is heard");
                assert!(error.contains(expected), "expected {expected:?}, got {error}");
            });
        }
    });
}

#[test]
fn the_truth_after_a_lie_is_accepted() {
    let mut replies = 0;
    let address = serve_changed(move |mut reply| {
        replies += 1;
        if replies == 1 {
            reply.xid ^= 1;
        }
        reply.encode()
    });
    assert!(acquire_patiently(&address).is_ok());
}

#[test]
fn a_reply_from_elsewhere_is_not_heard() {
    let impostor = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut server = honest("239.192.0.0/24");
    let address = serve(move |_, from, packet| {
        let reply = server.handle(Duration::ZERO, packet).0.unwrap();
        impostor.send_to(&reply, from).unwrap();
    });
    let error = acquire(&address).unwrap_err();
    assert!(matches!(error, ClientError::Silent { refused: None, .. }), "{error}");
}

#[test]
fn servers_are_named_with_and_without_a_port() {
    let scope = Scope::of(Family::V4);
    for server in ["127.0.0.1", "127.0.0.1:99", "localhost", "localhost:99", " 127.0.0.1 "] {
        Client::new(server, scope).unwrap_or_else(|e| panic!("{server}: {e}"));
    }
    for (server, found) in [("localhost:70000", "the port is no number"), ("", "no name"), (":99", "no name")]
    {
        let error = Client::new(server, scope).unwrap_err().to_string();
        assert!(error.contains(found) && error.contains("expected an address or a name"), "{error}");
    }
}
