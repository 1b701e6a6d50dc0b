//! What is left of a container when it has ended: the file `exit`.
//!
//! The layout is `kapell-backend`'s too: `KPX1`, kind, stage, whether it was told to stop, what else there
//! is to know of it, a value (4), how many last words there are (2), these, and the FNV-1a hash of all before (8).

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use crate::tail;

const MAGIC: &[u8] = b"KPX1";
/// The file's size from the start, so that a full disk cannot lose how it ended.
const BLOCK: usize = 4096;
/// No record is longer.
pub(crate) const LONGEST: usize = 14 + tail::LONGEST + 8;

/// Where a container failed before its program ran. The numbers are `kapell-backend`'s too.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Stage {
    Pid = 1,
    Spec = 2,
    Exit = 3,
    Pipes = 4,
    Fork = 5,
    Work = 6,
    User = 7,
    Dir = 8,
    Program = 9,
    Interpreter = 10,
    Group = 11,
    Launcher = 12,
}

impl Stage {
    const ALL: [Self; 12] = [
        Self::Pid,
        Self::Spec,
        Self::Exit,
        Self::Pipes,
        Self::Fork,
        Self::Work,
        Self::User,
        Self::Dir,
        Self::Program,
        Self::Interpreter,
        Self::Group,
        Self::Launcher,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|each| *each as u8 == byte)
    }
}

/// Why the program does not run.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    NeverRan(Failure),
    /// Who waited for it was killed. (4 is what an agent writes of a shim that was.)
    RunnerKilled,
}

/// Makes the file, with room for all that will ever stand in it.
pub(crate) fn prepare() -> std::io::Result<File> {
    let mut file = File::create("exit")?;
    file.write_all(&[0; BLOCK])?;
    Ok(file)
}

/// What is to be told of an end, besides how it came.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flags {
    pub(crate) stopped: bool,
    pub(crate) out_of_memory: bool,
}

pub(crate) fn write(file: &File, end: End, flags: Flags, last_words: &[u8]) {
    // The room is there already; if the disk fails nonetheless, the agent sees that nothing stands here.
    let _best_effort = file.write_all_at(&encode(end, flags, last_words), 0);
}

pub(crate) fn encode(end: End, flags: Flags, last_words: &[u8]) -> Vec<u8> {
    let (kind, stage, value) = match end {
        End::Code(code) => (1, 0, code),
        End::Signal(signal) => (2, 0, signal),
        End::NeverRan(failure) => (3, failure.stage as u8, failure.errno),
        End::RunnerKilled => (5, 0, 0),
    };
    let words = &last_words[..last_words.len().min(tail::LONGEST)];
    let mut record = Vec::with_capacity(LONGEST);
    record.extend_from_slice(MAGIC);
    record.extend_from_slice(&[
        kind,
        stage,
        u8::from(flags.stopped),
        u8::from(flags.out_of_memory),
    ]);
    record.extend_from_slice(&value.to_be_bytes());
    record.extend_from_slice(&u16::try_from(words.len()).unwrap_or(0).to_be_bytes());
    record.extend_from_slice(words);
    let sum = hash(&record);
    record.extend_from_slice(&sum.to_be_bytes());
    record
}

/// FNV-1a.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
