//! Lines as server-sent events. A listener takes them at its own pace: what it has not read yet stays in the store.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt as _, stream};
use rota_engine::logbook::Follower;
use rota_model::log::LogLine;
use rota_model::user::Rights;

use crate::access::Caller;
use crate::app::App;

/// What is said, until the process stops or the caller may no longer see it.
pub(super) fn of(
    app: Arc<App>,
    follower: Follower,
    caller: Caller,
    may_see: impl Fn(&Rights) -> bool + Send + Sync + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stop = app.stop.clone();
    let moments = stream::unfold((follower, may_see), move |(mut follower, may_see)| {
        let (app, caller) = (Arc::clone(&app), caller.clone());
        async move {
            let lines = follower.next().await?;
            let permitted = app.accounts.still(&caller, &may_see).await.unwrap_or(false);
            permitted.then_some((lines, (follower, may_see)))
        }
    });
    let events = moments.flat_map(|lines| stream::iter(lines.into_iter().filter_map(event))).map(Ok);
    let opened = stream::once(async { Ok(Event::default().comment("listening")) });
    Sse::new(opened.chain(events).take_until(stop.cancelled_owned())).keep_alive(KeepAlive::default())
}

fn event(line: LogLine) -> Option<Event> {
    Event::default().event("log").id(line.log_id.to_string()).json_data(&line).ok()
}
