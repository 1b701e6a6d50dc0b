//! Which agent of a machine has which numbers. Agents agree on it by files, one for each realm.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::slot::REALMS;
use crate::containers::Error;
use crate::process::trouble;

/// A realm that is ours.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) number: u8,
    pub(super) claims: PathBuf,
    agent: String,
}

impl Claim {
    /// Takes the realm that the agent with this directory has already, or a free one. That of an agent whose
    /// directory is gone is free.
    pub(super) fn take(claims: &Path, agent: &Path) -> Result<Self, Error> {
        fs::create_dir_all(claims).map_err(trouble::io("make", claims))?;
        let _held = lock(claims)?;
        let owner = |number: u8| fs::read_to_string(claims.join(number.to_string())).ok();
        let all: Vec<Option<String>> = (0..REALMS).map(owner).collect();
        let own = agent.display().to_string();
        let is_ours = |claim: &Option<String>| claim.as_ref() == Some(&own);
        let is_free =
            |claim: &Option<String>| claim.as_ref().is_none_or(|owner| !Path::new(owner).is_dir());
        let number = all.iter().position(is_ours).or_else(|| all.iter().position(is_free));
        let Some(number) = number.and_then(|number| u8::try_from(number).ok()) else {
            let what = format!(
                "there are {REALMS} agents with containers of their own network on this machine \
                 already, by `{}`",
                claims.display()
            );
            return Err(Error::Io { what, source: io::ErrorKind::QuotaExceeded.into() });
        };
        let file = claims.join(number.to_string());
        fs::write(&file, &own).map_err(trouble::io("write", &file))?;
        Ok(Self { number, claims: claims.to_owned(), agent: own })
    }

    /// Gives it back, if it is still ours, when `clear` has removed what others would find of us. That is told
    /// whether there are no others.
    pub(super) fn release(&self, clear: impl FnOnce(bool)) {
        let Ok(_held) = lock(&self.claims) else { return };
        let file = self.claims.join(self.number.to_string());
        if fs::read_to_string(&file).is_ok_and(|owner| owner == self.agent) {
            let is_there = |number: u8| self.claims.join(number.to_string()).exists();
            clear(!(0..REALMS).any(|number| number != self.number && is_there(number)));
            let _gone_already = fs::remove_file(&file);
        }
    }
}

fn lock(claims: &Path) -> Result<File, Error> {
    let path = claims.join("lock");
    let held = File::create(&path).map_err(trouble::io("open", &path))?;
    held.lock().map_err(trouble::io("lock", &path))?;
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_a_realm_of_its_own_and_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let claims = dir.path().join("claims");
        let agent = |name: &str| {
            fs::create_dir_all(dir.path().join(name)).unwrap();
            Claim::take(&claims, &dir.path().join(name))
        };
        assert_eq!([agent("a").unwrap().number, agent("b").unwrap().number], [0, 1]);
        assert_eq!([agent("b").unwrap().number, agent("a").unwrap().number], [1, 0]);
        fs::remove_dir(dir.path().join("a")).unwrap();
        let former = Claim { number: 0, claims: claims.clone(), agent: "a".to_owned() };
        assert_eq!(agent("c").unwrap().number, 0, "whoever is gone needs none");
        former.release(|_| panic!("it is another's now"));
        for number in 2..REALMS {
            agent(&format!("d{number}")).unwrap();
        }
        assert!(agent("e").unwrap_err().to_string().contains("16 agents"));
        let mut is_cleared = false;
        agent("b").unwrap().release(|is_last| is_cleared = !is_last);
        assert!(is_cleared);
        assert_eq!(agent("e").unwrap().number, 1);
    }
}
