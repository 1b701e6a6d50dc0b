//! The shim has no tests of its own, so its function is compiled in here.

use proptest::prelude::*;

#[path = "../../../../kapell-shim/src/mask.rs"]
mod mask;

use mask::Mask;

fn mask(values: &[&str]) -> Option<Mask> {
    Mask::new(values.iter().map(|value| value.as_bytes()))
}

/// At every place the longest text that fits is replaced.
fn naive(text: &[u8], values: &[Vec<u8>]) -> Vec<u8> {
    let mut shown = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let fits = values.iter().filter(|value| value.len() >= 4 && rest.starts_with(value));
        if let Some(longest) = fits.map(Vec::len).max() {
            shown.extend_from_slice(b"***");
            rest = &rest[longest..];
        } else {
            shown.push(*first);
            rest = after;
        }
    }
    shown
}

fn shown(mask: &mut Mask, parts: &[&[u8]]) -> String {
    let mut bytes: Vec<u8> = parts.iter().flat_map(|part| mask.push(part)).collect();
    bytes.extend(mask.finish());
    String::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_too_short_is_not_replaced() {
    assert!(mask(&["abc", ""]).is_none());
    assert_eq!(shown(&mut mask(&["abc", "abcd"]).unwrap(), &[b"abc abcd"]), "abc ***");
}

#[test]
fn lines_of_a_long_value_are_replaced_too() {
    let mut mask = mask(&["-----BEGIN\n  secretkey\nshort\r\n"]).unwrap();
    assert_eq!(shown(&mut mask, &[b"x secretkey short -----BEGIN"]), "x *** short ***");
    assert_eq!(shown(&mut mask, &[b"<-----BEGIN\n  secretkey\nshort\r\n>"]), "<***>");
}

#[test]
fn only_what_may_be_a_beginning_is_held_back() {
    let mut mask = mask(&["secret", "secretary"]).unwrap();
    assert_eq!(mask.push(b"my sec"), b"my ");
    assert_eq!(mask.push(b"ond secret"), b"second ");
    assert_eq!(mask.push(b"a"), b"");
    assert_eq!(mask.push(b"l secretary"), b"***al ***");
    assert_eq!(mask.push(b" secr"), b" ");
    assert_eq!(mask.finish(), b"secr");
    assert_eq!(mask.finish(), b"");
}

proptest! {
    #[test]
    fn however_it_is_cut_it_is_replaced_as_if_it_came_whole(
        text in "[ab]{0,24}",
        values in prop::collection::vec("[ab]{1,7}", 1..4),
        others in prop::collection::vec(0_usize..24, 0..4),
    ) {
        let bytes = text.as_bytes();
        let values: Vec<Vec<u8>> = values.into_iter().map(String::into_bytes).collect();
        let want = naive(bytes, &values);
        let make = || Mask::new(values.iter().map(Vec::as_slice));
        let check = |cuts: &mut Vec<usize>| {
            let Some(mut mask) = make() else { return want == bytes };
            cuts.retain(|cut| *cut <= bytes.len());
            cuts.sort_unstable();
            let (mut got, mut from) = (Vec::new(), 0);
            for to in cuts.iter().copied().chain([bytes.len()]) {
                got.extend(mask.push(&bytes[from..to]));
                from = to;
            }
            got.extend(mask.finish());
            got == want
        };
        for one in 0..=bytes.len() {
            for other in one..=bytes.len() {
                prop_assert!(check(&mut vec![one, other]));
            }
        }
        prop_assert!(check(&mut (0..bytes.len()).collect()));
        prop_assert!(check(&mut others.clone()));
    }
}
