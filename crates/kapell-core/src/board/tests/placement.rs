use crate::board::CellPresence;
use crate::board::placement::{NO_ANSWER, NO_CELL, Want, refused_by, remedies};

fn cell() -> CellPresence {
    serde_json::from_str(
        r#"{"cell_id":"a","url":"http://h:1","capacity":{"memory_mb":1024,"disk_mb":1024,"containers":30}}"#,
    )
    .unwrap()
}

#[test]
fn what_a_cell_says_becomes_a_placement_error() {
    for (said, error) in [
        ("insufficient resources: users", "insufficient resources: users (said by cell `a`)"),
        (
            "the cell is evacuating",
            "found no compatible cells: the cell is evacuating (said by cell `a`)",
        ),
    ] {
        assert_eq!(refused_by(&"a".into(), said), error);
    }
}

#[test]
fn a_placement_error_says_what_a_person_can_do() {
    let tags = ["gpu".to_owned()];
    let bare = Want { memory_mb: 512, disk_mb: 64, rootfs: None, placement_tags: &[] };
    let tagged = Want { placement_tags: &tags, ..bare };
    let huge = Want { memory_mb: 4096, ..bare };
    let image = Want { rootfs: Some("docker://busybox"), ..bare };
    let cases = [
        (NO_CELL, bare, "start a cell"),
        (
            "found no compatible cells: there is no cell",
            tagged,
            "start a cell with placement tag gpu",
        ),
        (
            NO_ANSWER,
            bare,
            "see why the cells do not answer: `kapell cells` tells where each is reached",
        ),
        ("insufficient resources: memory (wanted 512 MB)", bare, "free 512 MB of memory on a cell"),
        (
            "insufficient resources: memory, disk (wanted 512 MB)",
            tagged,
            "free 512 MB of memory on a cell with placement tag gpu",
        ),
        (
            "insufficient resources: memory (wanted 4096 MB)",
            huge,
            "start a cell with at least 4096 MB of memory: the largest has 1024 MB",
        ),
        ("insufficient resources: containers (wanted)", bare, "stop a container on a cell"),
        (
            "insufficient resources: no cell has all of it at once (wanted)",
            bare,
            "free 512 MB of memory and 64 MB of disk on the same cell",
        ),
        (
            "found no compatible cells: no cell runs a rootfs with the scheme \"docker\"",
            image,
            "start a cell that runs a rootfs with the scheme `docker`",
        ),
        (
            "found no compatible cells: no cell has placement tag \"gpu\"",
            tagged,
            "start a cell with placement tag gpu",
        ),
        (
            "found no compatible cells: every cell requires placement tags, and none are wanted",
            bare,
            "start a cell that requires no placement tags",
        ),
    ];
    for (error, want, first) in cases {
        assert_eq!(remedies(error, &want, &[cell()])[0], first, "{error}");
    }
}
