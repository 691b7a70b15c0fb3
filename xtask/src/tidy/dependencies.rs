//! Versions are chosen once, in the root's `[workspace.dependencies]`, so that no two crates disagree.

use toml::de::DeTable;

use super::Problem;
use super::manifest::{self, as_table, find, is_true};
use super::tree::File;

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let manifests = manifest::of_members(files);
    manifests
        .flat_map(|(file, manifest)| manifest.map_or_else(|bad| vec![bad], |table| check_one(file, &table)))
        .collect()
}

fn check_one(file: &File, manifest: &DeTable<'_>) -> Vec<Problem> {
    let targets = find(manifest, &["target"]).and_then(as_table);
    let by_target = targets.into_iter().flat_map(|targets| targets.values());
    let by_target = by_target.filter_map(|target| as_table(target.get_ref()));
    let tables = by_target.chain([manifest]).flat_map(dependency_tables);
    tables.flat_map(|table| own_versions(file, table)).collect()
}

fn dependency_tables<'a>(table: &'a DeTable<'a>) -> impl Iterator<Item = &'a DeTable<'a>> {
    KINDS.iter().filter_map(move |kind| find(table, &[kind]).and_then(as_table))
}

fn own_versions(file: &File, dependencies: &DeTable<'_>) -> Vec<Problem> {
    let own = dependencies.iter().filter(|(_, value)| {
        !as_table(value.get_ref()).is_some_and(|table| is_true(find(table, &["workspace"])))
    });
    own.map(|(name, _)| {
        let sentence = format!(
            "`{}` is declared here: declare it in the root's [workspace.dependencies] and say `workspace = true`",
            name.get_ref()
        );
        file.problem(file.line_at(name.span().start), sentence)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_at_fault(path: &str, text: &str) -> Vec<usize> {
        let mut lines: Vec<_> =
            check(&[File::new(path, text)]).into_iter().map(|problem| problem.line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn a_version_of_its_own_is_a_problem_in_every_kind_of_table() {
        let text = "[dependencies]\nserde = \"1\"\nrota-model = { path = \"../model\" }\ntoml.workspace = true\n\
                    [dev-dependencies]\nproptest = { version = \"1\", workspace = false }\n\
                    [build-dependencies.prost]\nversion = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n";
        assert_eq!(lines_at_fault("crates/a/Cargo.toml", text), [2, 3, 6, 7, 10]);
    }

    #[test]
    fn both_ways_to_inherit_are_fine() {
        let text = "[dependencies]\nserde.workspace = true\ntokio = { workspace = true, features = [\"net\"] }\n\
                    [dependencies.clap]\nworkspace = true\n";
        assert!(lines_at_fault("crates/a/Cargo.toml", text).is_empty());
    }

    #[test]
    fn the_root_and_workspaces_apart_are_their_own_masters() {
        assert!(lines_at_fault("Cargo.toml", "[workspace.dependencies]\nserde = \"1\"\n").is_empty());
        assert!(lines_at_fault("fuzz/Cargo.toml", "[workspace]\n[dependencies]\nserde = \"1\"\n").is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_a_problem() {
        assert_eq!(lines_at_fault("crates/a/Cargo.toml", "[package]\nname =\n"), [2]);
    }
}
