use super::*;

fn only(text: &str) -> Node<'_> {
    let mut documents = parse(text).expect("valid YAML");
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

#[test]
fn remembers_where_values_stand() {
    let Value::Map(entries) = only("a: 1\nbb:\n  - x\n  - 'yz'\n").value else { panic!() };
    assert_eq!(entries[0].0.span, Span::new(1, 1, 1));
    let Value::List(items) = &entries[1].1.value else { panic!() };
    assert_eq!(items[1].span, Span::new(4, 5, 4));
    assert!(!items[1].scalar().unwrap().plain);
}

#[test]
fn values_are_borrowed_from_the_text() {
    let Value::Map(entries) = only("ä: \"öü\"\nb: ß x\nc: \"\\n\"\n").value else { panic!() };
    let texts: Vec<_> = entries.iter().map(|(_, value)| &value.scalar().unwrap().text).collect();
    assert_eq!(texts, ["öü", "ß x", "\n"]);
    assert!(matches!(texts[0], Cow::Borrowed(_)) && matches!(texts[1], Cow::Borrowed(_)));
    assert!(matches!(texts[2], Cow::Owned(_)), "an escape is not in the text as it reads");
}

#[test]
fn a_syntax_error_has_its_place() {
    let problem = parse("a: [1, 2\nb: 3\n").unwrap_err();
    assert!(problem.message.starts_with("invalid YAML"), "{problem}");
    assert!(problem.span.line >= 1 && problem.help.is_some());
}

#[test]
fn a_bomb_does_not_go_off() {
    let mut text = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (this, before) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        let refs = vec![format!("*{before}"); 9].join(", ");
        text.push_str(&format!("{this}: &{this} [{refs}]\n"));
    }
    let problem = parse(&text).unwrap_err();
    assert!(problem.message.contains("aliases unfold"), "{problem}");
}

#[test]
fn anchors_within_anchors_do_not_multiply_the_file() {
    let (opened, closed) = ("&a [".repeat(60), "]".repeat(60));
    let text = format!("steps: {opened}{}{closed}\n", "x,".repeat(100_000));
    let problem = parse(&text).unwrap_err();
    assert!(problem.message.starts_with("anchors within anchors"), "{problem}");
}

#[test]
fn anchors_side_by_side_are_as_many_as_one_likes() {
    let text = format!("[{}]", "&a x,".repeat(150_000));
    let Value::List(items) = only(&text).value else { panic!() };
    assert_eq!(items.len(), 150_000);
    let one = format!("&all [{}]", "x,".repeat(300_000));
    assert!(parse(&one).is_ok());
}

#[test]
fn deep_nesting_is_refused() {
    let problem = parse(&"[".repeat(100_000)).unwrap_err();
    assert!(problem.message.contains("levels deep"), "{problem}");
}

#[test]
fn an_alias_inside_its_own_anchor_is_refused() {
    assert!(parse("a: &a [*a]\n").is_err());
}

#[test]
fn a_large_base_is_merged_quickly() {
    let keys: Vec<String> = (0..40_000).map(|at| format!("k{at}: 1")).collect();
    let text = format!("a: {{<<: {{{}}}, k1: 2}}", keys.join(", "));
    let Value::Map(entries) = only(&text).value else { panic!() };
    let Value::Map(merged) = &entries[0].1.value else { panic!() };
    assert_eq!(merged.len(), 40_000);
}

#[test]
fn merge_keys_fill_in_what_is_absent() {
    let Value::Map(entries) = only("b: &b {x: 1, y: 2}\nc:\n  <<: *b\n  x: 9\n").value else {
        panic!()
    };
    let Value::Map(c) = &entries[1].1.value else { panic!() };
    let text: Vec<_> = c
        .iter()
        .map(|(k, v)| format!("{}={}", k.scalar().unwrap().text, v.scalar().unwrap().text))
        .collect();
    assert_eq!(text, ["x=9", "y=2"]);
}
