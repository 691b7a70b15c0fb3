//! What stands between a node and a server: it passes everything on, keeps it until it may, or loses it without a word, as
//! networks do.

use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A relay to a port of this machine. Its threads end with the test.
pub struct Relay {
    pub port: u16,
    ways: Arc<Ways>,
}

#[derive(Default)]
struct Ways {
    /// Everything is kept back.
    severed: AtomicBool,
    /// Connections older than this one lead nowhere any more.
    lost: AtomicUsize,
    made: AtomicUsize,
    /// What nodes say, and what is passed on instead: of the same length.
    altered: Option<(&'static str, &'static str)>,
}

impl Relay {
    pub fn before(server: u16) -> Self {
        Self::start(server, Ways::default())
    }

    /// Passes something else on where nodes say a word.
    pub fn altering(server: u16, word: &'static str, other: &'static str) -> Self {
        assert_eq!(word.len(), other.len());
        Self::start(server, Ways { altered: Some((word, other)), ..Ways::default() })
    }

    fn start(server: u16, ways: Ways) -> Self {
        let ways = Arc::new(ways);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let held = Arc::clone(&ways);
        std::thread::spawn(move || {
            for node in listener.incoming().map_while(Result::ok) {
                let nth = held.made.fetch_add(1, Ordering::Relaxed);
                let behind = TcpStream::connect(("127.0.0.1", server)).unwrap();
                for (from, to, up) in [(&node, &behind, true), (&behind, &node, false)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let ways = Arc::clone(&held);
                    std::thread::spawn(move || ways.pass_on(nth, from, to, up));
                }
            }
        });
        Self { port, ways }
    }

    /// Keeps everything back until it is mended.
    pub fn sever(&self) {
        self.ways.severed.store(true, Ordering::Relaxed);
    }

    /// Passes on what was kept back, and everything after it.
    pub fn mend(&self) {
        self.ways.severed.store(false, Ordering::Relaxed);
    }

    /// From now on nothing comes through on the connections that are there, and nobody is told; new ones are good.
    pub fn lose_connections(&self) {
        self.ways.lost.store(self.ways.made.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.ways.made.load(Ordering::Relaxed)
    }
}

impl Ways {
    fn pass_on(&self, nth: usize, mut from: TcpStream, mut to: TcpStream, up: bool) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while self.severed.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            if nth < self.lost.load(Ordering::Relaxed) {
                continue;
            }
            let passed = bytes.get_mut(..count).unwrap();
            if let Some((word, other)) = self.altered.filter(|_| up) {
                alter(passed, word.as_bytes(), other.as_bytes());
            }
            if to.write_all(passed).is_err() {
                return;
            }
        }
        // Who is at the end says so to the other side.
        let _ = to.shutdown(Shutdown::Write);
    }
}

fn alter(bytes: &mut [u8], word: &[u8], other: &[u8]) {
    let place = bytes.windows(word.len()).position(|window| window == word);
    if let Some(place) = place
        && let Some(found) = bytes.get_mut(place..place + word.len())
    {
        found.copy_from_slice(other);
    }
}
