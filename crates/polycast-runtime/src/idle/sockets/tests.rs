use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    (sender, receiver)
}

/// Sockets of their own: those of other tests, which run beside this one, are not in them.
fn watching(receivers: &[&TcpStream]) -> Sockets {
    let sets: &Sets = Box::leak(Box::new(Sets::new().unwrap()));
    let mut sockets = Sockets { sets: Some(sets), ..Sockets::UNKNOWN };
    for receiver in receivers {
        sets.add(receiver.as_raw_fd()).unwrap();
        sockets.watched.insert(receiver.as_raw_fd());
    }
    sets.forget_room();
    sockets
}

#[test]
fn data_on_a_connection_ends_the_sleep() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut sender, receiver) = pair(&listener);
    let mut sockets = watching(&[&receiver]);
    assert_eq!(sleep(sockets.sets, None, Duration::from_millis(1), true), Wake::TimeIsUp);
    assert!(!sockets.look());
    sender.write_all(b"x").unwrap();
    assert_eq!(sleep(sockets.sets, None, LONG, true), Wake::Ready);
    assert!(sockets.look());
}

#[test]
fn sockets_that_nobody_reads_are_watched_no_more_and_the_others_are() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let of_program: Vec<_> = (0..MAX_SEEN + 9).map(|_| pair(&listener)).collect();
    let (mut to_mpi, of_mpi) = pair(&listener);
    let watched: Vec<_> = of_program.iter().map(|(_, receiver)| receiver).chain([&of_mpi]).collect();
    let mut sockets = watching(&watched);
    of_program.iter().for_each(|(sender, _)| (&mut &*sender).write_all(b"for the program").unwrap());
    assert_eq!(sleep(sockets.sets, None, LONG, false), Wake::Ready);
    let looks = (0..1000).take_while(|_| sockets.look()).count() as u32;
    assert_eq!(looks, LOOKS_UNTIL_MUTED - 1, "however many they are");
    assert_eq!(sleep(sockets.sets, None, Duration::from_millis(1), false), Wake::TimeIsUp);
    to_mpi.write_all(b"a message").unwrap();
    assert_eq!(sleep(sockets.sets, None, LONG, false), Wake::Ready);
    assert!(sockets.look());
}

#[test]
fn a_socket_that_is_read_between_looks_stays() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut sender, receiver) = pair(&listener);
    let mut sockets = watching(&[&receiver]);
    for _ in 0..4 * LOOKS_UNTIL_MUTED {
        sender.write_all(b"a packet").unwrap();
        assert_eq!(sleep(sockets.sets, None, LONG, false), Wake::Ready);
        assert!(sockets.look());
        (&receiver).read_exact(&mut [0; 8]).unwrap();
        assert!(!sockets.look());
    }
}

#[test]
fn room_in_a_buffer_that_was_full_ends_the_sleep_of_who_sends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut sender, mut receiver) = pair(&listener);
    sender.set_nonblocking(true).unwrap();
    let sockets = watching(&[&sender]);
    let nap = Duration::from_millis(1);
    assert_eq!(sleep(sockets.sets, None, nap, true), Wake::TimeIsUp, "it had room all the time");
    let mut sent = 0;
    let full = loop {
        match sender.write(&[0; 1 << 16]) {
            Ok(bytes) => sent += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
    receiver.read_exact(&mut vec![0; sent]).unwrap();
    assert_eq!(sleep(sockets.sets, None, LONG, true), Wake::Ready);
    assert_eq!(sleep(sockets.sets, None, nap, false), Wake::TimeIsUp, "who does not send does not care");
}

/// With so many a list of descriptors would be long to look through at every sleep, and was cut once.
#[test]
fn connections_are_watched_however_many_there_are() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut first, of_first) = pair(&listener);
    let more: Vec<OwnedFd> = (0..1500).map_while(|_| of_first.as_fd().try_clone_to_owned().ok()).collect();
    let (mut last, of_last) = pair(&listener);
    let mut sockets = watching(&[&of_first]);
    let sets = sockets.sets.unwrap();
    for descriptor in more.iter().map(AsRawFd::as_raw_fd).chain([of_last.as_raw_fd()]) {
        sets.add(descriptor).unwrap();
        sockets.watched.insert(descriptor);
    }
    sets.forget_room();
    last.write_all(b"x").unwrap();
    assert_eq!(sleep(Some(sets), None, LONG, true), Wake::Ready);
    first.write_all(b"x").unwrap();
    assert!(sockets.look());
}

/// A long list takes milliseconds to read.
#[test]
fn a_long_list_is_doubted_less_often() {
    let read_at = Instant::now();
    let is_read_again = |watched: RawFd, millis| {
        let mut sockets = Sockets { listed: Some(read_at), ..Sockets::UNKNOWN };
        sockets.watched.extend(0..watched);
        sockets.doubt(read_at + Duration::from_millis(millis));
        sockets.listed.is_none()
    };
    assert_eq!([49, 50].map(|millis| is_read_again(8, millis)), [false, true]);
    assert_eq!([499, 500].map(|millis| is_read_again(1000, millis)), [false, true]);
}

#[test]
fn what_was_made_anew_too_often_is_not_made_again() {
    let mut sockets = Sockets { lost: MAX_SETS, ..Sockets::UNKNOWN };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _pair = pair(&listener);
    assert!(sockets.sets(Instant::now()).is_none());
    assert!(!sockets.look());
}
