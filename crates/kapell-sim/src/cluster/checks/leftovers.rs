use super::Violation;

/// Nothing runs after a shutdown.
pub(in crate::cluster) fn shut_down(host: usize, leftover: usize) -> Result<(), Violation> {
    if leftover == 0 {
        return Ok(());
    }
    let how = format!("{leftover} tasks of host {host} outlived its shutdown");
    Err(Violation::new("nothing left", how))
}
