//! Between two real nodes and a real PostgreSQL stands a relay that swallows every notification, as some poolers do: work is
//! found all the same, a little later.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rota_client::Client;
use rota_model::domain::Domain;
use rota_model::job::{JobStatus, NewJob};
use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::process::{Home, KEY};
use serde_json::json;
use tokio::time::Instant;

/// Says its port, and how many notifications it has swallowed.
fn relay(server: u16) -> (u16, Arc<AtomicUsize>) {
    let swallowed = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let counts = Arc::clone(&swallowed);
    std::thread::spawn(move || {
        for node in listener.incoming().map_while(Result::ok) {
            let behind = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let (mut up, mut down) = (node.try_clone().unwrap(), behind.try_clone().unwrap());
            std::thread::spawn(move || _ = std::io::copy(&mut up, &mut down));
            let counts = Arc::clone(&counts);
            std::thread::spawn(move || pass_on(behind, node, &counts));
        }
    });
    (port, swallowed)
}

/// Every message of the server but notifications. A message is a letter, its length and the rest.
fn pass_on(mut from: TcpStream, mut to: TcpStream, swallowed: &AtomicUsize) -> Option<()> {
    loop {
        let mut head = [0; 5];
        from.read_exact(&mut head).ok()?;
        let [letter, length @ ..] = head;
        let mut rest = vec![0; usize::try_from(u32::from_be_bytes(length)).ok()? - 4];
        from.read_exact(&mut rest).ok()?;
        if letter == b'A' {
            swallowed.fetch_add(1, Ordering::Relaxed);
        } else {
            to.write_all(&[&head[..], &rest].concat()).ok()?;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_found_where_notifications_are_swallowed() {
    let server = Server::start(false);
    let url = server.fresh();
    let port: u16 = run_sql(&url, "SHOW port").parse().unwrap();
    let (relayed, swallowed) = relay(port);
    // Without TLS, so that the relay can read along.
    let store = format!("{}&sslmode=disable", url.replace(&format!(":{port}"), &format!(":{relayed}")));
    let (web, processor) = (Home::new(env!("CARGO_BIN_EXE_rota")), Home::new(env!("CARGO_BIN_EXE_rota")));
    let serves = web.serve(&store, &["--name", "web", "--roles", "web"]);
    let _runs = processor.serve(&store, &["--name", "processor", "--roles", "processor"]);

    let client = Client::new(&serves.url, KEY).unwrap();
    for nth in 0..3 {
        let began = Instant::now();
        let job = NewJob::new(format!("job {nth}"), "noop", json!({}));
        let made = client.submit_job(&Domain::default(), &job, None).await.unwrap();
        let ended =
            client.wait_for_job(&Domain::default(), made.job_id, Duration::from_secs(60)).await.unwrap();
        println!("found and ended after {:.1} s", began.elapsed().as_secs_f64());
        assert_eq!(ended.status, JobStatus::Successful);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    assert!(swallowed.load(Ordering::Relaxed) > 0, "the relay had nothing to swallow");
}
