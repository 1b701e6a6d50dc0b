//! The extended headers of an archive.

use super::archive::Xattr;

/// What an extended header says of the entry behind it.
#[derive(Debug, Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<(i64, i64)>,
    pub(super) xattrs: Vec<Xattr>,
    pub(super) sparse: Option<PaxSparse>,
}

/// GNU tar's ways to write a file with holes.
#[derive(Debug, Default)]
pub(super) struct PaxSparse {
    /// Since 1.0 the map stands before the data.
    pub(super) major: u64,
    pub(super) name: Option<Vec<u8>>,
    pub(super) real_size: Option<u64>,
    pub(super) map: Option<Vec<u8>>,
}

impl Pax {
    /// Records are `<length> <key>=<value>\n`; a value may hold any byte.
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, String> {
        let mut all = Self::default();
        while !bytes.is_empty() {
            let (key, value, rest) =
                record(bytes).ok_or("has an extended header that cannot be read")?;
            all.take(key, value)?;
            bytes = rest;
        }
        Ok(all)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
            self.xattrs.push(Xattr { name: name.to_vec(), value: value.to_vec() });
            return Ok(());
        }
        if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
            return self.take_sparse(key, value);
        }
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(number(value)?),
            b"uid" => self.uid = Some(number(value)?),
            b"gid" => self.gid = Some(number(value)?),
            b"mtime" => self.mtime = Some(time(value)?),
            _others => {}
        }
        Ok(())
    }

    fn take_sparse(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let sparse = self.sparse.get_or_insert_default();
        match key {
            b"major" => sparse.major = number(value)?,
            b"name" => sparse.name = Some(value.to_vec()),
            b"realsize" | b"size" => sparse.real_size = Some(number(value)?),
            b"map" => sparse.map = Some(value.to_vec()),
            b"minor" | b"numblocks" => {}
            _others => {
                return Err("is a sparse file of GNU tar's format 0.0: use format 1.0".to_owned());
            }
        }
        Ok(())
    }
}

fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(&bytes[..space]).ok()?).ok()?;
    let body = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((&body[..equals], &body[equals + 1..], &bytes[length..]))
}

pub(super) fn number(text: &[u8]) -> Result<u64, String> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| "has an extended header with a bad number".to_owned())
}

/// Seconds and nanoseconds; what is finer is cut off.
fn time(text: &[u8]) -> Result<(i64, i64), String> {
    let bad = || "has an extended header with a bad time".to_owned();
    let text = std::str::from_utf8(text).map_err(|_| bad())?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().map_err(|_| bad())?;
    let mut nanos = 0;
    for at in 0..9 {
        let digit = part.as_bytes().get(at).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return Err(bad());
        }
        nanos = nanos * 10 + i64::from(digit - b'0');
    }
    match (whole.starts_with('-'), nanos) {
        (true, 1..) => Ok((seconds.checked_sub(1).ok_or_else(bad)?, 1_000_000_000 - nanos)),
        (true | false, _) => Ok((seconds, nanos)),
    }
}
