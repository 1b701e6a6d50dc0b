//! What to run, as the agent wrote it: texts that each end with a NUL byte.

use std::ffi::{CStr, c_char};

use crate::number;

const MAGIC: &[u8] = b"kapell-spec-2";
const END: &[u8] = b"end";

/// All texts are those of the file, so they already are what `execve` wants.
pub(crate) struct Spec<'a> {
    pub(crate) program: &'a CStr,
    /// Nothing: its own working directory.
    pub(crate) dir: Option<&'a CStr>,
    /// User and group, unless it runs as we do.
    pub(crate) user: Option<(u32, u32)>,
    /// Whoever runs as its user is part of it.
    pub(crate) own_user: bool,
    pub(crate) stop_grace_ms: u64,
    pub(crate) logs: &'a CStr,
    pub(crate) log_bytes: u64,
    /// How many descriptors it may have open, unless as many as we.
    pub(crate) descriptors: Option<u64>,
    /// With the null pointers at their ends.
    pub(crate) arguments: Vec<*const c_char>,
    pub(crate) environment: Vec<*const c_char>,
    pub(crate) path: &'a [u8],
}

impl<'a> Spec<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut texts = Texts(bytes);
        if texts.next()?.to_bytes() != MAGIC {
            return None;
        }
        let _boot = texts.next()?;
        let program = texts.next()?;
        let dir = Some(texts.next()?).filter(|dir| !dir.is_empty());
        let (uid, gid) = (texts.optional_number().ok()?, texts.optional_number().ok()?);
        let user = match (uid, gid) {
            (Some(uid), Some(gid)) => Some((u32::try_from(uid).ok()?, u32::try_from(gid).ok()?)),
            _ => None,
        };
        let own_user = texts.next()?.to_bytes() == b"own";
        let stop_grace_ms = number::parse(texts.next()?.to_bytes())?;
        let logs = texts.next()?;
        let log_bytes = number::parse(texts.next()?.to_bytes())?;
        let descriptors = texts.optional_number().ok()?;
        let mut arguments = vec![program.as_ptr()];
        texts.list(|text| arguments.push(text.as_ptr()))?;
        arguments.push(std::ptr::null());
        let mut environment = Vec::new();
        let mut path = &b"/usr/local/bin:/usr/bin:/bin"[..];
        texts.list(|text| {
            if let Some(own) = text.to_bytes().strip_prefix(b"PATH=") {
                path = own;
            }
            environment.push(text.as_ptr());
        })?;
        environment.push(std::ptr::null());
        (texts.next()?.to_bytes() == END).then_some(())?;
        Some(Self {
            program,
            dir,
            user,
            own_user,
            stop_grace_ms,
            logs,
            log_bytes,
            descriptors,
            arguments,
            environment,
            path,
        })
    }
}

struct Texts<'a>(&'a [u8]);

struct Damaged;

impl<'a> Texts<'a> {
    fn next(&mut self) -> Option<&'a CStr> {
        let text = CStr::from_bytes_until_nul(self.0).ok()?;
        self.0 = &self.0[text.to_bytes_with_nul().len()..];
        Some(text)
    }

    /// A number, or nothing where the text is empty.
    fn optional_number(&mut self) -> Result<Option<u64>, Damaged> {
        let text = self.next().ok_or(Damaged)?.to_bytes();
        if text.is_empty() { Ok(None) } else { number::parse(text).map(Some).ok_or(Damaged) }
    }

    /// How many there are, then as many.
    fn list(&mut self, mut each: impl FnMut(&'a CStr)) -> Option<()> {
        for _ in 0..number::parse(self.next()?.to_bytes())? {
            each(self.next()?);
        }
        Some(())
    }
}
