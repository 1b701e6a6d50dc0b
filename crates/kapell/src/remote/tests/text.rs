use kapell_core::seams::Timestamp;

use super::super::task_run::draw_name;
use super::super::text::{age, long, time};

#[test]
fn ages_are_short() {
    for (seconds, want) in [
        (0, "0s"),
        (59, "59s"),
        (60, "1m00s"),
        (192, "3m12s"),
        (7_500, "2h05m"),
        (86_400 * 3 + 3_600 * 4, "3d04h"),
        (86_400 * 400, "400d00h"),
    ] {
        assert_eq!(long(seconds * 1_000), want);
    }
    assert_eq!(age(Timestamp(5_000), Timestamp(1_000)), "0s", "a clock that is ahead");
    assert_eq!(time(Timestamp(1_500)), "1970-01-01T00:00:01.500Z");
}

#[test]
fn a_drawn_name_tells_what_runs() {
    assert_eq!(draw_name("/bin/sleep", 0xabc), "sleep-000000000abc");
    assert_eq!(draw_name("./my script.sh", u64::MAX), "my-script-sh-ffffffffffff");
    assert_eq!(draw_name("..", 1), "task-000000000001");
    assert_eq!(draw_name("é", 1), "task-000000000001");
}
