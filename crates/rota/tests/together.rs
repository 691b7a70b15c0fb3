//! Nodes that start for the first time at the same moment, on one empty PostgreSQL: they have one administrator, whose key one of them
//! shows. Whoever lost it gets another from the store.
#![expect(clippy::unwrap_used, reason = "a surprise is a failure of the test")]

use std::thread;

use rota_testkit::postgres::fresh;
use rota_testkit::process::{Home, Rota, code, complaint, json};
use serde_json::Value;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_rota"))
}

/// As a person starts it, without a key of their own.
fn serve(home: &Home, store: &str) -> Rota {
    let mut command = home.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--data"]).arg(home.data());
    Rota::start(command)
}

fn who_am_i(home: &Home, key: &str, url: &str) -> Value {
    json(&home.command().env("ROTA_API_KEY", key).env("ROTA_URL", url).arg("whoami").output().unwrap())
}

#[test]
fn one_key_is_shown_and_it_is_good() {
    let (homes, store) = ([(); 4].map(|()| home()), fresh());
    let nodes = thread::scope(|scope| {
        let starts = homes.each_ref().map(|home| scope.spawn(|| serve(home, &store)));
        starts.map(|start| start.join().unwrap())
    });
    let key = |node: &Rota| {
        let shown = node.banner.lines().find_map(|line| line.trim().strip_prefix("key "));
        shown.map(|key| key.trim().to_owned()).filter(|key| key.starts_with("rota_"))
    };
    let shown: Vec<String> = nodes.iter().filter_map(key).collect();
    assert_eq!(shown.len(), 1, "{:?}", nodes.each_ref().map(|node| node.banner.clone()));
    for (home, node) in homes.iter().zip(&nodes) {
        assert_eq!(who_am_i(home, &shown[0], &node.url)["user"], "local:admin", "at every node");
        let kept = home.run(&["whoami"]);
        match key(node) {
            Some(_) => assert_eq!(json(&kept)["user"], "local:admin"),
            None => {
                assert_eq!(code(&kept), 6, "{}", complaint(&kept));
                assert!(node.banner.contains("`rota key recover --store URL`"), "{}", node.banner);
            }
        }
    }
}

#[test]
fn who_lost_the_key_gets_another_while_nodes_go_on() {
    let (home, store) = (home(), fresh());
    let recover = || home.run(&["key", "recover", "--store", &store]);
    let nothing = recover();
    assert_eq!(code(&nothing), 3, "{}", complaint(&nothing));
    assert!(complaint(&nothing).contains("no administrator"), "{}", complaint(&nothing));
    let node = serve(&home, &store);
    let made = json(&recover());
    let key = made["key"].as_str().unwrap();
    assert_eq!(who_am_i(&home, key, &node.url)["user"], "local:admin");
}
