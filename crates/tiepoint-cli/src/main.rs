//! The `tiepoint` command.
fn main() {}
