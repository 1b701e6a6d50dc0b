use crate::client::{Message, Parser};

fn message(id: &str, name: &str, data: &str) -> Message {
    Message { id: id.to_owned(), name: name.to_owned(), data: data.to_owned() }
}

#[test]
fn events_come_back_however_they_are_cut() {
    let text = "\u{feff}: hello\n\nid: 1-1\nevent: a\ndata: x\n\ndata:one\r\ndata: two\r\n\r\n\
        retry: 5\nid\rdata\r\rdata:  ä\nunknown: z\n\nevent: lost\n\ndata: unfinished\n";
    let want = [
        message("1-1", "a", "x"),
        message("1-1", "message", "one\ntwo"),
        message("", "message", ""),
        message("", "message", " ä"),
    ];
    for cut in 0..=text.len() {
        let mut parser = Parser::default();
        let mut seen = Vec::new();
        for part in [&text.as_bytes()[..cut], &text.as_bytes()[cut..]] {
            seen.extend(parser.push(part).unwrap());
        }
        assert_eq!(seen, want, "cut at {cut}");
    }
}

#[test]
fn an_event_without_end_is_refused() {
    let mut parser = Parser::default();
    let line = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
    let pushed: Vec<_> = (0..5).map(|_| parser.push(&line).is_ok()).collect();
    assert_eq!(pushed.last(), Some(&false), "{pushed:?}");
}
