//! What jobs leave to later ones.

use std::sync::LazyLock;

use polycast_core::network::Network;
use polycast_core::policy::trials::{Finding, MAX_AGE_DAYS, Memory, Sameness, Setting};
use polycast_core::policy::{
    Call, Capabilities, Choice, Collective, CommunicatorShape, Epoch, Policy, Rules, Table,
};
use polycast_core::units::Bytes;

const TABLE: &str = "version = 1\n\
    [[rule]]\ncollective = \"bcast\"\nbytes = \"8KiB..\"\nuse = \"multicast-pull\"\n\
    [[rule]]\ncollective = \"bcast\"\nbytes = \"1KiB..\"\nuse = \"chain:segment=1KiB\"\n";
const TODAY: u64 = 20_780;

fn setting() -> Setting {
    let shape = CommunicatorShape::new(16, 16, None).expect("a shape");
    Setting { mpi: "/usr/lib/libmpi.so.40".to_owned(), hosts: "node#".to_owned(), build: 0xabc, shape }
}

fn policy(shape: CommunicatorShape) -> Policy {
    let table = Table::parse(TABLE, "a table").expect("a table");
    Policy::new(Rules::new(&[], Some(&table), &Table::shipped(), None), shape)
}

/// The file in which trials leave what they have found.
pub fn memory(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (memories, unread) = Memory::read_all(&text, TODAY);
    assert!(memories.len() + unread <= text.lines().count());
    // Tables are parsed once.
    static POLICY: LazyLock<Policy> = LazyLock::new(|| policy(setting().shape));
    let setting = setting();
    let rate = |rate: &str| Network { rate: rate.parse().ok(), ..Network::default() };
    let fast = Setting { shape: setting.shape.on_network(rate("1gbit")), ..setting.clone() };
    for memory in &memories {
        assert_eq!(Memory::read(&memory.line(), TODAY), std::slice::from_ref(memory));
        let _ = (memory.distance(&setting), memory.distance(&fast), memory.place());
        let _ = memory.is_about(setting.shape, Collective::Broadcast, u64::MAX);
        for recalled in memory.recall(&setting, &POLICY).into_iter().chain(memory.recall_tuned()) {
            assert!(usize::from(recalled.arm) < recalled.times.len() && recalled.until_calls > 0);
            assert_eq!(recalled.times.last().map(|(way, _)| *way), Some(Choice::Stock));
        }
    }
}

/// Files of some lines, as jobs would write them.
pub fn memory_seeds() -> Vec<Vec<u8>> {
    let setting = setting();
    let policy = policy(setting.shape);
    let line = |bytes: u64, arm: u8, day: u64| {
        let call = Call::new(Collective::Broadcast, Bytes(bytes));
        let of = policy.sameness(&call, Capabilities::ALL, Epoch::default());
        let ways: Vec<Choice> = policy.ways_of(of).collect();
        let finding = Finding { of, arm: arm % ways.len() as u8, nanos: [10, 20, 30, 40] };
        Memory::new(&setting, &ways, &finding, 512, day).line() + "\n"
    };
    let tuned = {
        let of = Sameness::tuned(Collective::Broadcast, 9000, Capabilities::ALL);
        let ways = ["chain:segment=1KiB", "stock"]
            .map(|way| Choice::read(Collective::Broadcast, way).expect("a way"));
        Memory::new(&setting, &ways, &Finding { of, arm: 1, nanos: [30, 10, 0, 0] }, 256, TODAY).line() + "\n"
    };
    let mut all: Vec<String> = [(1, 0), (900, 0), (1024, 1), (4096, 0), (9000, 2), (9000, 0), (1 << 40, 1)]
        .map(|(bytes, arm)| line(bytes, arm, TODAY))
        .to_vec();
    all.push(tuned.clone());
    all.push(
        line(9000, 0, TODAY - MAX_AGE_DAYS - 1) + &line(9000, 1, TODAY) + &line(9000, 2, TODAY - 1) + &tuned,
    );
    all.push(format!("\n{}\n{tuned}", &line(2000, 0, TODAY)[..100]));
    all.into_iter().map(String::into_bytes).collect()
}
