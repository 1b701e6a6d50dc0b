//! `kapell job schema`

use anyhow::bail;
use kapell_core::constraint::schemas;
use kapell_core::source::closest;

use super::job_args::JobSchema;
use crate::print;

pub(crate) fn run(args: &JobSchema) -> anyhow::Result<u8> {
    print(&shown(args.kind.as_deref(), args.name.as_deref())?);
    Ok(0)
}

/// A list of what there is, or the schema of one.
fn shown(kind: Option<&str>, name: Option<&str>) -> anyhow::Result<String> {
    let all = schemas();
    let Some(name) = name else {
        let of_kind = |of: &str| kind.is_none_or(|kind| of == kind);
        let lines = all.iter().filter_map(|(name, schema)| {
            let (of, name) = name.split_once('/')?;
            let about = schema["description"].as_str().unwrap_or_default();
            of_kind(of).then(|| format!("{of:<11}{name:<29}{about}\n"))
        });
        return Ok(lines.collect());
    };
    let kind = kind.unwrap_or_default();
    match all.get(&format!("{kind}/{name}")) {
        Some(schema) => Ok(format!("{schema:#}\n")),
        None => {
            let prefix = format!("{kind}/");
            let names = all.keys().filter_map(|name| name.strip_prefix(&prefix));
            match closest(name, names) {
                Some(meant) => bail!("there is no {kind} `{name}`: did you mean `{meant}`?"),
                None => bail!("there is no {kind} `{name}`: see `kapell job schema {kind}`"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn constraints_and_actions_are_listed_and_each_has_its_schema() {
        let all = shown(None, None).unwrap();
        assert!(all.contains("constraint time_window"), "{all}");
        assert!(all.contains("action     webhook"), "{all}");
        let actions = shown(Some("action"), None).unwrap();
        assert!(actions.lines().all(|line| line.starts_with("action ")), "{actions}");
        let one: serde_json::Value =
            serde_json::from_str(&shown(Some("constraint"), Some("time_window")).unwrap()).unwrap();
        assert_eq!(one["title"], "time_window");
        assert!(one["anyOf"][0]["properties"]["start"].is_object());
    }

    #[test]
    fn what_there_is_none_of_is_told_with_what_was_meant() {
        let told = |name| shown(Some("action"), Some(name)).unwrap_err().to_string();
        assert_eq!(told("webhok"), "there is no action `webhok`: did you mean `webhook`?");
        assert_eq!(told("zzz"), "there is no action `zzz`: see `kapell job schema action`");
    }
}
