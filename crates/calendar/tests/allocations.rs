//! Asking for instants allocates nothing. Alone in its file, since it watches the allocator of the whole process.
#![expect(unsafe_code, reason = "an allocator that counts can only be written like this")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use jiff::Timestamp;
use rota_calendar::Calendar;
use rota_model::timer::Schedule;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let done = work();
    (done, ALLOCATIONS.get() - before)
}

#[test]
fn instants_cost_no_allocation() {
    let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for cron in [
        "*/15 * * * *",
        "30 2 * * *",
        "0 9 * * 1-5",
        "0 0 L * *",
        "0 0 29 2 *",
        "@every 90s",
        "@at 2030-01-31T08:00",
    ] {
        for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
            let mut schedule = Schedule::new(cron);
            schedule.time_zone = zone.to_owned();
            let calendar = Calendar::of(&schedule).unwrap();
            let ((), counted) = allocations_of(|| {
                let mut next = calendar.next_after(at);
                for _ in 0..1_000 {
                    next = next.and_then(|next| calendar.next_after(next));
                }
                calendar.instants(at, Timestamp::MAX).take(1_000).for_each(drop);
                calendar.previous_before(at);
                calendar.count(at, "2036-01-01T00:00:00Z".parse().unwrap());
            });
            assert_eq!(counted, 0, "{cron} {zone}");
        }
    }
    let (_, counted) = allocations_of(|| vec![1]);
    assert_eq!(counted, 1, "the allocator counts");
}
