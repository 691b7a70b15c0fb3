//! A first start that is killed before it was up: whatever it had made by then, the next one goes on from it.

use std::time::Duration;

use rand::RngExt as _;

use crate::{dice, home};

#[test]
fn a_first_start_that_is_killed_can_be_repeated() {
    let mut dice = dice();
    for _ in 0..25 {
        let home = home();
        let mut first = home.command();
        first.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(home.data());
        let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
        while !home.data().join("rota.db").exists() {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(dice.random_range(0..20_000)));
        first.kill().unwrap();
        first.wait().unwrap();
        let again = home.up();
        // Whatever the first start had decided: a key that was kept for the command line is good, and finds the job.
        let kept = std::fs::read_to_string(home.path().join("config/rota/credentials.toml")).unwrap();
        let finds_the_job = |key: &str| {
            let mut list = home.command();
            let list =
                list.args(["job", "list", "--url", &again.url]).env("ROTA_API_KEY", key).output().unwrap();
            String::from_utf8_lossy(&list.stdout).contains("first job")
        };
        let mut keys = kept.split('"').filter(|part| part.starts_with("rota_"));
        assert!(keys.any(finds_the_job), "{}", again.banner);
    }
}
