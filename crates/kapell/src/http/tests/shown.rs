use kapell_core::board::{ActualState, shown};

use super::desk::lrp;

/// Copied by hand from the specification: which of an instance and its evacuating twin a reader gets.
const SPEC: &str = "
    none       none none
    UNCLAIMED  none instance
    CLAIMED    none instance
    RUNNING    none instance
    CRASHED    none instance
    none       twin twin
    UNCLAIMED  twin twin
    CLAIMED    twin twin
    RUNNING    twin instance
    CRASHED    twin instance
";

#[test]
fn readers_get_the_one_that_the_specification_names() {
    for line in SPEC.trim().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let state = ActualState::ALL.into_iter().find(|state| state.name() == words[0]);
        let instance = state.map(|state| lrp("a", 0, state, None));
        let mut twin = lrp("a", 0, ActualState::Running, Some("c"));
        twin.evacuating = true;
        let twin = Some(twin).filter(|_| words[1] == "twin");
        let got = match shown(instance.as_ref(), twin.as_ref()) {
            None => "none",
            Some(lrp) if lrp.evacuating => "twin",
            Some(_) => "instance",
        };
        assert_eq!(got, words[2], "{line}");
    }
}
