//! What the tests need beside a toolchain that compiles: installed where that is possible, named where it is not.
//!
//! - [`apt`]: what Debian has
//! - [`python`]: what PyPI has

mod apt;
pub(crate) mod python;

use crate::invocation::Invocation;

/// A part of the toolchain that a minimal installation leaves out.
struct Component {
    name: &'static str,
    subcommand: &'static str,
    /// For toolchains that come from the distribution instead of from rustup.
    debian_package: &'static str,
}

const COMPONENTS: [Component; 2] = [
    Component { name: "rustfmt", subcommand: "fmt", debian_package: "rustfmt" },
    Component { name: "clippy", subcommand: "clippy", debian_package: "rust-clippy" },
];

/// A program that tests start, and the Debian package that brings it.
struct Program {
    name: &'static str,
    debian_package: &'static str,
}

/// The commands of the README are run by a test, in a shell; a bar is drawn on a terminal; the page is looked at in a browser.
/// With the client of PostgreSQL comes its server, of which tests start one of their own, with certificates of their own.
const PROGRAMS: [Program; 7] = [
    Program { name: "bash", debian_package: "bash" },
    Program { name: "curl", debian_package: "curl" },
    Program { name: "script", debian_package: "bsdutils" },
    Program { name: "chromium", debian_package: "chromium" },
    Program { name: "chromedriver", debian_package: "chromium-driver" },
    Program { name: "psql", debian_package: "postgresql" },
    Program { name: "openssl", debian_package: "openssl" },
];

/// Says whether everything is there in the end.
pub(crate) fn run() -> bool {
    // Each is tried, so that a person hears of everything that is missing at once.
    let components = COMPONENTS.iter().filter(|component| !provide(component)).count();
    let programs = PROGRAMS.iter().filter(|program| !install(program)).count();
    python::provide() && components + programs == 0
}

fn install(program: &Program) -> bool {
    let Program { name, debian_package } = program;
    if Invocation::new(*name, ["--version"]).works() {
        println!("{name} is there");
        return true;
    }
    let installed = apt::install(&[debian_package]);
    if !installed {
        eprintln!(
            "{name} is missing and could not be installed: install it (on Debian, as root: {debian_package})"
        );
    }
    installed
}

fn provide(component: &Component) -> bool {
    if Invocation::cargo([component.subcommand, "--version"]).works() {
        println!("{} is there", component.name);
        return true;
    }
    if Invocation::new("rustup", ["--version"]).works() {
        return Invocation::new("rustup", ["component", "add", component.name]).run();
    }
    eprintln!("{}", advice(component));
    false
}

fn advice(component: &Component) -> String {
    let Component { name, debian_package, .. } = component;
    format!("{name} is missing, and there is no rustup to add it: install it (on Debian: {debian_package})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_installed_is_named_with_its_package() {
        let [_, clippy] = COMPONENTS;
        let advice = advice(&clippy);
        assert!(advice.contains("clippy is missing") && advice.contains("rust-clippy"), "{advice}");
    }
}
