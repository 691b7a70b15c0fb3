//! Whatever is wrong with the store that a node is given: it ends with one sentence and a code that says whose turn it is, shows
//! no password, and has changed nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a surprise is a failure of the test")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::process::{Home, code, complaint};

/// What is wrong with what was given: 2. Nobody there who could be asked: 5.
const REFUSED: i32 = 2;
const UNREACHABLE: i32 = 5;

const PASSWORD: &str = "Hush-4711";

/// One that starts after all is a failure, and not waited for.
fn serve(store: &str) -> Output {
    let home = Home::new(env!("CARGO_BIN_EXE_rota"));
    let mut command = home.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--store", store]);
    let mut node = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1_200 {
        if node.try_wait().unwrap().is_some() {
            return node.wait_with_output().unwrap();
        }
        sleep(Duration::from_millis(25));
    }
    node.kill().unwrap();
    panic!("{store}: it goes on: {:?}", node.wait_with_output());
}

/// It ends with the code, and with one sentence that has these words.
fn says(store: &str, exit: i32, words: &[&str]) {
    let output = serve(store);
    let said = complaint(&output);
    assert_eq!(code(&output), exit, "{store}: {said}");
    for word in words {
        assert!(said.contains(word), "{store}: '{word}' is missing: {said}");
    }
    assert_eq!(said.lines().count(), 1, "{store}: {said}");
    assert!(said.starts_with("rota: ") && output.stdout.is_empty(), "{store}: {said}");
    for never in ["panicked", "backtrace", PASSWORD, "Error {", "Kind"] {
        assert!(!said.contains(never), "{store}: {said}");
    }
}

/// Everything that stands in a database, by name and number of rows written.
fn contents(url: &str) -> String {
    run_sql(
        url,
        "SELECT string_agg(concat_ws(' ', relname, relkind, relfilenode), ', ' ORDER BY oid) FROM pg_class \
         WHERE relnamespace = current_schema()::regnamespace",
    )
}

#[test]
fn an_address_that_makes_no_sense() {
    for (store, words) in [
        ("mysql://rota:Hush-4711@db/rota", &["postgres://USER:PASSWORD@HOST/DATABASE"][..]),
        ("postgres://rota:Hush-4711@", &["postgres://USER:PASSWORD@HOST/DATABASE"]),
        ("postgres:///rota", &["names no host"]),
        ("postgres://rota:Hush-4711@127.0.0.1/rota?sslmode=maybe", &["sslmode"]),
        ("postgres://rota:Hush-4711@127.0.0.1/rota?colour=red", &["colour"]),
        ("postgres://rota:Hush-4711@127.0.0.1/rota?sslrootcert=/no/such/file", &["/no/such/file"]),
    ] {
        says(store, REFUSED, words);
    }
}

#[test]
fn nobody_is_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refuses = format!("postgres://rota:{PASSWORD}@{free}/rota");
    says(&refuses, UNREACHABLE, &[&free.to_string(), "cannot be reached", "is it running"]);
    let unknown = format!("postgres://rota:{PASSWORD}@no-such-host.invalid/rota");
    says(&unknown, UNREACHABLE, &["no-such-host.invalid:5432", "cannot be reached"]);
}

/// Answers whoever comes, each in a thread of its own.
fn stranger(answer: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("postgres://rota:{PASSWORD}@{address}/rota")
}

#[test]
fn whoever_is_there_is_no_postgresql() {
    let web = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ =
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    says(&web, UNREACHABLE, &["is no PostgreSQL", "127.0.0.1:"]);
    let garbage = stranger(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"N");
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 99, 0xff, 0xff, 0xff]);
        let _ = stream.read(&mut [0; 1024]);
    });
    says(&garbage, UNREACHABLE, &["is no PostgreSQL"]);
    let shell = stranger(|mut stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    says(&shell, UNREACHABLE, &["is no PostgreSQL"]);
    let hangs_up = stranger(drop);
    says(&hangs_up, UNREACHABLE, &["is no PostgreSQL, or breaks off"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the real program runs in real time")]
fn whoever_is_there_says_nothing() {
    let silent = stranger(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let began = Instant::now();
    says(&silent, UNREACHABLE, &["nobody answers at 127.0.0.1:", "in time"]);
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    // It lets one in, and then says nothing any more.
    let falls_silent = stranger(|stream| answer_as(stream, ""));
    says(&falls_silent, UNREACHABLE, &["nobody answers at 127.0.0.1:", "in time"]);
}

/// As the protocol has it: a letter, the length, the rest.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag], &length[..], body].concat()
}

fn row(values: &[&str]) -> Vec<u8> {
    let count = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    values.iter().fold(count, |mut row, value| {
        row.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        row.extend(value.as_bytes());
        row
    })
}

const OLD: &str = "PostgreSQL 14.9 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit";

/// Just enough of a server to be asked which version it is; with none it does not answer that. Anything else that it is asked
/// is a fault.
fn answer_as(mut stream: TcpStream, version: &str) {
    let column = |name: &str| [name.as_bytes(), &[0; 7], &25u32.to_be_bytes(), &[255; 6], &[0; 2]].concat();
    let take = |stream: &mut TcpStream| {
        let mut taken = [0; 4096];
        let count = stream.read(&mut taken).unwrap_or_default();
        String::from_utf8_lossy(taken.get(..count).unwrap_or_default()).into_owned()
    };
    take(&mut stream);
    let _ = stream.write_all(b"N");
    take(&mut stream);
    let ready = message(b'Z', b"I");
    let parameter = message(b'S', b"server_version\x0014.9\0");
    let _ = stream.write_all(&[message(b'R', &[0; 4]), parameter, ready.clone()].concat());
    loop {
        let asked = take(&mut stream);
        let done = message(b'C', b"SELECT 1\0");
        let answer = if asked.contains("version()") {
            if version.is_empty() {
                continue;
            }
            let columns = [2u16.to_be_bytes().to_vec(), column("version"), column("number")].concat();
            let values = row(&[version, "140009"]);
            [message(b'T', &columns), message(b'D', &values), done, ready.clone()].concat()
        } else if asked.contains("SET ") {
            [done, ready.clone()].concat()
        } else {
            return;
        };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

#[test]
fn a_postgresql_that_is_too_old() {
    says(&stranger(|stream| answer_as(stream, OLD)), REFUSED, &["PostgreSQL 14", "needs 15 or later"]);
}

#[test]
fn a_login_that_is_not_let_in() {
    let server = Server::start(false);
    let url = server.url();
    let role = format!("ALTER ROLE rota PASSWORD '{PASSWORD}'");
    let closed = "REVOKE ALL ON DATABASE closed FROM PUBLIC";
    for sql in [&role, "CREATE DATABASE closed", closed, "CREATE ROLE guest LOGIN"] {
        run_sql(&url, sql);
    }
    let before = contents(&url);
    says(&url.replace("rota@", "nobody@"), REFUSED, &["nobody", "28000", "user and the password"]);
    says(&url.replace("/postgres", "/nowhere"), REFUSED, &["nowhere", "3D000", "make the database"]);
    let closed = url.replace("rota@", "guest@").replace("/postgres", "/closed");
    says(&closed, REFUSED, &["closed", "42501"]);
    // Who may enter and may make nothing.
    says(&url.replace("rota@", "guest@"), REFUSED, &["guest may not", "rota store schema"]);
    server.ask_for_passwords();
    let wrong = url.replace("rota@", "rota:wrong-Hush-4711@");
    says(&wrong, REFUSED, &["28P01", "user and the password"]);
    says(&url, REFUSED, &["password missing"]);
    let right = url.replace("rota@", &format!("rota:{PASSWORD}@"));
    assert_eq!(contents(&right), before, "nothing was made");
}

#[test]
fn a_database_that_is_newer_or_somebody_elses() {
    let server = Server::start(false);
    let newer = server.fresh();
    run_sql(&newer, &printed_schema());
    run_sql(&newer, "UPDATE facts SET value = 1000");
    let (before, written) = (contents(&newer), "SELECT string_agg(xmin::text, ',') FROM facts");
    let facts = run_sql(&newer, written);
    says(&newer, REFUSED, &["its schema is 1000", "run a newer Rota"]);
    assert_eq!((contents(&newer), run_sql(&newer, written)), (before, facts), "nothing was changed");

    for theirs in [
        "CREATE TABLE jobs (id serial PRIMARY KEY)",
        "CREATE TABLE counts (a int)",
        "CREATE VIEW users AS SELECT 1 AS one",
        "CREATE TABLE facts (id int, fact text)",
        "CREATE TABLE facts (name text PRIMARY KEY, value text)",
    ] {
        let url = server.fresh();
        run_sql(&url, theirs);
        let before = contents(&url);
        says(&url, REFUSED, &["a database or a schema of its own"]);
        assert_eq!(contents(&url), before, "{theirs}: nothing was made");
    }
    let nowhere = format!("{}?options=-csearch_path%3Dnowhere", server.url());
    says(&nowhere, REFUSED, &["no schema of the search path"]);
}

/// By the command: what it prints is what a node would have made.
fn printed_schema() -> String {
    let printed = Home::new(env!("CARGO_BIN_EXE_rota")).run(&["store", "schema"]);
    String::from_utf8(printed.stdout).unwrap()
}
