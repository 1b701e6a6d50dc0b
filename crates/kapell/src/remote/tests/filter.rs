use super::super::filter::Filter;

#[test]
fn what_would_command_a_terminal_is_taken_out_however_it_is_cut() {
    let text = "a\x1b[31mred\x1b[0m\tb\r\n\x1b]0;title\x07c\x1b]8;;u\x1b\\d\x1bPq\x1b\\e\x1b(Bf\u{9b}2Jg\u{7}\u{8}é\u{a0}h\u{9d}t\u{7}i\x1b\nj\x1b[2\nk\x7fl";
    let want = "ared\tb\ncdefgé\u{a0}hi\nj\nkl";
    let bytes = text.as_bytes();
    for cut in 0..=bytes.len() {
        let mut filter = Filter::default();
        let out = [filter.pass(&bytes[..cut]), filter.pass(&bytes[cut..])].concat();
        assert_eq!(String::from_utf8_lossy(&out), want, "cut at {cut}");
    }
}

#[test]
fn what_is_no_text_passes_as_it_is() {
    let bytes = [0xff, 0xfe, b'x', 0xc3, 0xa9, 0xc2];
    let mut filter = Filter::default();
    assert_eq!(filter.pass(&bytes), [0xff, 0xfe, b'x', 0xc3, 0xa9]);
    assert_eq!(filter.pass(&[0xc2, b'\n']), [0xc2, 0xc2, b'\n']);
}
