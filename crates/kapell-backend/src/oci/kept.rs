//! One container that this agent knows, and how its processes are started.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::bundle::{Bundle, CAPABILITIES, PAUSE, Program};
use super::inside::Inside;
use super::launch_file::LaunchFile;
use super::layers::Layers;
use super::place::{self, Place};
use super::record::Record;
use super::rules::Published;
use super::slot::{Realm, Slot};
use super::users::{self, Account};
use super::{PATH, reason};
use crate::containers::{Error, Limits, Process, User};
use crate::image::Image;
use crate::process::groups::Groups;
use crate::process::hidden::{self, Document};
use crate::process::place::Launch;
use crate::process::spec_file::{CONTAINER_MARK, PROCESS_MARK, check_variable};
use crate::process::trouble;

/// The first process of a container that has several, which nobody but us can name so.
pub(super) const INIT: &str = ".init";
/// The directory of a container whose image names none.
pub(super) const OWN_DIR: &str = "/work";
/// What a shim takes for its own launcher.
const LAUNCHER: &str = "kapell-launch";
/// Its own state directory has only this one.
const ID: &str = "container";
/// More than any list of users has.
const MOST_USERS: u64 = 4 << 20;
const LONGEST_HOSTNAME: usize = 63;

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) guid: String,
    pub(super) place: Place,
    pub(super) shim: PathBuf,
    pub(super) runc: PathBuf,
    pub(super) cgroup: String,
    pub(super) limits: Limits,
    pub(super) wire: Option<(Realm, Slot)>,
    pub(super) record: Record,
    /// Its layers stay as long as this. None if they are not known any more: what is mounted stays.
    #[expect(dead_code, reason = "held, not read")]
    pub(super) image: Option<Image>,
}

impl Kept {
    /// Makes its files. Blocks.
    pub(super) fn prepare(mut self) -> Result<Self, Error> {
        let Record { rootfs, ids, .. } = &self.record;
        self.place.make(&rootfs.layers, *ids)?;
        let address = self.wire.map(|(realm, slot)| slot.address(realm));
        self.place.write_names(&self.hostname(), address)?;
        let dir = match rootfs.working_dir.as_str() {
            "" => OWN_DIR,
            dir => dir,
        };
        let account = self.account(None)?;
        let layers = Layers(&rootfs.layers);
        let dir = self.place.make_inside(layers, Path::new(dir), &account, *ids)?;
        self.record.dir = dir.display().to_string();
        Ok(self)
    }

    pub(super) fn published(&self, realm: Realm) -> Published {
        Published { address: self.record.slot.address(realm), ports: self.record.ports.clone() }
    }

    /// How to start a process: the first one with the container itself. Blocks.
    pub(super) fn launch(&self, process: &Process, groups: &Groups) -> Result<Launch, Error> {
        let program = self.program(process)?;
        let runs = self.running_init().is_some();
        let is_first = process.name == INIT || (self.record.sole && !runs);
        if !is_first && !runs {
            let text = "its container has ended and runs nothing any more".to_owned();
            return Err(Error::Unstartable(text));
        }
        let hides = !process.secrets.is_empty();
        if hides {
            // Programs beside it are started like it, but do not know what it knows.
            let open = Process { secrets: Vec::new(), ..process.clone() };
            let open = self.program(&open)?.process();
            self.place.write(&order_of(&process.name), open.to_string().as_bytes())?;
        }
        if !is_first {
            let order = program.process();
            let order = if hides {
                Order::Hidden(Document::new(order.to_string()))
            } else {
                Order::Open(order)
            };
            return self.launch_beside(&process.name, order, None, groups);
        }
        let launch = self.place.file("launch");
        if launch.exists() {
            // There was another first process, which has ended, or should have been.
            self.place.reset(self.record.ids)?;
        }
        let document = self.write_bundle(&program, hides)?;
        Ok(Launch {
            launcher: LAUNCHER.to_owned(),
            args: vec![launch.display().to_string()],
            env: vec![("PATH".to_owned(), PATH.to_owned())],
            pid_file: self.place.file("init"),
            whole: true,
            group: None,
            document,
        })
    }

    /// How to start a program in a container that runs. Its terminal, if it is to have one, is left with the socket
    /// `console`. Blocks.
    pub(super) fn launch_beside(
        &self,
        name: &str,
        order: Order,
        console: Option<&str>,
        groups: &Groups,
    ) -> Result<Launch, Error> {
        let group =
            if groups.enforced().pids { groups.make_below(&self.guid, name)? } else { None };
        let pid_file = self.place.file(&format!("{name}.pid"));
        let (order, document) = match order {
            Order::Open(process) => {
                self.place.write(&order_of(name), process.to_string().as_bytes())?;
                (self.place.file(&order_of(name)).display().to_string(), None)
            }
            Order::Hidden(document) => (hidden::document(), Some(document)),
        };
        let mut args = self.runc_arguments(name, "exec", &pid_file);
        if group.is_some() {
            args.extend(["--cgroup".to_owned(), below(name)]);
        }
        args.extend(
            console.into_iter().flat_map(|at| ["--console-socket".to_owned(), at.to_owned()]),
        );
        args.extend(["--process".to_owned(), order, ID.to_owned()]);
        Ok(Launch {
            launcher: self.runc.display().to_string(),
            args,
            env: vec![("PATH".to_owned(), PATH.to_owned())],
            pid_file,
            whole: false,
            group,
            document,
        })
    }

    fn runc_arguments(&self, name: &str, verb: &str, pid_file: &Path) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        let (state, log) = (self.place.file("state"), self.log(name));
        let before = ["--root", &text(&state), "--log", &text(&log), "--log-format", "json"];
        let after = [verb, "--detach", "--pid-file", &text(pid_file)];
        before.into_iter().chain(after).map(str::to_owned).collect()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.place.file(&format!("{name}.log"))
    }

    /// What of it must not lie in a file is returned.
    fn write_bundle(&self, program: &Program, hidden: bool) -> Result<Option<Document>, Error> {
        let mut files = self.place.names().to_vec();
        if !self.record.sole {
            files.push((self.shim.clone(), PAUSE));
        }
        let hostname = self.hostname();
        let bundle = Bundle {
            program,
            hostname: &hostname,
            root: &self.place.file("root"),
            user_namespace: &self.place.file("user"),
            ids: self.record.ids,
            cgroup: &self.cgroup,
            limits: &self.limits,
            host_network: self.wire.is_none(),
            shown: &place::shown(&files),
        };
        let document = self.write_config(bundle.config().to_string(), hidden)?;
        let mut command = vec![self.runc.display().to_string()];
        command.extend(self.runc_arguments("runc", "run", &self.place.file("init")));
        let dir = self.place.dir().display().to_string();
        command.extend(["--bundle".to_owned(), dir, ID.to_owned()]);
        let file = LaunchFile {
            dir: self.place.dir(),
            ids: self.record.ids,
            layers: &self.record.rootfs.layers,
            wire: self.wire,
            command: &command,
            path: PATH,
        };
        self.place.write("launch", &file.encode()?)?;
        Ok(document)
    }

    /// In a file, or where `runc` finds it in memory.
    fn write_config(&self, text: String, hidden: bool) -> Result<Option<Document>, Error> {
        let path = self.place.file("config.json");
        // Of one that was started before.
        let _absent = fs::remove_file(&path);
        if !hidden {
            self.place.write("config.json", text.as_bytes())?;
            return Ok(None);
        }
        symlink(hidden::document(), &path).map_err(trouble::io("make", &path))?;
        Ok(Some(Document::new(text)))
    }

    fn program(&self, process: &Process) -> Result<Program, Error> {
        let rootfs = &self.record.rootfs;
        let account = self.account(process.user.as_ref())?;
        let args = if process.path.is_empty() {
            let rest = if process.args.is_empty() { &rootfs.cmd } else { &process.args };
            rootfs.entrypoint.iter().chain(rest).cloned().collect()
        } else {
            [&process.path].into_iter().chain(&process.args).cloned().collect::<Vec<_>>()
        };
        if args.first().is_none_or(String::is_empty) {
            let text = "neither the process nor its image names a program".to_owned();
            return Err(Error::Unstartable(text));
        }
        let dir = process.dir.as_deref().map_or_else(
            || PathBuf::from(&self.record.dir),
            |dir| Path::new(&self.record.dir).join(dir),
        );
        let env = environment(&rootfs.env, &account, process, &self.guid)?;
        let capabilities =
            if account.uid == 0 && process.name != INIT { &CAPABILITIES[..] } else { &[] };
        let Account { uid, gid, groups, .. } = account;
        let dir = dir.display().to_string();
        if args.iter().chain(&env).chain([&dir]).any(|text| text.contains('\0')) {
            let text = "an argument, a variable or the directory of the process holds a NUL byte";
            return Err(Error::Unstartable(text.to_owned()));
        }
        Ok(Program { args, env, dir, uid, gid, groups, capabilities })
    }

    /// Whom its processes run as, unless they say otherwise.
    fn account(&self, user: Option<&User>) -> Result<Account, Error> {
        let rootfs = &self.record.rootfs;
        let asked = user.filter(|user| **user != User::Same).or(self.record.user.as_ref());
        let name = match asked {
            Some(User::Id { uid, gid, .. }) => {
                return users::in_range(Account { uid: *uid, gid: *gid, ..Account::default() });
            }
            Some(User::Named(name)) => name,
            Some(User::Same) | None => &rootfs.user,
        };
        let layers = Layers(&rootfs.layers);
        let read = |path: &str| {
            let bytes = layers.read(path, MOST_USERS).map_err(|source| Error::Io {
                what: format!("cannot read `{path}` of the image"),
                source,
            })?;
            Ok::<_, Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        users::find(name, &read("/etc/passwd")?, &read("/etc/group")?)
    }

    /// Of what is put into it: as the machine sees them.
    pub(super) fn owner(&self) -> Result<Option<(u32, u32)>, Error> {
        let Account { uid, gid, .. } = self.account(None)?;
        Ok(Some((self.record.ids.base + uid, self.record.ids.base + gid)))
    }

    /// Its own directory: as it sees it while it runs, else what it has changed.
    pub(super) fn inside(&self, dir: &str) -> io::Result<Inside> {
        let running = self.init().and_then(|pid| {
            let root = PathBuf::from(format!("/proc/{pid}/root"));
            let opened = Inside::open(&root, dir).ok()?;
            // It was this one, and not another that has its number by now.
            self.running_init().map(|_| opened)
        });
        match running {
            Some(inside) => Ok(inside),
            None => Inside::open(&self.place.file("upper"), dir),
        }
    }

    /// Its first process, if it is one of its processes still.
    fn running_init(&self) -> Option<i32> {
        let pid = self.init()?;
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        groups.lines().any(|line| line.ends_with(&self.cgroup)).then_some(pid)
    }

    fn init(&self) -> Option<i32> {
        fs::read_to_string(self.place.file("init")).ok()?.trim().parse().ok()
    }

    /// Why a process was not started, in words. Blocks.
    pub(super) fn why_not(&self, name: &str, is_first: bool, error: Error) -> Error {
        let (log, trouble) =
            (self.log(if is_first { "runc" } else { name }), self.place.file("trouble"));
        let said = reason::read(&log, &trouble);
        for file in [&log, &trouble] {
            let _absent = fs::remove_file(file);
        }
        if is_first {
            // It may be tried again.
            let _fails_again_then = fs::remove_file(self.place.file("init"));
        }
        said.map_or(error, Error::Unstartable)
    }

    /// A name that others may have to take for one: no longer than names are, without what they must not have.
    fn hostname(&self) -> String {
        let name: String = self.guid.replace('_', "-").chars().take(LONGEST_HOSTNAME).collect();
        name.trim_matches('-').to_owned()
    }
}

/// The group of a process below that of its container, as `runc` wants it named.
fn below(process: &str) -> String {
    let is_unified = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    if is_unified { process.to_owned() } else { format!("pids:{process}") }
}

/// The image's, over which the process's own count, and what everything needs.
/// What `runc` is told of a process beside others.
#[derive(Debug)]
pub(super) enum Order {
    Open(Value),
    /// It must not lie in a file.
    Hidden(Document),
}

/// The file that says how a process is started.
pub(super) fn order_of(name: &str) -> String {
    format!("{name}.json")
}

fn environment(
    image: &[String],
    account: &Account,
    process: &Process,
    guid: &str,
) -> Result<Vec<String>, Error> {
    let home = account.home.as_deref().unwrap_or("/");
    let mut all: BTreeMap<&str, &str> = BTreeMap::from([("PATH", PATH), ("HOME", home)]);
    all.extend(image.iter().filter_map(|variable| variable.split_once('=')));
    for (name, value) in &process.env {
        check_variable(name)?;
        all.insert(name, value);
    }
    all.extend(process.secrets.iter().map(|(name, value)| (name.as_str(), value.reveal())));
    all.insert(CONTAINER_MARK, guid);
    all.insert(PROCESS_MARK, &process.name);
    Ok(all.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}
