//! `cargo xtask tables`: the pages in `docs/tables`, made from the code by the test that compares them.

use crate::command::{cargo, succeeds};
use crate::error::{Result, failed};
use crate::workspace::Workspace;

/// Tells the test to write what it would compare.
const WRITE: &str = "KAPELL_WRITE_TABLES";
const TEST: &str = "tables::tests::pages_are_as_the_code_has_them";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--quiet", "--package", "kapell-core", "--lib", TEST, "--", "--exact"]);
    if !succeeds(command.env(WRITE, "1"))? {
        return Err(failed("the pages were not written".to_owned()));
    }
    println!("docs/tables is as the code has it");
    Ok(())
}
