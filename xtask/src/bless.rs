//! `cargo xtask bless`: golden files are written by the tests that own them, when `ROTA_BLESS` is set.

use crate::invocation::Invocation;
use crate::test::TARGETS;

pub(crate) fn run() -> bool {
    let blessed = invocation().run();
    if blessed {
        println!("The golden files are written; `git diff` shows what changed.");
    } else {
        eprintln!("A golden test failed although it could write its file: see above.");
    }
    blessed
}

fn invocation() -> Invocation {
    Invocation::cargo(["test", "--workspace"]).args(TARGETS).args(["golden_"]).env("ROTA_BLESS", "1")
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_golden_tests_run_with_the_blessing() {
        assert_eq!(
            super::invocation().to_string(),
            "ROTA_BLESS=1 cargo test --workspace --lib --bins --tests --examples golden_"
        );
    }
}
