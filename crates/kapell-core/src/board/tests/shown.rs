use super::world::*;
use crate::board::*;

/// Copied by hand from the specification: an instance, and whether a reader gets the evacuating twin.
#[test]
fn a_reader_gets_the_one_that_is_specified() {
    let twin = twin("e", "z");
    for (instance, wants_twin) in [
        (None, true),
        (Some(unclaimed()), true),
        (Some(claimed("a", "x")), true),
        (Some(running("a", "x")), false),
        (Some(crashed(4)), false),
    ] {
        let instance = instance.as_ref();
        let wanted = if wants_twin { Some(&twin) } else { instance };
        assert_eq!(shown(instance, Some(&twin)), wanted);
        assert_eq!(shown(instance, None), instance, "without a twin always the instance");
    }
}
