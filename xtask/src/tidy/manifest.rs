//! A manifest as its checks want to see it: tables of TOML in which every key knows its line.

use toml::de::{DeTable, DeValue};

use super::Problem;
use super::tree::File;

/// The manifests of the members: all but the root's and those of workspaces apart.
pub(super) fn of_members(files: &[File]) -> impl Iterator<Item = (&File, Result<DeTable<'_>, Problem>)> {
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let parsed = manifests.map(|file| (file, parse(file)));
    parsed.filter(|(_, manifest)| !manifest.as_ref().is_ok_and(|manifest| manifest.contains_key("workspace")))
}

pub(super) fn parse(file: &File) -> Result<DeTable<'_>, Problem> {
    let parsed = DeTable::parse(&file.text);
    parsed.map(toml::Spanned::into_inner).map_err(|error| {
        let line = error.span().map_or(1, |span| file.line_at(span.start));
        file.problem(line, format!("cannot be read: {}", error.message()))
    })
}

/// What stands at the end of these keys.
pub(super) fn find<'a>(table: &'a DeTable<'a>, keys: &[&str]) -> Option<&'a DeValue<'a>> {
    let (last, way) = keys.split_last()?;
    let table = way.iter().try_fold(table, |table, key| as_table(table.get(*key)?.get_ref()))?;
    table.get(*last).map(toml::Spanned::get_ref)
}

pub(super) fn as_table<'a>(value: &'a DeValue<'a>) -> Option<&'a DeTable<'a>> {
    if let DeValue::Table(table) = value { Some(table) } else { None }
}

pub(super) fn is_true(value: Option<&DeValue<'_>>) -> bool {
    matches!(value, Some(DeValue::Boolean(true)))
}
