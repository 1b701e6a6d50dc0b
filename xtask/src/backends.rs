//! Servers that tests run against. None yet: they come with the drivers of the store.

use crate::error::{Error, Result, failed};

const BACKENDS: [&str; 0] = [];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let [action @ ("up" | "down" | "status"), names @ ..] = words else {
        return Err(Error::Usage("backends: say up, down or status".to_owned()));
    };
    if let Some(name) = names.iter().find(|name| !BACKENDS.contains(*name)) {
        return Err(failed(format!("unknown backend `{name}`; known: {}", known())));
    }
    println!("backends {action}: {}", known());
    Ok(())
}

fn known() -> String {
    if BACKENDS.is_empty() { "none in this project yet".to_owned() } else { BACKENDS.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_an_error_that_names_what_exists() {
        let Err(Error::Failed(text)) = run(&["up", "etcd"]) else { panic!("accepted") };
        assert_eq!(text, "unknown backend `etcd`; known: none in this project yet");
        assert!(run(&["status"]).is_ok());
        assert!(matches!(run(&["sideways"]), Err(Error::Usage(_))));
    }
}
