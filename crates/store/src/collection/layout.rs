//! Where declared fields stand in a document, by its members: whoever goes through a document once meets each of them,
//! instead of looking for each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{ALL, Collection};

/// A member of documents at which declared fields stand, or below which they do.
#[derive(Debug)]
pub struct Member {
    pub name: &'static str,
    /// The place, among the declared fields, of the one that is this member itself.
    pub itself: Option<usize>,
    /// Those below it: their paths from here on, and their places.
    pub below: Vec<(&'static str, usize)>,
}

/// By name.
#[derive(Debug)]
pub struct Layout(Vec<Member>);

static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| ALL.iter().map(|one| Layout::of(one)).collect());
static NOTHING: Layout = Layout(Vec::new());

impl Layout {
    fn of(collection: &'static Collection) -> Self {
        let mut members: Vec<Member> = Vec::new();
        for (nth, field) in collection.fields.iter().enumerate() {
            let (name, rest) =
                field.path.split_once('.').map_or((field.path, None), |(name, rest)| (name, Some(rest)));
            let place = members.iter().position(|member| member.name == name).unwrap_or_else(|| {
                members.push(Member { name, itself: None, below: Vec::new() });
                members.len() - 1
            });
            match (members.get_mut(place), rest) {
                (Some(member), None) => member.itself = Some(nth),
                (Some(member), Some(rest)) => member.below.push((rest, nth)),
                (None, _) => {}
            }
        }
        members.sort_by_key(|member| member.name);
        Self(members)
    }

    pub fn member(&self, name: &str) -> Option<&Member> {
        let nth = self.0.binary_search_by(|member| member.name.cmp(name)).ok()?;
        self.0.get(nth)
    }
}

/// Goes through documents of one collection, which mostly have the same members in the same places: what was found
/// before is found again without searching.
#[derive(Debug)]
pub struct Walker {
    layout: &'static Layout,
    seen: Vec<(String, Option<&'static Member>)>,
}

impl Walker {
    pub fn new(collection: &Collection) -> Self {
        Self { layout: collection.layout(), seen: Vec::new() }
    }

    /// What is declared at or below the member of this name, in this place among the members of a document.
    pub fn member(&mut self, nth: usize, name: &str) -> Option<&'static Member> {
        match self.seen.get_mut(nth) {
            Some((seen, member)) if seen == name => *member,
            Some(place) => {
                *place = (name.to_owned(), self.layout.member(name));
                place.1
            }
            None => {
                let member = self.layout.member(name);
                if self.seen.len() == nth {
                    self.seen.push((name.to_owned(), member));
                }
                member
            }
        }
    }
}

/// What goes through the documents of a batch: a walker for each collection that is met.
#[derive(Debug, Default)]
pub struct Walkers(BTreeMap<&'static str, Walker>);

impl Walkers {
    pub fn of(&mut self, collection: &'static Collection) -> &mut Walker {
        self.0.entry(collection.name).or_insert_with(|| Walker::new(collection))
    }
}

impl Collection {
    /// Where its declared fields stand.
    pub fn layout(&self) -> &'static Layout {
        let nth = ALL.iter().position(|known| std::ptr::eq(*known, self));
        nth.and_then(|nth| LAYOUTS.get(nth)).unwrap_or(&NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use crate::collection::JOBS;

    #[test]
    fn every_declared_field_is_met_once() {
        let layout = JOBS.layout();
        let mut met: Vec<usize> = Vec::new();
        for name in JOBS.fields.iter().map(|field| field.path.split('.').next().unwrap()) {
            let member = layout.member(name).unwrap();
            met.extend(member.itself);
            met.extend(member.below.iter().map(|(_, nth)| nth));
        }
        met.sort_unstable();
        met.dedup();
        assert_eq!(met, (0..JOBS.fields.len()).collect::<Vec<_>>());
        assert!(layout.member("somewhere else").is_none());
    }
}
