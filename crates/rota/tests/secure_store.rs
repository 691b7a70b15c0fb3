//! TLS to a real PostgreSQL with a certificate of its own: it is used where its authority is trusted, and refused where not.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::path::Path;
use std::process::Stdio;

use rota_testkit::postgres::{Server, run_sql};
use rota_testkit::process::{Home, Rota, code, complaint};

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

fn with(url: &str, options: &str) -> String {
    format!("{url}&{options}")
}

/// How many connections of nodes are secure, and how many are not.
fn connections(url: &str) -> (u32, u32) {
    let count = |ssl: &str| {
        let asked = format!(
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'rota' AND {ssl}"
        );
        run_sql(url, &asked).parse().unwrap()
    };
    (count("ssl"), count("NOT ssl"))
}

/// A node that believes the authorities in this file, as the system's.
fn serve_trusting(home: &Home, store: &str, authority: &Path) -> Rota {
    let mut command = home.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--store", store]);
    command.env("SSL_CERT_FILE", authority).stderr(Stdio::null());
    Rota::start(command)
}

fn is_refused(store: &str, authority: Option<&Path>, words: &[&str]) {
    let home = home();
    let mut command = home.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--store", store]);
    authority.map(|file| command.env("SSL_CERT_FILE", file));
    let output = command.output().unwrap();
    let said = complaint(&output);
    assert_eq!(code(&output), 2, "{store}: {said}");
    assert!(words.iter().all(|word| said.contains(word)) && said.lines().count() == 1, "{store}: {said}");
}

#[test]
fn a_certificate_is_used_if_it_is_trusted_and_refused_if_not() {
    let server = Server::start(false);
    let url = server.fresh();
    is_refused(&with(&url, "sslmode=require"), None, &["does not support TLS"]);
    assert_eq!(
        run_sql(&url, "SELECT count(*) FROM pg_class WHERE relname = 'facts'"),
        "0",
        "nothing was made"
    );

    let authority = server.offer_tls();
    let untrusted = ["certificate", "127.0.0.1:", "is not trusted", "sslrootcert"];
    for options in [
        "sslmode=require",
        "sslmode=verify-full",
        "sslmode=verify-ca",
        "sslmode=prefer",
        "application_name=rota",
    ] {
        is_refused(&with(&url, options), None, &untrusted);
    }
    assert_eq!(
        run_sql(&url, "SELECT count(*) FROM pg_class WHERE relname = 'facts'"),
        "0",
        "nothing was made"
    );

    let named = format!("sslrootcert={}", authority.display());
    for (options, system) in [
        ("sslmode=require", true),
        ("sslmode=prefer", true),
        (&format!("sslmode=verify-full&{named}"), false),
        (&format!("sslmode=verify-ca&{named}"), false),
        (&*named, false),
    ] {
        let (home, store) = (home(), with(&url, options));
        let rota = if system { serve_trusting(&home, &store, &authority) } else { home.serve(&store, &[]) };
        let (secure, open) = connections(&url);
        assert!(secure > 0 && open == 0, "{options}: {secure} secure, {open} not");
        rota.kill();
        while connections(&url) != (0, 0) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    // The name counts as well, whatever the mode is called.
    let elsewhere = url.replace("127.0.0.1", "localhost");
    is_refused(
        &with(&elsewhere, &format!("sslmode=verify-ca&{named}")),
        None,
        &["is not trusted", "localhost"],
    );
    let home = home();
    let _rota = home.serve(&with(&url, "sslmode=disable"), &[]);
    let (secure, open) = connections(&url);
    assert!(secure == 0 && open > 0, "{secure} secure, {open} not");
}
