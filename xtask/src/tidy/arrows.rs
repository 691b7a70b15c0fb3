//! Crates depend on each other as ARCHITECTURE.md says:
//!
//! ```text
//! model ← store ← engine ← {placement, backup} ← web ← rota
//! ```
//!
//! The table holds the arrows; what can be reached by them may be needed too. Dev-dependencies are free, as a test
//! may look at anything, with one limit: no store crate takes part in a circle. Cargo would build the crate twice,
//! and the two would not know each other's types.

use std::collections::BTreeSet;

use super::Problem;
use super::tree::{Dependency, Member, Tree};

/// Each crate and those directly below it.
const ARROWS: [(&str, &[&str]); 19] = [
    ("rota-model", &[]),
    ("rota-calendar", &["rota-model"]),
    ("rota-store", &["rota-model"]),
    ("rota-store-sqlite", &["rota-store"]),
    ("rota-store-postgres", &["rota-store"]),
    ("rota-store-opensearch", &["rota-store"]),
    ("rota-engine", &["rota-store", "rota-calendar"]),
    ("rota-handlers", &["rota-engine"]),
    ("rota-traces", &["rota-engine"]),
    ("rota-placement", &["rota-engine"]),
    ("rota-backup", &["rota-engine"]),
    ("rota-worker-protocol", &["rota-model"]),
    ("rota-web", &["rota-placement", "rota-backup", "rota-worker-protocol"]),
    ("rota-client", &["rota-model"]),
    (
        "rota",
        &[
            "rota-web",
            "rota-client",
            "rota-handlers",
            "rota-traces",
            "rota-store-sqlite",
            "rota-store-postgres",
            "rota-store-opensearch",
        ],
    ),
    (
        "rota-testkit",
        &[
            "rota-placement",
            "rota-backup",
            "rota-worker-protocol",
            "rota-store-sqlite",
            "rota-store-postgres",
            "rota-store-opensearch",
        ],
    ),
    ("rota-bench", &["rota", "rota-testkit"]),
    ("await-file", &["rota"]),
    ("xtask", &["rota-testkit"]),
];

const UNKNOWN: &str = "is unknown: add it to the table in xtask/src/tidy/arrows.rs and to ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let faults = tree.members.iter().flat_map(|member| check_member(member, &tree.members));
    faults.map(|fault| fault.located(tree)).collect()
}

/// A sentence about a manifest, and the dependency whose line it is about.
struct Fault<'a> {
    manifest: &'a str,
    dependency: Option<&'a str>,
    sentence: String,
}

impl Fault<'_> {
    fn located(self, tree: &Tree) -> Problem {
        let declares = |line: &str| {
            let rest = self.dependency.and_then(|name| line.trim_start().strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
        };
        let file = tree.file(self.manifest);
        let line = file.and_then(|file| file.lines().find(|(_, line)| declares(line)));
        let line = line.map_or(1, |(number, _)| number);
        Problem { path: self.manifest.to_owned(), line, sentence: self.sentence }
    }
}

fn check_member<'a>(member: &'a Member, members: &'a [Member]) -> Vec<Fault<'a>> {
    let fault = |dependency, sentence| Fault { manifest: &member.manifest, dependency, sentence };
    let Some(below) = below(&member.name) else {
        return vec![fault(None, format!("`{}` {UNKNOWN}", member.name))];
    };
    let inside = member.dependencies.iter().filter(|dependency| is_inside(&dependency.name, members));
    let sentence = |dependency: &Dependency| match dependency.is_for_tests() {
        true => circle(&member.name, &dependency.name, members),
        false => against_the_arrows(&member.name, &dependency.name, &below),
    };
    inside.filter_map(|dependency| Some(fault(Some(&dependency.name), sentence(dependency)?))).collect()
}

fn is_inside(name: &str, members: &[Member]) -> bool {
    name.starts_with("rota-") || members.iter().any(|member| member.name == name)
}

fn against_the_arrows(from: &str, to: &str, below: &BTreeSet<&str>) -> Option<String> {
    let sentence = format!("`{from}` may not depend on `{to}`: ARCHITECTURE.md has no arrow between them");
    (!below.contains(to)).then_some(sentence)
}

fn circle(from: &str, to: &str, members: &[Member]) -> Option<String> {
    let sentence =
        format!("`{from}` needs `{to}` for its tests, and `{to}` needs `{from}`: no circles with a store");
    let with_a_store = is_store_crate(from) || is_store_crate(to);
    (with_a_store && needs(to, from, members)).then_some(sentence)
}

fn is_store_crate(name: &str) -> bool {
    name.starts_with("rota-store-")
}

/// Everything that the table lets a crate need; None for a crate that is not in the table.
fn below(name: &str) -> Option<BTreeSet<&'static str>> {
    let (_, arrows) = ARROWS.iter().find(|(known, _)| *known == name)?;
    let further = arrows.iter().filter_map(|next| below(next)).flatten();
    Some(arrows.iter().copied().chain(further).collect())
}

/// Whether one crate, as it is, needs the other, directly or through others. Ends because cargo refuses circles of
/// anything but dev-dependencies.
fn needs(name: &str, wanted: &str, members: &[Member]) -> bool {
    let member = members.iter().filter(|member| member.name == name);
    let mut needed = member.flat_map(|member| &member.dependencies).filter(|needed| !needed.is_for_tests());
    needed.any(|needed| needed.name == wanted || needs(&needed.name, wanted, members))
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    fn member(name: &str, dependencies: &[&str]) -> Member {
        Member::new(name, &format!("crates/{name}/Cargo.toml"), dependencies)
    }

    fn faults(members: Vec<Member>) -> Vec<String> {
        check(&Tree { files: Vec::new(), members }).into_iter().map(|problem| problem.sentence).collect()
    }

    fn assert_refused(from: &str, to: &str) {
        let faults = faults(vec![member(from, &[to])]);
        assert_eq!(faults.len(), 1, "{from} → {to}");
        assert!(faults[0].contains("may not depend"), "{faults:?}");
    }

    #[test]
    fn every_arrow_of_the_table_leads_to_a_crate_of_the_table() {
        for (name, arrows) in ARROWS {
            assert!(arrows.iter().all(|next| below(next).is_some()), "{name}");
        }
    }

    #[test]
    fn arrows_may_be_followed_further_down() {
        let web = member("rota-web", &["rota-backup", "rota-engine", "rota-calendar", "rota-model", "serde"]);
        let rota = member("rota", &["rota-web", "rota-store-sqlite", "rota-client"]);
        assert!(faults(vec![web, rota]).is_empty());
    }

    #[test]
    fn arrows_against_the_architecture_are_refused() {
        assert_refused("rota-model", "rota-store");
        assert_refused("rota-store", "build rota-engine");
        assert_refused("rota-calendar", "rota-store");
        assert_refused("rota-placement", "rota-backup");
        assert_refused("rota-client", "rota-store");
        assert_refused("rota-worker-protocol", "rota-engine");
        assert_refused("rota-store-sqlite", "rota-engine");
    }

    #[test]
    fn only_the_binary_needs_a_store_crate_and_nobody_the_testkit() {
        assert_refused("rota-engine", "rota-store-sqlite");
        assert_refused("rota-web", "rota-store-postgres");
        assert_refused("rota", "rota-testkit");
        let tools = vec![member("rota-bench", &["rota-testkit"]), member("xtask", &["rota-testkit"])];
        assert!(faults(tools).is_empty());
    }

    #[test]
    fn tests_may_look_at_anything_else() {
        let engine = member("rota-engine", &["dev rota-store-sqlite", "dev rota-testkit", "dev rota-web"]);
        assert!(faults(vec![engine]).is_empty());
    }

    #[test]
    fn a_circle_through_a_store_crate_is_refused() {
        let sqlite = || member("rota-store-sqlite", &["rota-store", "dev rota-testkit"]);
        let testkit = |needed| member("rota-testkit", &[needed]);
        assert!(faults(vec![sqlite(), testkit("rota-store")]).is_empty());
        let refused = faults(vec![sqlite(), testkit("rota-store-sqlite")]);
        assert!(refused.len() == 1 && refused[0].contains("no circles"), "{refused:?}");
        let store = member("rota-store", &["dev rota-store-sqlite"]);
        assert_eq!(faults(vec![store, sqlite(), testkit("rota-store")]).len(), 1);
    }

    #[test]
    fn an_unknown_crate_is_a_problem() {
        assert_eq!(faults(vec![member("rota-extra", &[])]), [format!("`rota-extra` {UNKNOWN}")]);
    }

    #[test]
    fn the_problem_stands_at_the_line_of_the_dependency() {
        let manifest =
            File::new("crates/rota-store/Cargo.toml", "[dependencies]\nrota-engine.workspace = true\n");
        let tree = Tree { files: vec![manifest], members: vec![member("rota-store", &["rota-engine"])] };
        assert_eq!(check(&tree)[0].line, 2);
    }
}
