//! Totals are kept as differences, one row for each kind of document and each commit that changed how many there are: a row
//! for each total would be written by everybody at once. Now and then they are folded into one.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::select::Sql;
use crate::session::Pool;

/// Between two foldings. Whoever asks for a total sums up what was written since the last.
const EVERY: Duration = Duration::from_secs(2);

/// In one statement: whoever counts meanwhile sees the rows before, or the one after. Where another process folds the same
/// rows, one of the two finds them gone.
const FOLD: &str = "WITH many AS (SELECT collection FROM counts GROUP BY collection HAVING count(*) > 200), \
    gone AS (DELETE FROM counts USING many WHERE counts.collection = many.collection \
    RETURNING counts.collection, counts.key, counts.n) \
    INSERT INTO counts (collection, key, n) SELECT collection, key, sum(n) FROM gone GROUP BY collection, key \
    HAVING sum(n) <> 0";

/// The task that folds; it ends with this.
pub(crate) struct Folder(JoinHandle<()>);

impl Folder {
    pub(crate) fn start(pool: &Arc<Pool>) -> Self {
        let pool = Arc::clone(pool);
        Self(tokio::spawn(async move {
            loop {
                sleep(EVERY).await;
                if let Err(error) = pool.write("fold totals", &Sql::new(FOLD)).await {
                    tracing::debug!(%error, "totals were not folded");
                }
            }
        }))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.0.abort();
    }
}
