use std::collections::BTreeMap;

/// A test that could not run here, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Names the file to which tests append a line `SKIP name: reason`.
pub(crate) const VARIABLE: &str = "KAPELL_TEST_SKIPS";

/// A test counts once, however often it says so.
pub(crate) fn parse(text: &str) -> Vec<Skip> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("SKIP "));
    let mut found = BTreeMap::new();
    for line in lines {
        // A name may be a path of modules, so a single colon ends it only with a space behind.
        let (name, reason) = line.split_once(": ").unwrap_or((line, "no reason given"));
        found.entry(name.trim().to_owned()).or_insert_with(|| reason.trim().to_owned());
    }
    found.into_iter().map(|(name, reason)| Skip { name, reason }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_once_with_its_first_reason() {
        let text = "SKIP a::b: no python3\nnoise\nSKIP c: d: e\nSKIP a::b: again\nSKIP bare\n";
        let found: Vec<_> = parse(text).into_iter().map(|skip| (skip.name, skip.reason)).collect();
        let want = [("a::b", "no python3"), ("bare", "no reason given"), ("c", "d: e")];
        assert_eq!(found, want.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
    }
}
