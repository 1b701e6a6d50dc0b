//! Containers of an image with several layers, and what the image says of them.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::containers::{Error, Process, Spec, User};
use crate::oci::Settings;
use crate::oci::tests::lab::{busybox, fill, rig, rig_that_keeps};
use crate::testing::{MAIN, Rig};

/// Writes a blob and tells what a document says of it.
fn blob(layout: &Path, kind: &str, bytes: &[u8]) -> Value {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(layout.join("blobs/sha256").join(&hex), bytes).unwrap();
    let media_type = format!("application/vnd.oci.image.{kind}");
    json!({ "mediaType": media_type, "digest": format!("sha256:{hex}"), "size": bytes.len() })
}

fn layer(layout: &Path, files: &Path) -> Value {
    let tar = Command::new("tar").arg("-C").arg(files).args(["-c", "."]).output().unwrap();
    assert!(tar.status.success());
    blob(layout, "layer.v1.tar", &tar.stdout)
}

/// An image in which a user `web` runs in `/link`, a link to `/srv/app` of the upper layer.
fn image(dir: &Path, config: &Value) -> String {
    let layout = dir.join("layout");
    fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
    let (lower, upper) = (dir.join("lower"), dir.join("upper"));
    fs::create_dir(&lower).unwrap();
    fill(&lower, &busybox().unwrap());
    fs::create_dir_all(upper.join("srv/app")).unwrap();
    fs::write(upper.join("srv/app/file"), "of the upper layer\n").unwrap();
    for path in ["srv/app", "srv/app/file"] {
        chown(upper.join(path), Some(33), Some(34)).unwrap();
    }
    symlink("srv/app", upper.join("link")).unwrap();
    fs::create_dir(upper.join("etc")).unwrap();
    fs::write(upper.join("etc/.wh.not-a-program"), "").unwrap();
    let layers = [layer(&layout, &lower), layer(&layout, &upper)];
    let ids: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
    let about = json!({
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": { "type": "layers", "diff_ids": ids },
    });
    let about = blob(&layout, "config.v1+json", about.to_string().as_bytes());
    let manifest = json!({ "schemaVersion": 2, "config": about, "layers": layers });
    let mut manifest = blob(&layout, "manifest.v1+json", manifest.to_string().as_bytes());
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": "v1" });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    fs::write(layout.join("index.json"), index.to_string()).unwrap();
    fs::write(layout.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}").unwrap();
    format!("oci://{}#v1", layout.display())
}

#[tokio::test]
async fn what_the_image_says_counts_unless_the_process_says_otherwise() {
    let Some(rig) = rig("what_the_image_says_counts_unless_the_process_says_otherwise") else {
        return;
    };
    let script = "id -u; id -g; id -G; pwd; cat file; echo $A $B $HOME; ls /etc/not-a-program; echo x > mine; ls -n mine";
    let config = json!({
        "User": "web", "WorkingDir": "/link", "Env": ["A=image", "B=image"],
        "Entrypoint": ["/bin/sh", "-c"], "Cmd": [script],
    });
    let rootfs = Some(image(rig.dir.path(), &config));
    rig.create(Spec { rootfs: rootfs.clone(), ..rig.spec("image") }).await;
    assert_eq!(rig.driver.dir(&rig.guid("image")), Path::new("/srv/app"), "without the link");
    let from = rig.dir.path().join("from");
    fs::write(&from, "put").unwrap();
    rig.driver.put(&rig.guid("image"), &from, "put").await.unwrap();
    let env = vec![("B".to_owned(), "process".to_owned())];
    let process = Process { path: String::new(), args: Vec::new(), env, ..Rig::process(MAIN, "") };
    rig.run("image", process).await;
    let exit = rig.ended("image", MAIN).await;
    assert_eq!(exit.code, Some(0), "{exit:?}");
    let text = rig.text("image", MAIN);
    let told = "33\n34\n34 9\n/srv/app\nof the upper layer\nimage process /srv\n";
    assert!(text.starts_with(told), "{text}");
    assert!(text[told.len()..].contains(" 33 "), "{text}");
    assert_eq!(rig.driver.read_own(&rig.guid("image"), "mine", 9).await.unwrap(), b"x\n");
    assert_eq!(rig.driver.read_own(&rig.guid("image"), "put", 9).await.unwrap(), b"put");
    let (rig, found) = rig.restart().await;
    assert_eq!(found[0].processes[0].exit, Some(exit));
    rig.run("image", Rig::process("again", "cat put; exit 4")).await;
    assert_eq!(rig.ended("image", "again").await.code, Some(4));
    assert_eq!(rig.text("image", "again"), "put");
    // A second one shares its layers and nothing else.
    rig.create(Spec { rootfs, sole: false, ..rig.spec("twin") }).await;
    rig.run("twin", Rig::process(MAIN, "ls; id -u")).await;
    assert_eq!(rig.ended("twin", MAIN).await.code, Some(0));
    assert_eq!(rig.text("twin", MAIN), "file\n33\n");
    rig.clean_up(&["image", "twin"]).await;
}

#[tokio::test]
async fn a_user_that_the_image_does_not_have_is_named() {
    let Some(rig) = rig("a_user_that_the_image_does_not_have_is_named") else { return };
    let rootfs = Some(image(rig.dir.path(), &json!({ "User": "nobody-here" })));
    let error = rig.driver.create(Spec { rootfs, ..rig.spec("image") }).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unstartable(why) if why.contains("no user `nobody-here`")),
        "{error:?}"
    );
    assert!(!rig.dir.path().join("agent/containers").join(rig.guid("image")).exists());
    rig.clean_up(&[]).await;
}

/// The machine has users of other names, and other numbers for the same.
#[tokio::test]
async fn users_are_those_of_the_image_by_name_and_by_number() {
    let Some(rig) = rig("users_are_those_of_the_image_by_name_and_by_number") else { return };
    let named = |name: &str| User::Named(name.to_owned());
    let ask = "id -u; id -g; id -G; echo $HOME";
    for (at, name, told) in [
        ("one", "web", "33\n34\n34 9\n/srv\n"),
        ("two", "33", "33\n34\n34 9\n/srv\n"),
        ("three", "web:log", "33\n9\n9\n/srv\n"),
        ("four", "77:78", "77\n78\n78\n/\n"),
    ] {
        rig.create(Spec { user: named(name), ..rig.spec(at) }).await;
        rig.run(at, Rig::process(MAIN, ask)).await;
        assert_eq!(rig.ended(at, MAIN).await.code, Some(0));
        assert_eq!(rig.text(at, MAIN), told, "{name}");
    }
    let (rig, _) = rig.restart().await;
    rig.run("one", Rig::process("again", ask)).await;
    assert_eq!(rig.ended("one", "again").await.code, Some(0));
    assert!(rig.text("one", "again").starts_with("33\n34\n"), "also for the next agent");
    // Another one beside it, and one whom only the machine knows.
    rig.create(Spec { sole: false, ..rig.spec("many") }).await;
    rig.run("many", Process { user: Some(named("web")), ..Rig::process(MAIN, ask) }).await;
    assert_eq!(rig.ended("many", MAIN).await.code, Some(0));
    assert!(rig.text("many", MAIN).starts_with("33\n34\n"));
    let daemon = Process { user: Some(named("daemon")), ..Rig::process("other", ask) };
    let error = rig.driver.run(&rig.guid("many"), daemon).await.unwrap_err();
    assert_eq!(error.to_string(), "the image has no user `daemon` in its `/etc/passwd`");
    let nobody = Spec { user: named("web:daemon"), ..rig.spec("none") };
    let error = rig.driver.create(nobody).await.unwrap_err();
    assert_eq!(error.to_string(), "the image has no group `daemon` in its `/etc/group`");
    rig.clean_up(&["one", "two", "three", "four", "many"]).await;
}

#[tokio::test]
async fn layers_are_tidied_up_when_no_container_uses_them() {
    let test = "layers_are_tidied_up_when_no_container_uses_them";
    let Some(rig) = rig_that_keeps(test, Settings::default(), 0) else { return };
    let rootfs = Some(image(rig.dir.path(), &json!({})));
    let layers = rig.dir.path().join("images/layers");
    let count = || fs::read_dir(&layers).unwrap().count();
    rig.create(Spec { rootfs: rootfs.clone(), ..rig.spec("user") }).await;
    assert_eq!(rig.driver.tidy().await.unwrap(), 0);
    let (rig, found) = rig.restart().await;
    assert_eq!((found.len(), rig.driver.tidy().await.unwrap(), count()), (1, 0, 2));
    rig.run("user", Rig::process(MAIN, "exit 3")).await;
    assert_eq!(rig.ended("user", MAIN).await.code, Some(3));
    rig.driver.delete(&rig.guid("user")).await.unwrap();
    assert!(rig.driver.tidy().await.unwrap() > 100_000);
    assert_eq!(count(), 0);
    rig.create(Spec { rootfs, ..rig.spec("next") }).await;
    assert_eq!(count(), 2, "what is wanted again is there again");
    rig.clean_up(&["next"]).await;
}
