use kapell_core::seams::Timestamp;

use super::super::logs::Mark;

/// Reads times as they come, and gives those that are news.
fn news(mark: &mut Mark, times: &[i64]) -> Vec<i64> {
    times.iter().copied().filter(|&at| mark.is_news(Timestamp(at))).collect()
}

#[test]
fn a_log_that_is_read_again_goes_on_where_it_was() {
    let mut mark = Mark::default();
    mark.restart();
    assert_eq!(news(&mut mark, &[1, 2, 2, 2]), [1, 2, 2, 2]);
    mark.restart();
    assert_eq!(news(&mut mark, &[1, 2, 2, 2, 2, 3]), [2, 3]);
    mark.restart();
    assert_eq!(news(&mut mark, &[1, 2, 2, 2, 2, 3]), [0; 0]);
    // What was dropped at its beginning meanwhile does no harm.
    mark.restart();
    assert_eq!(news(&mut mark, &[2, 3, 4]), [4]);
    mark.restart();
    assert_eq!(news(&mut mark, &[9]), [9]);
}
