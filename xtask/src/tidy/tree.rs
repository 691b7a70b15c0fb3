//! What the checks look at: the text files of the repository and the members of the workspace.
//!
//! Files are found by walking the folders and not by asking git, so that a tree without its history (an archive, a
//! container's copy) is checked too. What `.gitignore` names is left out.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::Problem;
use crate::invocation::Invocation;

pub(super) struct Tree {
    pub(super) files: Vec<File>,
    pub(super) members: Vec<Member>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let files = read_files(root).map_err(|error| format!("{}: {error}", root.display()))?;
        let metadata = Invocation::cargo(["metadata", "--no-deps", "--format-version", "1"]).output()?;
        Ok(Self { files, members: members(&metadata, root)? })
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// A text file, by its path from the root.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the project's own crates hold it, not its documents or its settings.
    pub(super) fn is_in_a_crate(&self) -> bool {
        ["crates/", "examples/", "xtask/", "bench/"].iter().any(|folder| self.path.starts_with(folder))
    }

    /// Whether a folder of one of these names is on the way to it.
    pub(super) fn is_below(&self, folders: &[&str]) -> bool {
        let (on_the_way, _) = self.path.rsplit_once('/').unwrap_or_default();
        on_the_way.split('/').any(|folder| folders.contains(&folder))
    }

    /// Its lines with their numbers, as editors count them.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The number of the line that holds this byte.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|&b| b == b'\n').count()
    }

    pub(super) fn problem(&self, line: usize, sentence: impl Into<String>) -> Problem {
        Problem { path: self.path.clone(), line, sentence: sentence.into() }
    }
}

/// A crate of the workspace and what its manifest asks for, as cargo understood it.
#[derive(Debug, Deserialize)]
pub(super) struct Member {
    pub(super) name: String,
    #[serde(rename = "manifest_path")]
    pub(super) manifest: String,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// None for what the crate itself needs, otherwise `dev` or `build`.
    kind: Option<String>,
}

impl Dependency {
    pub(super) fn is_for_tests(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

#[cfg(test)]
impl Member {
    /// Dependencies are written `name` or `dev name` or `build name`.
    pub(super) fn new(name: &str, manifest: &str, dependencies: &[&str]) -> Self {
        let dependency = |text: &&str| match text.split_once(' ') {
            Some((kind, name)) => Dependency { name: name.to_owned(), kind: Some(kind.to_owned()) },
            None => Dependency { name: (*text).to_owned(), kind: None },
        };
        let dependencies = dependencies.iter().map(dependency).collect();
        Self { name: name.to_owned(), manifest: manifest.to_owned(), dependencies }
    }
}

fn members(metadata: &str, root: &Path) -> Result<Vec<Member>, String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Member>,
    }
    let metadata: Metadata =
        serde_json::from_str(metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut members = metadata.packages;
    for member in &mut members {
        member.manifest = relative(Path::new(&member.manifest), root);
    }
    Ok(members)
}

fn read_files(root: &Path) -> io::Result<Vec<File>> {
    let ignored = Ignored::parse(&fs::read_to_string(root.join(".gitignore")).unwrap_or_default());
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = relative(&entry.path(), root);
            let kind = entry.file_type()?;
            if ignored.covers(&path) {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.extend(read_text(&entry.path())?.map(|text| File { path, text }));
            }
        }
    }
    Ok(files)
}

/// None for what is not text, and for what was there a moment ago: editors and tests come and go.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// The plain kinds of lines in `.gitignore`: `/from/the/root`, `name` anywhere, `*.ending` anywhere. A pattern
/// beyond these hides nothing, so that at worst too much is checked.
struct Ignored(Vec<String>);

impl Ignored {
    fn parse(gitignore: &str) -> Self {
        let lines = gitignore.lines().map(|line| line.trim().trim_end_matches('/'));
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self([".git"].into_iter().chain(patterns).map(str::to_owned).collect())
    }

    fn covers(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.0.iter().any(|pattern| match (pattern.strip_prefix('/'), pattern.strip_prefix('*')) {
            (Some(from_root), _) => path == from_root,
            (_, Some(ending)) => name.ends_with(ending),
            _ => name == pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_below(root: &Path) -> Vec<String> {
        let mut paths: Vec<_> = read_files(root).unwrap().into_iter().map(|file| file.path).collect();
        paths.sort();
        paths
    }

    #[test]
    fn text_files_are_read_and_the_rest_left_out() {
        let root = tempfile::tempdir().unwrap();
        for folder in [".git", "target", "src/target"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join(".gitignore"), "# built\n/target/\n*.log\n.DS_Store\n").unwrap();
        for file in [".git/config", "target/a.rs", "src/target/b.rs", "src/c.log", "src/.DS_Store"] {
            fs::write(root.path().join(file), "text\n").unwrap();
        }
        fs::write(root.path().join("src/picture.png"), b"\x89PNG\0").unwrap();
        assert_eq!(paths_below(root.path()), [".gitignore", "src/target/b.rs"]);
    }

    #[test]
    fn members_come_from_the_metadata_of_cargo() {
        let metadata = r#"{"packages": [{"name": "a", "manifest_path": "/r/crates/a/Cargo.toml", "dependencies": [
            {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]}]}"#;
        let members = members(metadata, Path::new("/r")).unwrap();
        assert_eq!((members[0].name.as_str(), members[0].manifest.as_str()), ("a", "crates/a/Cargo.toml"));
        let for_tests: Vec<_> = members[0].dependencies.iter().map(Dependency::is_for_tests).collect();
        assert_eq!(for_tests, [false, true]);
    }

    #[test]
    fn folders_on_the_way_are_told_from_the_file() {
        assert!(File::new("crates/a/fixtures/b.txt", "").is_below(&["fixtures"]));
        assert!(!File::new("crates/a/fixtures", "").is_below(&["fixtures"]));
        assert!(!File::new("fixtures", "").is_below(&["fixtures"]));
    }

    #[test]
    fn lines_are_counted_from_one() {
        let file = File::new("a", "x\ny\nz");
        assert_eq!([0, 1, 2, 4].map(|byte| file.line_at(byte)), [1, 1, 2, 3]);
    }
}
