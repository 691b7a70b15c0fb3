//! Packages of Debian, where there is an apt to ask.

use crate::invocation::Invocation;

/// Says whether they were installed.
pub(super) fn install(packages: &[&str]) -> bool {
    let install = ["install", "--yes", "--no-install-recommends"].iter().chain(packages).copied();
    Invocation::new("apt-get", ["--version"]).works()
        && Invocation::new("apt-get", ["update"]).run()
        && Invocation::new("apt-get", install).run()
}
