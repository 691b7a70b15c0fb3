//! The documents of seed 002.

use rota_model::Extra;
use rota_model::ids::AssignmentId;
use rota_model::placement::{Assignment, PlacementNode, Service};

use super::{Filled, NOW};

pub(super) fn documents() -> Vec<Filled> {
    vec![
        Filled::new("services", &service(), &[""]),
        Filled::new("nodes", &placement_node(), &[""]),
        Filled::new("assignments", &assignment(), &[""]),
    ]
}

fn service() -> Service {
    Service { service: "sync-1.5".to_owned(), pattern: "{node}/1.5/{uid}".to_owned(), extra: Extra::new() }
}

fn placement_node() -> PlacementNode {
    PlacementNode {
        service: "sync-1.5".to_owned(),
        node: "https://eu-1.example.org".to_owned(),
        available: 10,
        current_load: 90,
        capacity: 200,
        downed: true,
        backoff: true,
        extra: Extra::new(),
    }
}

fn assignment() -> Assignment {
    Assignment {
        uid: AssignmentId::derived(&["u"]),
        service: "sync-1.5".to_owned(),
        email: "alice@example.org".to_owned(),
        node: "https://eu-1.example.org".to_owned(),
        generation: 1_593_341_664_912,
        client_state: "0123456789abcdef".to_owned(),
        created_at: NOW,
        replaced_at: Some(NOW),
        extra: Extra::new(),
    }
}
