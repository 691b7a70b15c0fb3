//! The type `exec` with real programs: what they are given, what becomes of what they say, and that nothing outlives the job.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rota_engine::handler::{Context, Handler as _, HandlerError};
use rota_engine::types::JobTypes;
use rota_handlers::exec::{Exec, ExecSettings};
use rota_model::job::NewJob;
use rota_model::log::Level;
use serde_json::{Map, Value, json};

use crate::stage::{Heard, JOB, job};

fn exec(programs: &[(&str, &Path)]) -> Exec {
    let programs = programs.iter().map(|(name, path)| ((*name).to_owned(), path.to_path_buf()));
    Exec::new(ExecSettings::new(programs.collect()).unwrap())
}

fn shell() -> Exec {
    exec(&[("sh", Path::new("/bin/sh"))])
}

fn script(text: &str) -> Context {
    job(json!({"program": "sh", "args": ["-c", text]}))
}

async fn run(text: &str) -> Result<Map<String, Value>, HandlerError> {
    shell().run(script(text)).await
}

/// A process that is over may still wait for somebody to ask how it ended.
fn lives(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap();
}

/// A program with a child and a grandchild, that writes down who they are. `first` comes before all else.
async fn family(first: &str) -> (tempfile::TempDir, Context, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids");
    let shown = file.display();
    let text = format!(
        "{first}; sh -c 'sleep 600 & echo $! >> {shown}.new; wait' & echo $$ $! >> {shown}.new; \
         while [ $(wc -w < {shown}.new) -lt 3 ]; do sleep 0.01; done; mv {shown}.new {shown}; wait; sleep 600"
    );
    (folder, script(&text), file)
}

async fn ids(file: &Path) -> Vec<String> {
    until(|| file.exists()).await;
    let ids: Vec<_> = std::fs::read_to_string(file).unwrap().split_whitespace().map(str::to_owned).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| lives(id)), "{ids:?}");
    ids
}

#[tokio::test]
async fn a_program_gets_what_the_job_says_and_a_clean_environment() {
    let payload = json!({
        "program": "sh",
        "args": ["-c", "cat; echo \"$1\"; pwd; ls -A; env | sort", "x", "$(id) ;'\""],
        "stdin": "from the job\n",
        "env": {"REPORT_DATE": "2030-01-31"},
    });
    let result = shell().run(job(payload)).await.unwrap();
    let said = result["stdout"].as_str().unwrap();
    let mut lines = said.lines();
    assert_eq!((lines.next(), lines.next()), (Some("from the job"), Some("$(id) ;'\"")));
    let folder = lines.next().unwrap();
    let env: Vec<_> = lines.filter(|line| !line.starts_with("_=") && !line.starts_with("PWD=")).collect();
    assert_eq!(
        env,
        [
            "LANG=C.UTF-8",
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "REPORT_DATE=2030-01-31",
            "ROTA_ATTEMPT=2",
            "ROTA_EPOCH=3",
            &format!("ROTA_JOB_ID={JOB}"),
        ]
    );
    assert_eq!((&result["exitCode"], &result["truncated"]), (&json!(0), &json!(false)));
    until(|| !Path::new(folder).exists()).await;
}

#[tokio::test]
async fn every_line_goes_to_the_log_and_the_end_to_the_result() {
    let heard = Arc::new(Heard::default());
    let mut job = script(
        "echo one; echo two >&2; printf '\\377\\000'; echo; head -c 1048576 /dev/zero | tr '\\0' x; echo; echo end",
    );
    job.reports = Arc::clone(&heard) as Arc<_>;
    let result = shell().run(job).await.unwrap();
    let heard = heard.0.lock().unwrap();
    let of = |level| heard.iter().filter(move |(at, _)| *at == level).map(|(_, line)| line.as_str());
    assert_eq!(of(Level::Warn).collect::<Vec<_>>(), ["two"]);
    let said: Vec<_> = of(Level::Info).collect();
    assert_eq!((said.len(), said[0], said[1], said[3]), (4, "one", "\u{fffd}\u{fffd}", "end"));
    assert!(said[2].starts_with("xxx") && said[2].ends_with("… (cut)") && said[2].len() < 17_000);
    let stdout = result["stdout"].as_str().unwrap();
    assert!(stdout.len() == 64 * 1024 && stdout.ends_with("x\nend\n"));
    assert_eq!((&result["stderr"], &result["truncated"]), (&json!("two\n"), &json!(true)));
}

#[tokio::test]
async fn how_it_ends_decides_what_becomes_of_the_job() {
    for (text, why) in [
        ("exit 75", "sh ended with exit code 75"),
        ("echo a >&2; echo the disk is full >&2; exit 3", "sh ended with exit code 3: the disk is full"),
        ("kill -KILL $$", "sh was ended by signal 9"),
    ] {
        assert_eq!(run(text).await, Err(HandlerError::Failed(why.to_owned())));
    }
    // Who does not listen is not waited for.
    let deaf = json!({"program": "sh", "args": ["-c", "exit 0"], "stdin": "x".repeat(1_000_000)});
    assert!(shell().run(job(deaf)).await.is_ok());
}

#[tokio::test]
async fn what_is_not_allowed_or_not_there_ends_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let (gone, plain) = (folder.path().join("gone"), folder.path().join("plain"));
    std::fs::write(&gone, "").unwrap();
    std::fs::write(&plain, "no program").unwrap();
    let exec = exec(&[("gone", &gone), ("plain", &plain)]);
    std::fs::remove_file(&gone).unwrap();
    for (payload, words) in [
        (json!({"program": "/bin/sh"}), "no program \"/bin/sh\" is allowed here; allowed are: gone, plain"),
        (json!({"program": "gone"}), "cannot be started"),
        (json!({"program": "plain"}), "cannot be started"),
        (json!({"program": "plain", "env": {"LD_PRELOAD": "x"}}), "LD_PRELOAD"),
    ] {
        let outcome = exec.run(job(payload)).await;
        assert!(matches!(&outcome, Err(HandlerError::Fatal(why)) if why.contains(words)), "{outcome:?}");
    }
}

#[tokio::test]
async fn what_is_left_behind_ends_with_the_program() {
    let result = run("sleep 600 & echo $!").await.unwrap();
    let id = result["stdout"].as_str().unwrap().trim().to_owned();
    until(|| !lives(&id)).await;
}

#[tokio::test]
async fn cancelling_asks_first() {
    let (folder, job, file) = family("trap 'echo asked > \"$0.asked\"; exit' TERM").await;
    let mut job = job;
    let asked = folder.path().join("x.asked");
    let args = job.payload.get_mut("args").and_then(Value::as_array_mut).unwrap();
    args.push(json!(folder.path().join("x")));
    let cancelled = job.cancelled.clone();
    let running = tokio::spawn(async move { shell().run(job).await });
    let ids = ids(&file).await;
    cancelled.cancel();
    assert_eq!(running.await.unwrap(), Err(HandlerError::Stopped));
    assert!(asked.exists());
    until(|| !ids.iter().any(|id| lives(id))).await;
}

#[tokio::test]
async fn who_does_not_end_when_asked_is_ended() {
    let (_folder, job, file) = family("trap '' TERM").await;
    let cancelled = job.cancelled.clone();
    let running = tokio::spawn(async move { shell().run(job).await });
    let ids = ids(&file).await;
    let began = tokio::time::Instant::now();
    cancelled.cancel();
    assert_eq!(running.await.unwrap(), Err(HandlerError::Stopped));
    assert!(began.elapsed() >= Duration::from_secs(2));
    until(|| !ids.iter().any(|id| lives(id))).await;
}

#[tokio::test]
async fn a_dropped_run_leaves_nobody_behind() {
    let (_folder, job, file) = family("trap '' TERM").await;
    let running = tokio::spawn(async move { shell().run(job).await });
    let ids = ids(&file).await;
    running.abort();
    until(|| !ids.iter().any(|id| lives(id))).await;
}

#[tokio::test]
async fn who_leaves_the_group_does_not_hold_up_the_job() {
    let began = tokio::time::Instant::now();
    let result = run("setsid sleep 5 & echo done").await.unwrap();
    assert_eq!(result["stdout"], "done\n");
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[test]
fn the_schema_refuses_what_can_be_told_by_its_form() {
    let mut types = JobTypes::default();
    types.add("exec", &Exec::payload_schema(), Arc::new(shell())).unwrap();
    let refused = |payload| types.check(&NewJob::new("x", "exec", payload)).is_err();
    assert!(!refused(json!({"program": "a", "args": ["b"], "stdin": "", "env": {"A": ""}})));
    for payload in [
        json!({}),
        json!({"program": 1}),
        json!({"program": "a", "args": "b"}),
        json!({"program": "a", "args": [1]}),
        json!({"program": "a", "env": {"a": "x"}}),
        json!({"program": "a", "env": {"A": 1}}),
        json!({"program": "a", "cwd": "/"}),
    ] {
        assert!(refused(payload.clone()), "{payload}");
    }
}
