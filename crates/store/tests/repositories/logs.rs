//! Logs: kept once, and found by who said it, about what, when and in which words.

use rota_model::ids::{JobId, LogId};
use rota_model::log::{Level, Log};
use rota_model::time::UnixMillis;
use rota_store::logs::{LogFilter, Logs};

use super::{domain, node, store};

/// An entry per call: who, in which domain, about which job, how bad, what.
fn entry(at: i64, from: &str, owner: Option<&str>, level: Level, title: &str) -> (LogId, Log) {
    let mut log = Log::new(level, title, node(from), UnixMillis(at));
    log.domain = owner.map(domain);
    log.job_id = owner.map(|owner| JobId::derived(&[owner]));
    (LogId::rising(UnixMillis(at), &[0; 10]), log)
}

fn entries() -> Vec<(LogId, Log)> {
    vec![
        entry(10, "a", Some("red"), Level::Info, "began"),
        entry(20, "a", Some("blue"), Level::Warn, "slow answer"),
        entry(30, "b", Some("red"), Level::Error, "no answer"),
        entry(40, "b", None, Level::Info, "joined"),
    ]
}

async fn titles(logs: &Logs, filter: LogFilter) -> Vec<String> {
    let mut titles = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = logs.search(&filter, 1, cursor).await.unwrap();
        titles.extend(page.into_iter().map(|line| line.log.title));
        cursor = next;
        if cursor.is_none() {
            return titles;
        }
    }
}

#[tokio::test]
async fn entries_are_found_newest_first_and_narrowed() {
    let logs = Logs::new(store());
    logs.append(entries()).await.unwrap();
    let any = LogFilter::default();
    let cases = [
        (any.clone(), vec!["joined", "no answer", "slow answer", "began"]),
        (LogFilter { domain: Some(domain("red")), ..any.clone() }, vec!["no answer", "began"]),
        (LogFilter { job: Some(JobId::derived(&["blue"])), ..any.clone() }, vec!["slow answer"]),
        (LogFilter { node: Some(node("a")), ..any.clone() }, vec!["slow answer", "began"]),
        (
            LogFilter { levels: vec![Level::Warn, Level::Error], ..any.clone() },
            vec!["no answer", "slow answer"],
        ),
        (LogFilter { text: Some("Answer".to_owned()), ..any.clone() }, vec!["no answer", "slow answer"]),
        (
            LogFilter { after: Some(UnixMillis(10)), before: Some(UnixMillis(40)), ..any.clone() },
            vec!["no answer", "slow answer"],
        ),
        (
            LogFilter { domain: Some(domain("red")), text: Some("answer".to_owned()), ..any },
            vec!["no answer"],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(titles(&logs, filter.clone()).await, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn what_is_handed_over_again_is_not_doubled_nor_changed() {
    let logs = Logs::new(store());
    logs.append(entries()).await.unwrap();
    let mut again = entries();
    again.iter_mut().for_each(|(_, log)| log.title = "rewritten".to_owned());
    again.push(entry(50, "a", None, Level::Info, "left"));
    logs.append(again).await.unwrap();
    let told = titles(&logs, LogFilter::default()).await;
    assert_eq!(told, ["left", "joined", "no answer", "slow answer", "began"]);
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_kept() {
    let logs = Logs::new(store());
    let mut long = entry(10, "a", None, Level::Info, "bell\u{7}");
    long.1.message = Some("x".repeat(rota_model::log::MAX_MESSAGE_CHARS + 1));
    logs.append(vec![long]).await.unwrap();
    let (page, _) = logs.search(&LogFilter::default(), 10, None).await.unwrap();
    assert_eq!(page.first().unwrap().log.check(), Ok(()));
}

#[tokio::test]
async fn ids_come_oldest_first_and_what_is_picked_by_them_matches() {
    let logs = Logs::new(store());
    logs.append(entries()).await.unwrap();
    let filter = LogFilter { text: Some("answer".to_owned()), ..LogFilter::default() };
    let (ids, next) = logs.ids(&LogFilter::default(), 3, None).await.unwrap();
    assert_eq!(ids, entries()[..3].iter().map(|(id, _)| *id).collect::<Vec<_>>());
    let (rest, _) = logs.ids(&LogFilter::default(), 3, next).await.unwrap();
    assert_eq!(rest, [entries()[3].0]);
    let backwards: Vec<_> = ids.into_iter().rev().chain([LogId::derived(&["none"])]).collect();
    let picked = logs.pick(&filter, &backwards).await.unwrap();
    let told: Vec<_> = picked.iter().map(|line| line.log.title.as_str()).collect();
    assert_eq!(told, ["slow answer", "no answer"]);
    let red = LogFilter { domain: Some(domain("red")), ..filter };
    assert_eq!(logs.pick(&red, &backwards).await.unwrap().len(), 1);
}
