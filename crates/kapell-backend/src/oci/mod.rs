//! Containers with files, users and a network of their own, started by `runc`.
//!
//! `docs/decisions/0010-oci.md` tells why it is as it is. Logs, exit status and all that outlives the agent are
//! those of `process`: there a program is started by its shim, here the shim starts a launcher that does.

mod beside;
mod bundle;
mod cgroups;
mod inside;
mod kept;
mod launch_file;
mod layers;
mod network;
mod place;
mod realm;
mod reason;
mod record;
mod rootfs;
mod rules;
mod seccomp;
mod settings;
mod shared;
mod slot;
#[cfg(test)]
mod tests;
mod users;

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::causes::chain;
use nix::unistd::geteuid;

use self::beside::Beside;
use self::cgroups::Hierarchies;
use self::kept::{INIT, Kept};
use self::network::Wires;
use self::place::Place;
use self::realm::Claim;
use self::record::Record;
use self::rootfs::Rootfs;
use self::rules::Published;
pub use self::settings::{Network, Settings};
use self::shared::{Known, Shared};
use self::slot::{Realm, Slot};
use crate::containers::{
    Containers, Enforced, Error, Exec, Exit, Found, Limits, Output, Process, Session, Spec, Trial,
    User,
};
use crate::image::{Image, ImageId, Images};
use crate::process::{ProcessContainers, blocking, check_name};
use crate::{image, own_file};

/// Where tools of the system are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// See the module.
#[derive(Debug)]
pub struct OciContainers {
    /// The first to go: with `inner` goes the lock that keeps the next agent from claiming the same.
    shared: Arc<Shared>,
    /// Keeps processes, as it does without images.
    inner: ProcessContainers,
    images: Images,
    /// An empty directory: the root of a container that needs no image.
    trial: PathBuf,
}

impl OciContainers {
    /// Keeps containers in `dir`, which is made if it is not there. No other agent may use it. Fails if this
    /// machine cannot run such containers, and says what it lacks.
    pub fn open(dir: &Path, images: Images, settings: &Settings) -> Result<Self, Error> {
        if !geteuid().is_root() {
            let what = "only root can run containers with files and users of their own".to_owned();
            return Err(Error::Io { what, source: io::ErrorKind::PermissionDenied.into() });
        }
        let runc = find_runc(settings)?;
        let inner = ProcessContainers::open(dir)?;
        let dir = std::path::absolute(dir).map_err(crate::process::trouble::io("find", dir))?;
        place::check_way(&dir.join("containers"))?;
        let claim = Claim::take(&settings.claims, &dir)?;
        let networks = match settings.network {
            Network::Own { from } => from,
            Network::Host => Ipv4Addr::UNSPECIFIED,
        };
        let realm = Realm { number: claim.number, networks };
        let wires = match settings.network {
            Network::Own { .. } => Some(Wires::open(realm, &settings.claims)?),
            Network::Host => None,
        };
        let group = inner.place().groups().path("");
        let group = group.trim_end_matches('/').to_owned();
        let hierarchies = Hierarchies::find();
        hierarchies.make(&group)?;
        let known = Mutex::new(Known::default());
        let left = AtomicBool::new(false);
        let shared = Shared { runc, claim, realm, wires, hierarchies, group, known, left };
        let trial = dir.join("trial");
        place::make_dir(&trial, 0o755)?;
        Ok(Self { inner, images, trial, shared: Arc::new(shared) })
    }

    fn trial_url(&self) -> String {
        format!("dir://{}", self.trial.display())
    }

    fn find(&self, guid: &str) -> Result<Arc<Kept>, Error> {
        let known = self.shared.known();
        known.containers.get(guid).cloned().ok_or_else(|| Error::Unknown(guid.to_owned()))
    }

    /// All but the image and the slot, which are there. Whatever fails is cleared away by the caller.
    async fn make(&self, spec: Spec, image: Image, slot: Slot) -> Result<(), Error> {
        let (guid, sole, ports) = (spec.guid.clone(), spec.sole, spec.ports.clone());
        let limits = spec.limits;
        let user = match spec.user {
            // A user that only this container has on the machine: here it has thousands.
            User::Same | User::Id { own: true, .. } => None,
            user @ (User::Id { own: false, .. } | User::Named(_)) => Some(user),
        };
        let plain = Spec { rootfs: None, user: User::Same, ports: Vec::new(), ..spec };
        self.inner.create(plain).await?;
        let record = Record {
            slot,
            ids: slot.ids(self.shared.realm),
            sole,
            dir: String::new(),
            ports,
            user,
            rootfs: rootfs(&image),
        };
        let kept = self.kept(&guid, limits, record, Some(image));
        let shared = Arc::clone(&self.shared);
        let kept = blocking(move || {
            let kept = kept.prepare()?;
            if let Some(wires) = &shared.wires {
                wires.publish(&kept.published(shared.realm))?;
            }
            Ok(kept)
        })
        .await?;
        let kept = Arc::new(kept);
        self.shared.known().containers.insert(guid.clone(), Arc::clone(&kept));
        if !sole {
            self.start(&kept, init()).await?;
        }
        blocking(move || kept.place.finish(&kept.record)).await
    }

    async fn start(&self, kept: &Arc<Kept>, process: Process) -> Result<(), Error> {
        let (prepared, order) = (Arc::clone(kept), process.clone());
        let inner = Arc::clone(self.inner.place());
        let launch = blocking(move || prepared.launch(&order, inner.groups())).await?;
        let is_first = launch.whole;
        let started = self.inner.run_by(&kept.guid, process.clone(), Some(launch)).await;
        let kept = Arc::clone(kept);
        let Err(error) = started else { return Ok(()) };
        blocking(move || Err(kept.why_not(&process.name, is_first, error))).await
    }

    /// Removes what there is of a container besides its processes and its home.
    async fn clear(&self, guid: &str, slot: Slot, published: Published) -> Result<(), Error> {
        let group = self.inner.place().groups().path(guid);
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            if let Some(wires) = &shared.wires {
                wires.cut(slot)?;
                wires.withdraw(&published)?;
            }
            shared.hierarchies.remove(&group)
        })
        .await?;
        let mut known = self.shared.known();
        known.containers.remove(guid);
        known.unmade.remove(guid);
        known.slots.retain(|used| *used != slot);
        Ok(())
    }

    /// What is kept of a container that an earlier agent has made; None if it was never done.
    async fn keep(&self, guid: &str) -> Option<Kept> {
        let record = Place::new(self.inner.place().home(guid).dir()).record()?;
        let limits = self.inner.place().find(guid).ok()?.about.limits;
        // A container that runs goes on without it, and one that has ended needs none.
        let image = self.images.hold(&ImageId::new(record.rootfs.image.clone())).await.ok();
        Some(self.kept(guid, limits, record, image))
    }

    fn kept(&self, guid: &str, limits: Limits, record: Record, image: Option<Image>) -> Kept {
        let place = self.inner.place();
        Kept {
            guid: guid.to_owned(),
            place: Place::new(place.home(guid).dir()),
            shim: place.shim().to_owned(),
            runc: self.shared.runc.clone(),
            cgroup: place.groups().path(guid),
            limits,
            wire: self.shared.wires.is_some().then_some((self.shared.realm, record.slot)),
            record,
            image,
        }
    }
}

#[async_trait]
impl Containers for OciContainers {
    fn rootfs_schemes(&self) -> Vec<String> {
        ["dir", "oci", "docker"].map(str::to_owned).to_vec()
    }

    fn enforced(&self) -> Enforced {
        self.inner.enforced()
    }

    fn has_own_network(&self, _rootfs: Option<&str>) -> bool {
        self.shared.wires.is_some()
    }

    /// Nothing but what every container is given: whatever image there is or is not.
    fn trials(&self) -> Vec<Trial> {
        let rootfs = Some(self.trial_url());
        let args = vec!["true".to_owned()];
        vec![Trial { rootfs, sole: false, path: bundle::PAUSE.to_owned(), args }]
    }

    async fn recover(&self) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        for mut one in self.inner.recover().await? {
            let Some(kept) = self.keep(&one.guid).await else {
                self.inner.delete(&one.guid).await?;
                continue;
            };
            let mut known = self.shared.known();
            known.slots.push(kept.record.slot);
            known.containers.insert(one.guid.clone(), Arc::new(kept));
            one.processes.retain(|process| process.name != INIT);
            found.push(one);
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.tidy()).await?;
        Ok(found)
    }

    async fn create(&self, spec: Spec) -> Result<(), Error> {
        check_name("a container", &spec.guid)?;
        let Some(url) = &spec.rootfs else {
            let text = "containers here have files of their own: name a rootfs".to_owned();
            return Err(Error::Unstartable(text));
        };
        let image = if *url == self.trial_url() {
            Image::of_directory(self.trial.clone())
        } else {
            self.images.prepare(url).await.map_err(|error| no_image(url, &error))?
        };
        let guid = spec.guid.clone();
        let slot = self.shared.take_slot(&guid)?;
        let realm = self.shared.realm;
        let published = Published { address: slot.address(realm), ports: spec.ports.clone() };
        let Err(error) = self.make(spec, image, slot).await else { return Ok(()) };
        let is_published = self.shared.known().containers.contains_key(&guid);
        let ports = if is_published { published.ports } else { Vec::new() };
        let published = Published { ports, ..published };
        // What cannot be removed now is removed with the next deletion.
        self.shared.known().unmade.insert(guid.clone(), (slot, published));
        let _left = self.delete(&guid).await;
        Err(error)
    }

    async fn run(&self, guid: &str, process: Process) -> Result<(), Error> {
        check_name("a process", &process.name)?;
        let kept = self.find(guid)?;
        self.start(&kept, process).await
    }

    async fn exec(&self, guid: &str, exec: Exec) -> Result<Session, Error> {
        let (kept, place) = (self.find(guid)?, Arc::clone(self.inner.place()));
        self.inner.exec_by(guid, exec, Some(Arc::new(Beside { kept, place }))).await
    }

    async fn ended(&self, guid: &str, process: &str) -> Result<Exit, Error> {
        self.inner.ended(guid, process).await
    }

    async fn stop(&self, guid: &str, process: &str) -> Result<(), Error> {
        self.inner.stop(guid, process).await
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        let unmade = self.shared.known().unmade.get(guid).cloned();
        let (slot, published) = match (unmade, self.find(guid)) {
            (Some(unmade), _) => unmade,
            (None, Ok(kept)) => (kept.record.slot, kept.published(self.shared.realm)),
            (None, Err(_)) => return Ok(()),
        };
        self.inner.delete(guid).await?;
        self.clear(guid, slot, published).await
    }

    async fn close(&self) {
        // A deletion that was cut short may have come to the end of the processes and no further.
        for guid in self.shared.guids() {
            if self.inner.place().find(&guid).is_err() {
                let _cleared_by_the_next_agent = self.delete(&guid).await;
            }
        }
        let shared = Arc::clone(&self.shared);
        // Cut short only if the agent is ending at once.
        let _left = blocking(move || {
            shared.leave();
            Ok(())
        })
        .await;
    }

    async fn tidy(&self) -> Result<u64, Error> {
        let collected = self.images.tidy().await.map_err(|error| Error::Io {
            what: "cannot remove layers that nobody uses".to_owned(),
            source: io::Error::other(chain(&error)),
        })?;
        Ok(collected.removed_bytes)
    }

    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let (kept, file) = (self.find(guid)?, file.to_owned());
        blocking(move || {
            let (dir, below) = match file.strip_prefix('/') {
                Some(below) => ("/", below),
                None => (kept.record.dir.as_str(), file.as_str()),
            };
            let read = kept.inside(dir).and_then(|own| own.read(below, kept.record.ids, limit));
            read.map_err(|source| Error::Io { what: format!("cannot read `{file}`"), source })
        })
        .await
    }

    async fn put(&self, guid: &str, from: &Path, to: &str) -> Result<(), Error> {
        let (kept, from, to) = (self.find(guid)?, from.to_owned(), to.to_owned());
        blocking(move || {
            let owner = kept.owner()?;
            let put = kept
                .inside(&kept.record.dir)
                .and_then(|own| own_file::put(&from, &own.path(), &to, owner));
            put.map_err(|source| Error::Io {
                what: format!("cannot put `{}` into the container as `{to}`", from.display()),
                source,
            })
        })
        .await
    }

    fn dir(&self, guid: &str) -> PathBuf {
        self.find(guid).map_or_else(|_| kept::OWN_DIR.into(), |kept| kept.record.dir.clone().into())
    }
}

fn find_runc(settings: &Settings) -> Result<PathBuf, Error> {
    let in_path = || PATH.split(':').map(|dir| Path::new(dir).join("runc"));
    let candidates = settings.runc.clone().map_or_else(|| in_path().collect(), |runc| vec![runc]);
    let found = candidates.into_iter().find(|runc| runc.is_file());
    found.ok_or_else(|| Error::Io {
        what: "cannot find `runc`, which starts containers: install it, or say where it is"
            .to_owned(),
        source: io::ErrorKind::NotFound.into(),
    })
}

/// The first process of a container that is not its only one's.
fn init() -> Process {
    Process {
        name: INIT.to_owned(),
        path: bundle::PAUSE.to_owned(),
        args: vec!["pause".to_owned()],
        env: Vec::new(),
        secrets: Vec::new(),
        dir: Some("/".into()),
        user: None,
        stop_grace: Duration::from_secs(1),
        output: Output::Dropped,
    }
}

/// The topmost layer first.
fn rootfs(image: &Image) -> Rootfs {
    let config = &image.config;
    Rootfs {
        image: image.id.to_string(),
        layers: image.layers.iter().rev().cloned().collect(),
        env: config.env.clone(),
        entrypoint: config.entrypoint.clone(),
        cmd: config.cmd.clone(),
        working_dir: config.working_dir.clone(),
        user: config.user.clone(),
    }
}

fn no_image(url: &str, error: &image::Error) -> Error {
    Error::Unstartable(format!("rootfs `{url}`: {}", chain(error)))
}
