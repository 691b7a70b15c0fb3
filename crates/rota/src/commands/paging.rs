//! Lists that come in pages: one of them, or all, one after the other.

use clap::Args;
use rota_client::{Error, Page};

use super::Context;
use crate::exit::Failure;
use crate::output;

/// How many items a page holds when all are wanted.
const LARGEST_PAGE: u32 = 1_000;

/// Which part of a list is meant.
#[derive(Args, Debug)]
pub(crate) struct PagingArgs {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where another page ended
    #[arg(long)]
    cursor: Option<String>,
    /// All of them, page after page
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
}

/// What to ask for: how many, and where to go on.
pub(crate) struct Asked {
    pub(crate) limit: Option<u32>,
    pub(crate) cursor: Option<String>,
}

impl PagingArgs {
    /// Asks for one page and says how to get the next, or for all of them; what cannot be shown bit by bit is gathered first.
    pub(crate) async fn show<T>(
        self,
        context: &Context,
        ask: impl AsyncFn(Asked) -> Result<Page<T>, Error>,
        print: impl Fn(&Page<T>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.all {
            return every_page(context, ask, print).await;
        }
        let page = ask(Asked { limit: Some(self.limit), cursor: self.cursor }).await?;
        print(&page)?;
        if let Some(next) = &page.next {
            output::warn(&format!("There are more: --cursor {next} shows the next page, --all all of them."));
        }
        Ok(())
    }
}

async fn every_page<T>(
    context: &Context,
    ask: impl AsyncFn(Asked) -> Result<Page<T>, Error>,
    print: impl Fn(&Page<T>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut gathered = Page { items: Vec::new(), next: None };
    let mut cursor = None;
    loop {
        let page = ask(Asked { limit: Some(LARGEST_PAGE), cursor }).await?;
        cursor = page.next.clone();
        if context.out.takes_one_at_a_time() {
            print(&page)?;
        } else {
            gathered.items.extend(page.items);
        }
        if cursor.is_none() {
            return print(&gathered);
        }
    }
}
