//! What the type `http` can be brought to connect to: by the ways an address is written, by names, and by redirects.

use std::sync::atomic::Ordering;

use crate::stage::{Names, Server, call, run, this_address, with};
use rota_engine::handler::HandlerError;
use rota_handlers::http::{HttpSettings, Secret};
use serde_json::json;

fn fatal(outcome: Result<impl std::fmt::Debug, HandlerError>) -> String {
    match outcome {
        Err(HandlerError::Fatal(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn following(follow_redirects: u8) -> HttpSettings {
    HttpSettings { follow_redirects, ..this_address() }
}

#[tokio::test]
async fn this_machine_is_not_called_however_it_is_written() {
    let mut server = Server::start(vec![with(200, "", "")]).await;
    let port = server.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "１２７.0.0.1",
    ] {
        let why =
            fatal(call(HttpSettings::default(), json!({"url": format!("http://{host}:{port}/")})).await);
        assert!(why.contains("is not called") && why.contains("allow_hosts"), "{host}: {why}");
    }
    assert!(server.heard_nothing());
}

#[tokio::test]
async fn a_metadata_service_is_not_called() {
    for url in
        ["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://100.100.100.200/"]
    {
        let why = fatal(call(this_address(), json!({"url": url})).await);
        assert!(why.contains("private, local or reserved"), "{why}");
    }
}

#[tokio::test]
async fn a_name_is_judged_by_where_it_leads() {
    let mut server = Server::start(vec![with(200, "", "")]).await;
    let port = server.port();
    let url = |name: &str| json!({"url": format!("http://{name}:{port}/")});
    let names = Names::new(&[
        ("public.example", &[&["127.0.0.1", "::1"]]),
        ("mixed.example", &[&["10.0.0.1", "127.0.0.1"]]),
    ]);
    let why = fatal(run(HttpSettings::default(), &names, url("public.example")).await);
    assert!(why.starts_with("public.example is not called: its address 127.0.0.1"), "{why}");
    assert!(server.heard_nothing());

    // What may not be connected to is left out; the rest is tried.
    run(this_address(), &names, url("mixed.example")).await.unwrap();
    server.heard().await;
    let named =
        HttpSettings { allow_hosts: vec!["PUBLIC.example".parse().unwrap()], ..HttpSettings::default() };
    run(named, &names, url("public.example")).await.unwrap();
    server.heard().await;
    run(HttpSettings { allow_private: true, ..HttpSettings::default() }, &names, url("public.example"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_asked_once() {
    let mut server = Server::start(vec![with(200, "", "")]).await;
    let names = Names::new(&[("rebinding.example", &[&["127.0.0.1"], &["169.254.169.254"]])]);
    let url = json!({"url": format!("http://rebinding.example:{}/", server.port())});
    run(this_address(), &names, url.clone()).await.unwrap();
    assert!(server.heard().await.contains("host: rebinding.example:"));
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    let why = fatal(run(this_address(), &names, url).await);
    assert!(why.contains("169.254.169.254"), "{why}");
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_call() {
    for (to, word) in [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
        ("//[::ffff:169.254.169.254]/", "not called"),
        ("http://inside.example/", "inside.example is not called"),
        ("file:///etc/passwd", "http://"),
        ("http://me:pass@127.0.0.1/", "password"),
    ] {
        let server = Server::start(vec![with(302, &format!("location: {to}\r\n"), "")]).await;
        let names = Names::new(&[("inside.example", &[&["10.0.0.1"]])]);
        let why = fatal(run(following(3), &names, json!({"url": server.url("/")})).await);
        assert!(why.contains(word), "{to}: {why}");
    }
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_allowed() {
    let to = |status, path: &str| with(status, &format!("location: {path}\r\n"), "");
    let mut server = Server::start(vec![to(307, "/b"), to(303, "c?d=e"), with(200, "", "there")]).await;
    let payload = json!({"url": server.url("/a"), "body": [1], "headers": {"Cookie": "k"}});
    let result = call(following(2), payload).await.unwrap();
    assert_eq!(result["body"], "there");
    assert!(server.heard().await.starts_with("post /a "));
    let second = server.heard().await;
    assert!(second.starts_with("post /b ") && second.ends_with("\r\n\r\n[1]"), "{second}");
    let third = server.heard().await;
    assert!(third.starts_with("get /c?d=e ") && third.ends_with("\r\n\r\n"), "{third}");
    assert!(!third.contains("content-type") && third.contains("cookie: k"), "{third}");

    let server = Server::start(vec![to(302, "/again")]).await;
    let why = fatal(call(following(2), json!({"url": server.url("/")})).await);
    assert!(why.contains("more than 2 redirects"), "{why}");
    let accepted = json!({"url": server.url("/"), "accept": [302]});
    assert_eq!(call(following(2), accepted).await.unwrap()["headers"]["location"], "/again");
}

#[tokio::test]
async fn a_stranger_gets_no_credentials() {
    let mut stranger = Server::start(vec![with(200, "", "")]).await;
    let to_the_stranger = with(307, &format!("location: {}\r\n", stranger.url("/")), "");
    let mut server = Server::start(vec![to_the_stranger]).await;
    let secret = Some(Secret::new(b"0123456789abcdef").unwrap());
    let settings = HttpSettings { signing_secret: secret, ..following(1) };
    let headers = json!({"Authorization": "Basic x", "Cookie": "k", "X-Other": "y"});
    call(settings, json!({"url": server.url("/"), "bodyText": "b", "headers": headers})).await.unwrap();
    let first = server.heard().await;
    let second = stranger.heard().await;
    for personal in ["authorization: ", "cookie: ", "rota-signature: "] {
        assert!(first.contains(personal) && !second.contains(personal), "{personal}: {second}");
    }
    assert!(second.contains("x-other: y") && second.contains("idempotency-key: "), "{second}");
}
