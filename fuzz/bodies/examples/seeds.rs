//! Writes the inputs that a fuzzer starts from: what polycast itself would write, and what users do.
//!
//! `cargo run -p polycast-fuzz-bodies --example seeds` adds to `fuzz/corpus` those that are not there, and says which. None is changed: what
//! was once written in another way is an input, too.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use polycast_copy::{
    BlockHeader, Entry, Extent, Kind as Copied, Manifest, Moment, Name, PackedSegments, Segments, Stream,
    TAG_BYTES, Tag, pack,
};
use polycast_core::policy::SHIPPED_TEXT;
use polycast_madcap::{Kind as Madcap, LeaseId, Message};
use polycast_net::Family;
use polycast_protocol::message::{self, MessageHeader};
use polycast_protocol::wire::{FLAG_AGAIN, FLAG_WAITED, Header, Kind, seal};
use polycast_protocol::{Fragmentation, KEY_BYTES, Key, ReceptionReport, Run};

/// As in the bodies, so that the tags are right.
const JOB: u32 = 0x6a6f_6231;
const KEY: [u8; KEY_BYTES] = [0x5a; KEY_BYTES];

fn datagrams() -> Vec<Vec<u8>> {
    let kinds = [Kind::Data, Kind::End, Kind::Parity, Kind::Probe, Kind::Request, Kind::Done];
    let headers = kinds.into_iter().flat_map(|kind| {
        [0, FLAG_AGAIN, FLAG_WAITED].map(|flags| Header {
            kind,
            flags,
            job: JOB,
            communicator: 3,
            operation: u64::MAX - 1,
            fragment: 7,
        })
    });
    headers
        .enumerate()
        .map(|(index, header)| {
            let mut datagram = Vec::new();
            seal(&header, &vec![0xa5; index * 8], &Key::from_bytes(KEY), &mut datagram);
            datagram
        })
        .collect()
}

fn messages() -> Vec<Vec<u8>> {
    let header = MessageHeader {
        communicator: 3,
        operation: 9,
        message_bytes: 100,
        root_waited: true,
        leaves: false,
        knows_of_deaf: false,
    };
    let cut = Fragmentation::new(100, 7).expect("a cut");
    let runs = [Run { first: 0, count: 2 }, Run { first: 14, count: 1 }, Run { first: 5, count: 3 }];
    let mut all = Vec::new();
    let mut add = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut message = Vec::new();
        write(&mut message);
        all.push(message);
    };
    for count in 0..=runs.len() {
        add(&|m| message::encode_fragments(&header, &runs[..count], cut, &[0xa5; 100], m));
        add(&|m| message::encode_request(&header, &runs[..count], m));
    }
    add(&|m| message::encode_end(&header, m));
    add(&|m| message::encode_done(&header, m));
    add(&|m| message::encode_arrived(&header, &ReceptionReport { seen: [1, 2], repaired: [0, 1] }, m));
    all
}

fn madcap() -> Vec<Vec<u8>> {
    let kinds = [
        Madcap::Discover,
        Madcap::Offer,
        Madcap::Request,
        Madcap::Renew,
        Madcap::Ack,
        Madcap::Nak,
        Madcap::Release,
        Madcap::GetInfo,
    ];
    let one = |kind, family, server: Option<Ipv4Addr>| {
        let mut message = Message::new(kind, family, 0x1234_5678);
        message.lease = LeaseId::new(b"job 17 on host 3");
        message.server = server.map(Into::into);
        message.encode()
    };
    kinds
        .into_iter()
        .flat_map(|kind| {
            [one(kind, Family::V4, Some(Ipv4Addr::new(10, 0, 0, 1))), one(kind, Family::V6, None)]
        })
        .collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn tables() -> Vec<Vec<u8>> {
    let rule = |lines: &str| format!("version = 1\n[[rule]]\ncollective = \"bcast\"\n{lines}\n");
    let rules = [
        "use = \"stock\"",
        "bytes = \"8KiB..64KiB\"\nuse = \"chain:segment=2KiB,ready\"",
        "ranks = \"..17\"\nnodes = 16\nuse = \"binary:segment=2KiB\"\nbecause = \"measured\"",
        "ranks_per_node = \"1\"\nuse = \"scatter-ring\"",
        "bytes = \"1..\"\nuse = \"k-nomial:k=4\"",
        "bytes = \"4KiB..8KiB\"\nuse = \"split-binary:segment=1KiB\"\n[[rule]]\ncollective = \"bcast\"\nuse = \"flat\"",
        "use = \"multicast-pull:sync=random,parity\"",
        "use = \"multicast-push:sync=50us\"\nbytes = \"..1KiB\"",
        "ranks = 18446744073709551615\nuse = \"stock\"",
    ];
    let mut all: Vec<Vec<u8>> = rules.iter().map(|lines| rule(lines).into_bytes()).collect();
    all.extend(texts(&["version = 1", "version = 2", "rule = [", SHIPPED_TEXT]));
    all
}

fn topologies() -> Vec<Vec<u8>> {
    texts(&[
        "SwitchName=s0 Nodes=n[0-15]",
        "SwitchName=s0 Nodes=a[0-3],b[08-11],login\nSwitchName=s1 Nodes=c LinkSpeed=10000\nSwitchName=top Switches=s[0-1]\n",
        "# fat tree\nswitchname=s0 NODES=dev[0-5] linkspeed=1000 # fast\n",
        "SwitchName=s0 Nodes=rack[0-1]node[00-15]x",
        "SwitchName=s0 Nodes=a[0-999]b[0-9]",
        "SwitchName=s0 Nodes=a[0-65536]",
        "SwitchName=s0 Switches=s1 Nodes=a\nSwitchName=s1 Switches=s2 Nodes=b\nSwitchName=s2 Nodes=c",
        "SwitchName=s Nodes=a\nSwitchName=t Switches=s\nSwitchName=u Switches=s,t",
        "SwitchName=r Nodes=b\nSwitchName=s Nodes=a Switches=t\nSwitchName=t Switches=s",
        "SwitchName=s Nodes=a[0-,b],c]]",
        "BlockName=b Nodes=a",
        "",
        "BlockName=b[0 Nodes=a \\\n\nBlockSizes=4\nBlockName=c Nodes=d[0-3]",
        "---\n- topology: main\n  cluster_default: true\n  tree:\n    switches:\n      - switch: core\n        children: leaf[0-1]\n      \
         - switch: leaf0\n        nodes: dev[0-5]\n      - switch: leaf1\n        nodes: [\"dev[6-8]\", login]\n- topology: all\n  flat: true\n",
        "- topology: racks\n  block:\n    block_sizes: [4, 8]\n    blocks:\n      - block: b0\n        nodes: dev[0-3]\n      - block: b1\n        \
         nodes: dev[4-7]\n",
        "- topology: a\n  ring: {}\n- topology: b\n  tree: {switches: [{switch: s, nodes: n}]}\n  cluster_default: true",
        "- &a [*a, |\n  b\n, 'c', \"\\u00e9\", !!str d, ? e : f]",
        r#"{ "format": "polycast-topology", "version": 1, "switches": [ { "name": "core" }, { "name": "leaf", "parent": "core",
           "uplink": { "bits_per_second": 10000000000, "latency_ns": 500 } } ],
           "hosts": [ { "name": "a", "switch": "leaf", "link": { "bits_per_second": 8000 } } ], "notes": [ "x\ty" ] }"#,
        r#"{"format":"polycast-topology","version":1,"switches":[{"name":"a","parent":"b"},{"name":"b","parent":"a"}],"hosts":[{"name":"h","switch":"a"}]}"#,
        r#"{"lldp":[{}]}"#,
        "graph topology { a -- b }",
    ])
}

fn lldp() -> Vec<Vec<u8>> {
    let seen = |interface: &str, name: &str, id: &str, bridge: bool, medium: &str| {
        format!(
            r#"{{"name":"{interface}","chassis":[{{"id":[{{"type":"mac","value":"{id}"}}],"name":[{{"value":"{name}"}}],"capability":[{{"type":"Bridge","enabled":{bridge}}}]}}],"port":[{{"auto-negotiation":[{{"current":[{{"value":"{medium}"}}]}}]}}]}}"#
        )
    };
    let host = |seen: &[String]| format!(r#"{{"lldp":[{{"interface":[{}]}}]}}"#, seen.join(","));
    let leaf = |name, id| host(&[seen("eth0", name, id, true, "10GigBaseLR - optics")]);
    let all = [
        leaf("leaf0", "00:01"),
        leaf("", "00:01"),
        leaf("", ""),
        host(&[]),
        host(&[seen("eth0", "a", "1", true, "1000BaseTFD"), seen("eth1", "b", "2", true, "40GbaseCR4")]),
        host(&[seen("eth0", "container", "1", false, "")]),
        [leaf("leaf0", "1"), leaf("leaf0", "2"), leaf("leaf0", "1")].join("\0"),
        [leaf("leaf0", "1"), leaf("leaf1", "2"), host(&[])].join("\0"),
        r#"{"lldp":[{}]}"#.to_owned(),
        r#"{"lldp":{"interface":{}}}"#.to_owned(),
        r#"{"lldp":[{"interface":[{"name":"x","chassis":[{"id":[{}]}]}]}]}"#.to_owned(),
        "{".to_owned(),
    ];
    all.into_iter().map(String::into_bytes).collect()
}

fn addresses() -> Vec<Vec<u8>> {
    texts(&[
        "a s3.s0.a\nb s3.s0.b\nc s3.s1.c\n",
        "a s3.s0.a\na s3.s0.a\n",
        "a.org s0.a\nb s0.b.org\nc s0.other\n",
        "a block1.a\nb block2.b\n",
        "a a\nb b\n",
        "a a\nb s.b\n",
        "a s3..a\nb s3.s0.b\n",
        "a s[3-4].s0.a\nb s[3-4].s1.b\n",
        "a s3.s0.a\nb s4.s0.b\na s3.s1.a\n",
        "a s.s.a\n",
        "a s0.s1.a\nb s1.s0.b\n",
        "a s[0.a\nb s/.b\n",
    ])
}

/// Their meaning is in what the body reads from them; a fuzzer makes better ones.
fn endpoints() -> Vec<Vec<u8>> {
    (0..16u64)
        .map(|seed| {
            let mut mixed = seed;
            let byte = |_| {
                mixed = mixed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (mixed >> 56) as u8
            };
            (0..40 + 60 * seed).map(byte).collect()
        })
        .collect()
}

/// A list of each kind of entry, the same in parts, and a block's header.
fn copies() -> Vec<Vec<u8>> {
    let kinds = [
        (None, Copied::Folder),
        (Some(0), Copied::File { bytes: 70_000, extents: vec![Extent { at: 0, bytes: 70_000 }] }),
        (
            Some(0),
            Copied::File {
                bytes: 99,
                extents: vec![Extent { at: 3, bytes: 4 }, Extent { at: 50, bytes: 9 }],
            },
        ),
        (Some(0), Copied::Folder),
        (Some(3), Copied::Link(b"../../etc".as_slice().into())),
        (Some(3), Copied::HardLink(1)),
        (None, Copied::File { bytes: 0, extents: Vec::new() }),
    ];
    let mut manifest = Manifest::default();
    let mut written = Vec::new();
    for (number, (parent, kind)) in kinds.into_iter().enumerate() {
        let modified = Moment { seconds: 1_700_000_000 - number as i64, nanos: 7 };
        let name = Name::new(format!("name-{number}").as_bytes()).expect("a name");
        let _ = manifest.add(Entry { parent, name, mode: 0o755, modified, kind });
        written.push(manifest.encode());
        // The last entry cut off in its middle.
        let whole = manifest.encode();
        written.push(whole[..whole.len() - 5].to_vec());
    }
    let tag = Tag::from_bytes([9; TAG_BYTES]);
    written.push(BlockHeader { block: 1 << 33, bytes: 65_536, tag }.encode().to_vec());
    written
}

/// As `crates/polycast-runtime/src/settings/job.rs` writes them.
fn settings() -> Vec<Vec<u8>> {
    let quoted = |text: &str| format!("[\"a file\",\"{}\"]", text.replace('"', "\\\"").replace('\n', "\\n"));
    let table = quoted("version = 1\n[[rule]]\ncollective = \"bcast\"\nbytes = \"8KiB..\"\nuse = \"flat\"\n");
    let topology = format!("{{\"Known\":{}}}", quoted("SwitchName=s0 Nodes=a[0-3]\nSwitchName=s1 Nodes=b\n"));
    let forced = r#"[["bcast","chain:segment=4KiB"],["allreduce","stock"]]"#;
    let mut all = Vec::new();
    for (forced, table) in [("[]", "null"), (forced, "null"), ("[]", &table), (forced, &table)] {
        for (network, tune) in
            [("\"Unsaid\"", "null"), ("\"Flat\"", r#"{"secs":60,"nanos":1}"#), (&topology, "null")]
        {
            let settings = format!(
                r#"{{"rules":{{"forced":{forced},"table":{table}}},"network":{network},"parameters":null,"trials":true,"tune":{tune}}}"#
            );
            all.push(settings.into_bytes());
        }
    }
    all
}

/// Compressed blocks without their tags, and segments as the body expects them.
fn packed() -> Vec<Vec<u8>> {
    let key = polycast_copy::Key::from_bytes([7; polycast_copy::KEY_BYTES]);
    let texts = [
        b"x".repeat(4_096),
        b"abcdefghijklmnop".repeat(20),
        b"0123456789abcdefghij, ".repeat(7),
        vec![0; 70_000],
    ];
    let compressed = |text: &Vec<u8>| pack(&key, 3, text).expect("it becomes shorter");
    let mut all: Vec<Vec<u8>> = texts.iter().map(|text| compressed(text)[TAG_BYTES..].to_vec()).collect();
    let stream = Stream { bytes: (9 << 19) + 1, manifest_bytes: 1, block_bytes: 512 << 10 };
    let segments = PackedSegments::new(Segments::new(stream, 1));
    let block = compressed(&texts[0]);
    for segment in 0..segments.count() {
        let told: Vec<usize> = segments
            .told_by(segment)
            .map(|other| segments.bytes(other, block.len() * segments.blocks(other).count()))
            .collect();
        let blocks =
            segments.blocks(segment).map(|number| (Tag::from_bytes([number as u8; TAG_BYTES]), &block[..]));
        all.push(segments.encode(segment, &told, blocks));
    }
    // A literal and a match that is told to be very long; one that leads before the beginning; one of nothing.
    all.push([&[0x1f, b'x', 1, 0][..], &[255; 300], &[0]].concat());
    all.push(vec![0x14, b'x', 9, 0, 0x00]);
    all.push(vec![0xf0, 255, 255, 255]);
    all.push(vec![0x00]);
    all.push(texts[1].clone());
    all.push(b"short".to_vec());
    all
}

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for (target, inputs) in [
        ("datagram", datagrams()),
        ("message", messages()),
        ("madcap", madcap()),
        ("table", tables()),
        ("topology", topologies()),
        ("lldp", lldp()),
        ("addresses", addresses()),
        ("trace", polycast_fuzz_bodies::trace_seeds()),
        ("endpoint", endpoints()),
        ("copy", copies()),
        ("packed", packed()),
        ("memory", polycast_fuzz_bodies::memory_seeds()),
        ("settings", settings()),
    ] {
        let (there, added) = add(&corpus.join(target), &inputs)?;
        let names = if added.is_empty() { "nothing".to_owned() } else { added.join(", ") };
        println!("{target}: {there} of {} are there; added {names}", inputs.len());
    }
    Ok(())
}

/// How many of the inputs a folder has, and the names of files of those that it lacked.
fn add(folder: &Path, inputs: &[Vec<u8>]) -> io::Result<(usize, Vec<String>)> {
    fs::create_dir_all(folder)?;
    let contents = fs::read_dir(folder)?.map(|entry| fs::read(entry?.path()));
    let mut known: BTreeSet<Vec<u8>> = contents.collect::<io::Result<_>>()?;
    let mut numbers = 0..;
    let mut free = || {
        numbers.by_ref().map(|number| format!("seed-{number:02}")).find(|name| !folder.join(name).exists())
    };
    let mut added = Vec::new();
    for input in inputs.iter().filter(|input| known.insert(input.to_vec())) {
        let name = free().expect("numbers do not end");
        fs::write(folder.join(&name), input)?;
        added.push(name);
    }
    Ok((inputs.len() - added.len(), added))
}
