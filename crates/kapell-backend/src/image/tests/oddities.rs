//! Manifests that do not fit together.

use kapell_core::causes::chain;
use serde_json::{Value, json};

use super::lab::{Lab, Parts, Tar, write_layout};

type Change = fn(&mut Value);

#[tokio::test]
async fn a_manifest_that_does_not_fit_its_image_is_refused() {
    let changes: [(Change, &str); 6] = [
        (|it| it["manifests"] = json!([]), "an index and a manifest at once"),
        (
            |it| drop(it.as_object_mut().unwrap().remove("layers")),
            "neither a manifest nor an index",
        ),
        (|it| it["layers"] = json!([]), "0 layers, but 1 of their digests"),
        (
            |it| it["layers"][0]["mediaType"] = json!("application/x"),
            "a layer of type `application/x`",
        ),
        (|it| it["layers"][0]["digest"] = json!("sha256:../../etc/passwd"), "is no digest"),
        (|it| it["layers"][0]["size"] = json!(7), "bytes, not 7"),
    ];
    for (change, why) in changes {
        let lab = Lab::new();
        let mut parts = Parts::of(&[Tar::default().file("a", b"x").end()]);
        change(&mut parts.manifest);
        write_layout(&lab.at("l"), &parts);
        let url = format!("oci://{}", lab.at("l").display());
        let text = chain(&lab.images.prepare(&url).await.unwrap_err());
        assert!(text.contains(why), "{why}: {text}");
    }
}
