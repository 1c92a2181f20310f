//! `polycast lab` of what killed labs have left.

use std::fs;

use crate::fake::World;

#[test]
fn a_damaged_file_does_not_hide_other_labs_and_drafts_go_with_down_all() {
    let world = World::with_doors(&[]);
    let folder = world.path().join("labs");
    fs::create_dir(&folder).unwrap();
    let plan = r#"{"switches":[],"hosts":[],"burst_bytes":1600,"loss_per_million":0}"#;
    let dead = format!(
        r#"{{"name":"box","keeper_pid":2147483647,"keeper_start_ticks":1,"ready":true,"lifetime":"until_down",
            "directory":"/nowhere","plan":{plan}}}"#
    );
    for (name, text) in
        [("box.json", &dead[..]), ("worn.json", "{"), (".lab0.json.polycast-2147483647.new", "{")]
    {
        fs::write(folder.join(name), text).unwrap();
    }
    let lab = |words: &[&str]| {
        let output = world.polycast(words).env("POLYCAST_LAB_DIRECTORY", &folder).output().unwrap();
        let [said, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.success(), said, errors)
    };
    let (is_well, listed, errors) = lab(&["lab", "list"]);
    assert!(!is_well && listed.contains("box") && errors.contains("worn.json"), "{listed}{errors}");
    let (is_well, _, errors) = lab(&["lab", "down", "--all"]);
    assert!(!is_well && errors.contains("remove it if"), "{errors}");
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["worn.json"]);
}
