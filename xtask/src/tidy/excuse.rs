//! `tidy: allow(RULE) REASON` in a comment at the end of a line.

/// Whether a line may break a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excuse {
    None,
    Given,
    /// The line asks for it but does not say why.
    WithoutReason,
}

impl Excuse {
    /// Reads the comment part of a line.
    pub(crate) fn find(comment: &str, rule: &str) -> Self {
        let wanted = format!("tidy: allow({rule})");
        let Some((_, reason)) = comment.split_once(&wanted) else { return Self::None };
        let has_reason = reason.chars().any(char::is_alphanumeric);
        if has_reason { Self::Given } else { Self::WithoutReason }
    }

    /// What to append to the problem; none if there is no problem.
    pub(crate) const fn complaint(self) -> Option<&'static str> {
        match self {
            Self::None => Some(""),
            Self::Given => None,
            Self::WithoutReason => Some(" (its allow comment gives no reason)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_the_right_rule_and_a_reason() {
        assert_eq!(
            Excuse::find("// tidy: allow(sleep) the kernel has no event", "sleep"),
            Excuse::Given
        );
        assert_eq!(Excuse::find("<!-- tidy: allow(path) an example -->", "path"), Excuse::Given);
        assert_eq!(Excuse::find("// tidy: allow(sleep) why", "clock"), Excuse::None);
        assert_eq!(Excuse::find("// tidy: allow(sleep)  -->", "sleep"), Excuse::WithoutReason);
        assert_eq!(Excuse::find("// nothing", "sleep"), Excuse::None);
    }
}
