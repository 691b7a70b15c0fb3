//! The OpenAPI document is a golden file: a change of the contract shows in the review. `cargo xtask bless` writes it.

#[test]
fn golden_openapi() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/openapi.json");
    let document = rota_web::contract::document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("ROTA_BLESS").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert!(golden == document, "the contract changed: run `cargo xtask bless` and look at the difference");
}
