use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use crate::job::Length;

#[test]
fn a_length_is_a_text_or_a_number_of_seconds() {
    for (written, millis, text) in [
        (json!("90s"), 90_000, "1m30s"),
        (json!(90), 90_000, "1m30s"),
        (json!(0.25), 250, "250ms"),
        (json!("1h30m"), 5_400_000, "1h30m"),
        (json!("1d1ms"), 86_400_001, "1d1ms"),
        (json!(0), 0, "0ms"),
        (json!("0.4ms"), 0, "0ms"),
        (json!("0.6ms"), 1, "1ms"),
    ] {
        let length: Length = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(length, Length::new(Duration::from_millis(millis)), "{written}");
        assert_eq!(length.to_string(), text);
    }
}

#[test]
fn what_is_no_length_is_refused() {
    let refused = |written| serde_json::from_value::<Length>(written).unwrap_err().to_string();
    for (written, text) in [
        (json!("soon"), "soon"),
        (json!(-5), "-5"),
        (json!("-5s"), "-5s"),
        (json!("NaN"), "NaN"),
        (json!(4e9), "4000000000"),
    ] {
        let want = format!("`{text}` is not a duration: write it as `90s` or `1h30m`");
        assert_eq!(refused(written), want);
    }
    assert_eq!(refused(json!([])), "a duration is a text as `2m` or a number of seconds");
}

#[test]
fn nothing_is_longer_than_the_longest() {
    assert_eq!(Length::new(Duration::MAX), Length::MAX);
    let written = serde_json::to_string(&Length::MAX).unwrap();
    assert_eq!(serde_json::from_str::<Length>(&written).unwrap(), Length::MAX);
}

proptest! {
    #[test]
    fn a_length_reads_back_as_it_was_written(nanos in 0..3_155_760_000_000_000_000_u64) {
        let length = Length::new(Duration::from_nanos(nanos));
        let written = serde_json::to_string(&length).unwrap();
        prop_assert_eq!(serde_json::from_str::<Length>(&written).unwrap(), length);
        prop_assert!(length.get().as_nanos().abs_diff(u128::from(nanos)) <= 500_000);
    }
}
