use proptest::prelude::*;

use crate::image::{BadReference, Digest, Reference, Version};

fn parse(text: &str) -> Result<Reference, BadReference> {
    Reference::parse(text, None)
}

fn references() -> impl Strategy<Value = Reference> {
    let path =
        "(/[a-zA-Z0-9 :@.é_-]{1,8}){1,4}".prop_filter("leads up", |path| !path.contains("/.."));
    let tag = "[A-Za-z0-9_][A-Za-z0-9._-]{0,20}";
    let host = "[a-z0-9]{1,8}(\\.[a-z0-9]{1,5})?(:[1-9][0-9]{0,3})?|\\[::1\\](:[1-9][0-9]{0,3})?";
    let name = "[a-z0-9]{1,5}([._-][a-z0-9]{1,5}){0,2}(/[a-z0-9]{1,5}){0,3}";
    let digest = "[0-9a-f]{64}"
        .prop_map(|hex| Version::Digest(Digest::parse(&format!("sha256:{hex}")).unwrap()));
    let version = prop_oneof![tag.prop_map(Version::Tag), digest];
    prop_oneof![
        path.clone().prop_map(|path| Reference::Dir(path.into())),
        (path, proptest::option::of(tag))
            .prop_map(|(path, tag)| Reference::Layout { path: path.into(), tag }),
        (host, name, version).prop_map(|(host, name, version)| Reference::Registry {
            host,
            name,
            version
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(reference in references()) {
        prop_assert_eq!(parse(&reference.to_string()), Ok(reference));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".*", scheme in "(dir|oci|docker)://") {
        for text in [text.clone(), format!("{scheme}{text}")] {
            if let Ok(reference) = Reference::parse(&text, Some("default:5000")) {
                prop_assert_eq!(parse(&reference.to_string()), Ok(reference));
            }
        }
    }
}

#[test]
fn each_form_means_what_it_says() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    for (text, want) in [
        ("docker://h:5000/a/b", "docker://h:5000/a/b:latest".to_owned()),
        ("docker://h/a:1.0", "docker://h/a:1.0".to_owned()),
        (&format!("docker://h/a:1.0@{digest}"), format!("docker://h/a@{digest}")),
        ("oci:///a:b/c", "oci:///a:b/c".to_owned()),
        ("oci:///a#t", "oci:///a#t".to_owned()),
        ("dir:///a b", "dir:///a b".to_owned()),
    ] {
        assert_eq!(parse(text).unwrap().to_string(), want);
    }
    let with_default = Reference::parse("docker:///a", Some("h:1")).unwrap();
    assert_eq!(with_default.to_string(), "docker://h:1/a:latest");
}

#[test]
fn a_bad_reference_says_what_is_wrong_with_it() {
    for (text, want) in [
        ("busybox", "names no root file system"),
        ("http://h/a", "names no root file system"),
        ("dir://a/b", "must be absolute"),
        ("dir:///a/../b", "without `..`"),
        ("dir:///a\nb", "control characters"),
        ("oci:///a#", "is no tag"),
        ("docker:///busybox", "set a default registry"),
        ("docker://busybox", "is no name"),
        ("docker://h:0/a", "is no host"),
        ("docker://h:99999/a", "is no host"),
        ("docker://u:p@h/a", "is no host"),
        ("docker://h/A", "is no name"),
        ("docker://h/a/../b", "is no name"),
        ("docker://h/", "is no name"),
        ("docker://h/a:-x", "is no tag"),
        ("docker://h/a@md5:00", "is no digest"),
        ("docker://h/a@sha256:zz", "is no digest"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}
